//! Computes what a planner has to do next.
//!
//! The answer follows from the board alone, so a planner that takes over after a crash decides as
//! the one before it would have.

use std::fmt;

use provost_core::code::Code;

use super::row::{Row, Status, TaskId};
use super::state::Board;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The blocker of this task has to be resolved.
    Unblock {
        task: TaskId,
        /// The code of the blocker.
        code: Option<Code>,
    },
    /// A worker can begin.
    Assign(TaskId),
    /// A worker is active.
    Await { task: TaskId, owner: String },
    /// Tasks that it depends on are not done.
    Hold {
        task: TaskId,
        /// The first task that it waits for.
        on: TaskId,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unblock { task, code } => match code {
                Some(code) => write!(formatter, "unblock {task} ({code})"),
                None => write!(formatter, "unblock {task}"),
            },
            Self::Assign(task) => write!(formatter, "assign {task}"),
            Self::Await { task, owner } => {
                write!(formatter, "await the result of {task} by {owner}")
            }
            Self::Hold { task, on } => write!(formatter, "hold {task} until {on} is done"),
        }
    }
}

impl Board {
    /// The actions, the most urgent first.
    pub fn next(&self) -> Vec<Action> {
        let mut rows: Vec<&Row> = self.rows().iter().collect();
        let urgency = |row: &Row| {
            let priority = self.terms(&row.task_id).map(|terms| terms.priority);
            std::cmp::Reverse(priority.unwrap_or_default())
        };
        rows.sort_by_key(|row| urgency(row));
        rows.into_iter()
            .filter_map(|row| self.action(row))
            .collect()
    }

    fn action(&self, row: &Row) -> Option<Action> {
        let task = row.task_id.clone();
        let is_open = |on: &&TaskId| !self.row(on).is_ok_and(|row| row.status == Status::Done);
        match row.status {
            Status::Todo => Some(match row.dependencies.iter().find(is_open) {
                Some(on) => Action::Hold {
                    task,
                    on: on.clone(),
                },
                None => Action::Assign(task),
            }),
            Status::InProgress => Some(Action::Await {
                task,
                owner: row.owner.clone(),
            }),
            Status::Blocked => {
                let card = self.card(&task);
                let blocker = card.and_then(|card| card.blocker.as_ref());
                let code = blocker.map(|blocker| blocker.code);
                Some(Action::Unblock { task, code })
            }
            Status::Done | Status::Failed | Status::Canceled => None,
        }
    }
}
