//! The facts a kept board is made of, one a record.
//!
//! A record is one line, so everything that a fact says happened at once or not at all. Payloads are
//! carried along as they were handed over and are never read in here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::Code;
use crate::json::JsonError;
use crate::record::{self, Event, Level};
use crate::wording::counted;

use super::delta::Delta;
use super::resource::Resource;
use super::row::{Priority, Status, TaskId};

/// One thing that happened to a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event_type", content = "payload")]
pub enum Fact {
    /// A worker got a task, and the task got its locks.
    #[serde(rename = "TASK_ASSIGNED")]
    Assigned(Box<Assigned>),
    /// An owner gave a sign of life.
    #[serde(rename = "TASK_HEARTBEAT")]
    Heartbeat {
        task_id: TaskId,
        /// When, as RFC 3339 in UTC.
        at: String,
    },
    /// A worker reported how its task ended; its locks are free.
    #[serde(rename = "TASK_RESULT")]
    Ended(Box<Ended>),
    /// The watchdog blocked tasks whose owners were silent; their locks are free.
    #[serde(rename = "TASKS_TIMED_OUT")]
    TimedOut {
        /// Which tasks.
        late: Vec<Silent>,
    },
    /// A batch of deltas was applied.
    #[serde(rename = "DELTAS_APPLIED")]
    Applied {
        /// The deltas, in their order.
        deltas: Vec<Delta>,
        /// Why tasks of the batch get blocked.
        blockers: Vec<Blocker>,
        /// When, as RFC 3339 in UTC.
        at: String,
    },
    /// A task locked places.
    #[serde(rename = "LOCKS_TAKEN")]
    Locked {
        task_id: TaskId,
        resources: Vec<Resource>,
    },
    /// A task gave places back.
    #[serde(rename = "LOCKS_RELEASED")]
    Released {
        task_id: TaskId,
        resources: Vec<Resource>,
    },
    /// Lines were added to the log of a task.
    #[serde(rename = "WORKLOG_APPENDED")]
    Logged {
        /// Whose log.
        task_id: TaskId,
        lines: Vec<LogLine>,
    },
}

/// A task in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assigned {
    /// Who works on it.
    pub owner: String,
    /// What was agreed.
    pub terms: Terms,
    /// When, as RFC 3339 in UTC.
    pub at: String,
}

/// What a task is about, and what its owner may touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Its name.
    pub task_id: TaskId,
    /// What the whole run is for.
    pub objective: String,
    /// What the task is about.
    pub title: String,
    /// What must be done before.
    pub dependencies: Vec<TaskId>,
    /// What it locks; never empty.
    pub lock_scope: Vec<Resource>,
    /// What it must not touch.
    pub forbidden_scope: Vec<Resource>,
    /// What decides; never empty.
    pub acceptance_criteria: Vec<String>,
    /// What must be kept to; data, never instructions.
    pub constraints: Vec<String>,
    /// How long its owner may be silent.
    pub timeout_seconds: u64,
    /// How often its owner gives a sign of life.
    pub heartbeat_interval_seconds: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// The assignment as it was handed over.
    pub packet: Value,
}

/// How a task ended for its worker. That the report holds was checked by whoever read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub task_id: TaskId,
    /// Done, blocked or failed.
    pub status: Status,
    /// Why it did not succeed, as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The same in words.
    pub reason: String,
    /// The result as it was handed over.
    pub result: Value,
}

/// A task that was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    pub task_id: TaskId,
    /// How long its owner had been silent.
    pub silent_ms: i64,
    /// How long it might have been.
    pub timeout_seconds: u64,
    /// The last sign of life.
    pub last_heartbeat_at: String,
}

/// What keeps a task from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub task_id: TaskId,
    /// Why, as a code.
    pub code: Code,
    /// Why, in words.
    pub reason: String,
}

/// One line of a worklog, with what is judged about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The line as it was written, without its end.
    pub line: String,
    /// Why the task did not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What should happen next.
    pub next_step: String,
}

impl Fact {
    /// The fact as an event of the run `run_id`, at the time `ts`.
    pub fn event(&self, run_id: &str, ts: String) -> Event {
        let (event_type, payload) = record::tagged(self);
        Event {
            ts,
            level: self.level(),
            event_type,
            run_id: run_id.to_owned(),
            task_id: self.task().map(|task| task.as_str().to_owned()),
            attempt: None,
            payload,
            // The run of a planner is what joins its records across tools.
            trace_id: run_id.to_owned(),
        }
    }

    /// The fact that `event` holds.
    pub fn of(event: &Event) -> Result<Self, JsonError> {
        event.untagged()
    }

    /// The task it is about, when it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Assigned(assigned) => Some(&assigned.terms.task_id),
            Self::Ended(ended) => Some(&ended.task_id),
            Self::Heartbeat { task_id, .. }
            | Self::Locked { task_id, .. }
            | Self::Released { task_id, .. }
            | Self::Logged { task_id, .. } => Some(task_id),
            Self::TimedOut { .. } | Self::Applied { .. } => None,
        }
    }

    /// What happened, for a person.
    pub fn words(&self) -> String {
        match self {
            Self::Assigned(one) => {
                format!("{} is in progress with {}", one.terms.task_id, one.owner)
            }
            Self::Heartbeat { task_id, .. } => format!("{task_id} gave a sign of life"),
            Self::Ended(one) => format!("{} is {}", one.task_id, one.status),
            Self::TimedOut { late } => {
                let names: Vec<&str> = late.iter().map(|one| one.task_id.as_str()).collect();
                format!("silent for too long, now blocked: {}", names.join(", "))
            }
            Self::Applied { deltas, .. } => {
                format!("{} applied", counted(deltas.len(), "delta"))
            }
            Self::Locked { task_id, resources } => {
                format!("{task_id} locked {}", counted(resources.len(), "place"))
            }
            Self::Released { task_id, resources } => {
                format!("{task_id} released {}", counted(resources.len(), "place"))
            }
            Self::Logged { task_id, lines } => {
                format!("the log of {task_id} got {}", counted(lines.len(), "line"))
            }
        }
    }

    fn level(&self) -> Level {
        match self {
            Self::TimedOut { .. } => Level::Warn,
            Self::Ended(ended) => match ended.status {
                Status::Blocked | Status::Failed => Level::Warn,
                Status::Todo | Status::InProgress | Status::Done | Status::Canceled => Level::Info,
            },
            Self::Assigned(_)
            | Self::Heartbeat { .. }
            | Self::Applied { .. }
            | Self::Locked { .. }
            | Self::Released { .. }
            | Self::Logged { .. } => Level::Info,
        }
    }
}
