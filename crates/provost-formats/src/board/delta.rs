//! Applies changes to the rows of a board.
//!
//! # Invariants
//!
//! - Deltas are applied in their order; a batch changes the board as a whole or not at all.
//! - A delta counts once: its id is stored, and a second delta with that id changes nothing.
//! - A row begins as `todo`, and every delta is a step that the table of states permits.
//! - Each batch that changed something makes the version one larger. A batch built on another
//!   version is refused, unless all of it had been applied before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use provost_core::code::Code;

use super::row::{Pulse, Row, Status, TaskId};

/// One change of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The same id is the same change.
    pub delta_id: String,
    pub task_id: TaskId,
    pub status: Status,
    pub owner: String,
    pub reason: String,
    /// Whether the delta creates the row.
    pub create: Create,
    /// What the watchdog learns.
    pub pulse: Pulse,
}

impl Delta {
    /// The error for this delta, which has the position `at` in its batch.
    pub(super) fn refused(&self, at: usize) -> impl FnOnce(Fault) -> DeltaError {
        let delta_id = self.delta_id.clone();
        move |fault| DeltaError::Refused {
            at,
            delta_id,
            fault,
        }
    }
}

/// Whether a delta creates its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Create {
    Yes,
    No,
    /// Not stated; then `todo` on an unknown task creates the row.
    Unsaid,
}

/// What to do about an id that is used again with another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// The first one counts, the other is skipped.
    Ignore,
    /// Two writers chose one id: refuse.
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    #[error("{0} has two rows")]
    TwoRows(TaskId),
    #[error("the batch was built on version {base}, but the board has version {current}")]
    Stale { base: u64, current: u64 },
    #[error("delta `{delta_id}`: {fault}")]
    Refused {
        at: usize,
        delta_id: String,
        fault: Fault,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0} is not on the board, and the delta does not create it")]
    UnknownTask(TaskId),
    #[error("{0} is on the board already")]
    Exists(TaskId),
    #[error("a task that is {from} does not become {to}")]
    NoStep { from: Status, to: Status },
    #[error("a task that is {0} keeps its owner")]
    OwnerKept(Status),
    /// An ended task takes no heartbeat.
    #[error("a task that is {0} stays as it ended")]
    Ended(Status),
    #[error("a task in progress needs an owner")]
    NoOwner,
    #[error("the id was used for another change")]
    Reused,
}

impl DeltaError {
    pub fn code(&self) -> Code {
        match self {
            Self::TwoRows(_) => Code::LedgerInconsistent,
            Self::Stale { .. } => Code::ConcurrencyConflict,
            Self::Refused { fault, .. } => fault.code(),
        }
    }
}

impl Fault {
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownTask(_) | Self::NoOwner => Code::LedgerInconsistent,
            Self::Exists(_) | Self::Ended(_) | Self::Reused => Code::ConcurrencyConflict,
            Self::NoStep { .. } | Self::OwnerKept(_) => Code::InvalidTransition,
        }
    }
}

/// The rows of a board, and the changes that were applied to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    version: u64,
    rows: Vec<Row>,
    index: BTreeMap<TaskId, usize>,
    /// Every id that was applied, with its change where that is known.
    applied: BTreeMap<String, Option<Delta>>,
}

impl Ledger {
    /// A board with these rows, on which the deltas with the ids `applied` were applied.
    pub fn new(
        version: u64,
        rows: Vec<Row>,
        applied: impl IntoIterator<Item = String>,
    ) -> Result<Self, DeltaError> {
        let mut index = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            if index.insert(row.task_id.clone(), at).is_some() {
                return Err(DeltaError::TwoRows(row.task_id.clone()));
            }
        }
        let applied = applied.into_iter().map(|id| (id, None)).collect();
        Ok(Self {
            version,
            rows,
            index,
            applied,
        })
    }

    /// The rows, oldest first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// How many batches have changed the board.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn apply(&self, batch: &[Delta], reuse: Reuse) -> Result<Self, DeltaError> {
        let mut next = self.clone();
        let mut changed = false;
        for (at, delta) in batch.iter().enumerate() {
            let step = next.step(delta, reuse).map_err(delta.refused(at))?;
            changed |= step == Taken::Applied;
        }
        next.version = next.version.saturating_add(u64::from(changed));
        Ok(next)
    }

    /// The board after `batch`, which was built on the version `base`.
    pub fn apply_on(&self, base: u64, batch: &[Delta], reuse: Reuse) -> Result<Self, DeltaError> {
        self.require_base(base, batch)?;
        self.apply(batch, reuse)
    }

    /// Refuses a batch that was built on another version, unless all of it was applied before.
    pub(super) fn require_base(&self, base: u64, batch: &[Delta]) -> Result<(), DeltaError> {
        let is_replay = !batch.is_empty() && batch.iter().all(|delta| self.knows(delta));
        if base == self.version || is_replay {
            return Ok(());
        }
        Err(DeltaError::Stale {
            base,
            current: self.version,
        })
    }

    pub fn row(&self, task: &TaskId) -> Option<&Row> {
        self.index.get(task).map(|at| &self.rows[*at])
    }

    pub(super) fn knows(&self, delta: &Delta) -> bool {
        self.applied.contains_key(&delta.delta_id)
    }

    /// Counts one more batch that changed the board.
    pub(super) fn advance(&mut self) {
        self.version = self.version.saturating_add(1);
    }

    /// Records the dependencies of `task`.
    pub(super) fn depend(&mut self, task: &TaskId, dependencies: &[TaskId]) {
        if let Some(at) = self.index.get(task) {
            self.rows[*at].dependencies = dependencies.to_vec();
        }
    }

    /// Applies one delta; an id that was applied before changes nothing.
    pub(super) fn step(&mut self, delta: &Delta, reuse: Reuse) -> Result<Taken, Fault> {
        if let Some(earlier) = self.applied.get(&delta.delta_id) {
            let differs = earlier.as_ref().is_some_and(|earlier| earlier != delta);
            return match reuse {
                Reuse::Refuse if differs => Err(Fault::Reused),
                Reuse::Refuse | Reuse::Ignore => Ok(Taken::Known),
            };
        }
        self.change(delta)?;
        let id = delta.delta_id.clone();
        self.applied.insert(id, Some(delta.clone()));
        Ok(Taken::Applied)
    }

    /// Applies `delta` to its row without looking at its id.
    pub(super) fn change(&mut self, delta: &Delta) -> Result<(), Fault> {
        let at = match (self.index.get(&delta.task_id), delta.create) {
            (Some(_), Create::Yes) => return Err(Fault::Exists(delta.task_id.clone())),
            (Some(at), Create::No | Create::Unsaid) => {
                check_step(&self.rows[*at], delta)?;
                *at
            }
            (None, Create::Yes) => self.create(delta)?,
            (None, Create::Unsaid) if delta.status == Status::Todo => self.create(delta)?,
            (None, Create::No | Create::Unsaid) => {
                return Err(Fault::UnknownTask(delta.task_id.clone()));
            }
        };
        let row = &mut self.rows[at];
        row.status = delta.status;
        row.owner.clone_from(&delta.owner);
        row.pulse.update(&delta.pulse);
        Ok(())
    }

    /// Creates a row, which begins as `todo` and may take one step at once.
    fn create(&mut self, delta: &Delta) -> Result<usize, Fault> {
        let row = Row {
            task_id: delta.task_id.clone(),
            status: Status::Todo,
            owner: String::new(),
            dependencies: Vec::new(),
            pulse: Pulse::default(),
        };
        if delta.status != Status::Todo {
            check_step(&row, delta)?;
        }
        self.index.insert(delta.task_id.clone(), self.rows.len());
        self.rows.push(row);
        Ok(self.rows.len() - 1)
    }
}

/// Result of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Applied,
    /// It had been applied before.
    Known,
}

fn check_step(row: &Row, delta: &Delta) -> Result<(), Fault> {
    let (from, to) = (row.status, delta.status);
    // An open task may get another owner or a heartbeat without a step.
    let is_update = from == to && (row.owner != delta.owner || !delta.pulse.is_silent());
    if !from.may_become(to) && !is_update {
        return Err(Fault::NoStep { from, to });
    }
    if from.is_terminal() && row.owner != delta.owner {
        return Err(Fault::OwnerKept(from));
    }
    let mut pulse = row.pulse.clone();
    pulse.update(&delta.pulse);
    if from.is_terminal() && pulse != row.pulse {
        return Err(Fault::Ended(from));
    }
    if to == Status::InProgress && delta.owner.trim().is_empty() {
        return Err(Fault::NoOwner);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
