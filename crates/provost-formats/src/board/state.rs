//! The state of a stored board: a fold over its facts.
//!
//! # Invariants
//!
//! - There is no state beside the facts; the same facts give the same board.
//! - The version is the number of facts. A fact that breaks the rules is not a step of any board,
//!   so a fold that reads one stops.
//! - A task that becomes blocked, done, failed or canceled releases all its locks in that step.

use std::collections::BTreeMap;

use serde_json::Value;

use provost_core::json::ReadError;
use provost_core::record::Record;

use super::decide::Refusal;
use super::delta::Ledger;
use super::fact::{Blocker, Fact, LogLine, Terms};
use super::lock::{Lock, Locks};
use super::row::{Row, TaskId};
use provost_core::resource::Resource;

mod apply;

/// A board: rows, locks, and the card of each task.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    run_id: String,
    /// What the run is for, as the last assignment says.
    objective: String,
    ledger: Ledger,
    locks: Locks,
    cards: BTreeMap<TaskId, Card>,
}

/// What is known about a task beside its row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Card {
    /// Why its row was created.
    pub origin: String,
    /// The terms, once it was assigned.
    pub terms: Option<Terms>,
    /// The last result as it was received.
    pub result: Option<Value>,
    pub blocker: Option<Blocker>,
    pub log: Vec<LogLine>,
}

/// A record that is not a step of the board before it.
#[derive(Debug, thiserror::Error)]
pub enum NoStep {
    #[error("record {seq} is no fact of a board")]
    NoFact { seq: u64, source: ReadError },
    #[error("record {seq} belongs to another run")]
    OtherRun { seq: u64 },
    #[error("record {seq} breaks a rule")]
    Refused { seq: u64, source: Refusal },
}

impl Board {
    pub fn new(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            objective: String::new(),
            ledger: Ledger::default(),
            locks: Locks::default(),
            cards: BTreeMap::new(),
        }
    }

    /// The board of the run `run_id` after all `records`.
    pub fn fold(run_id: &str, records: &[Record]) -> Result<Self, NoStep> {
        let mut board = Self::new(run_id);
        for record in records {
            let seq = record.seq;
            if record.event.run_id != run_id {
                return Err(NoStep::OtherRun { seq });
            }
            let fact = Fact::of(&record.event).map_err(|source| NoStep::NoFact { seq, source })?;
            let step = board.apply(&fact);
            step.map_err(|source| NoStep::Refused { seq, source })?;
        }
        Ok(board)
    }

    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Empty until a task was assigned.
    pub fn objective(&self) -> &str {
        &self.objective
    }

    /// How many batches have changed it.
    pub fn version(&self) -> u64 {
        self.ledger.version()
    }

    /// The rows, oldest first.
    pub fn rows(&self) -> &[Row] {
        self.ledger.rows()
    }

    pub fn row(&self, task: &TaskId) -> Result<&Row, Refusal> {
        let row = self.ledger.row(task);
        row.ok_or_else(|| Refusal::UnknownTask(task.clone()))
    }

    /// The locks, active and past, oldest first.
    pub fn locks(&self) -> &[Lock] {
        self.locks.list()
    }

    /// The resources that `task` holds.
    pub fn held_by(&self, task: &TaskId) -> Vec<Resource> {
        let own = |lock: &&Lock| lock.active && lock.task_id == *task;
        let held = self.locks.list().iter().filter(own);
        held.map(|lock| lock.resource.clone()).collect()
    }

    pub fn card(&self, task: &TaskId) -> Option<&Card> {
        self.cards.get(task)
    }

    pub fn terms(&self, task: &TaskId) -> Option<&Terms> {
        self.cards.get(task)?.terms.as_ref()
    }

    pub fn log(&self, task: &TaskId) -> &[LogLine] {
        self.cards.get(task).map_or(&[], |card| &card.log)
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

#[cfg(test)]
mod tests;
