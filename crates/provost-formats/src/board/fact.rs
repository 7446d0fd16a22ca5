//! The facts that make up a stored board, one per record.
//!
//! A record is one line, so a fact is stored as a whole or not at all. Payloads are stored as they
//! were received and are never interpreted here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use provost_core::code::Code;
use provost_core::json::ReadError;
use provost_core::record::{self, Event, Level};
use provost_core::wording::counted;

use super::delta::Delta;
use super::row::{Priority, Status, TaskId};
use provost_core::resource::Resource;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// A worker got a task, and the task got its locks.
    #[serde(rename = "TASK_ASSIGNED")]
    Assigned(Box<Assigned>),
    /// An owner sent a heartbeat.
    #[serde(rename = "TASK_HEARTBEAT")]
    Heartbeat {
        task_id: TaskId,
        /// RFC 3339 in UTC.
        at: String,
    },
    /// A worker reported how its task ended; the locks of the task are released.
    #[serde(rename = "TASK_RESULT")]
    Ended(Box<Ended>),
    /// The watchdog blocked tasks whose owners were silent; their locks are released.
    #[serde(rename = "TASKS_TIMED_OUT")]
    TimedOut { late: Vec<Silent> },
    /// A batch of deltas was applied.
    #[serde(rename = "DELTAS_APPLIED")]
    Applied {
        /// The deltas, in their order.
        deltas: Vec<Delta>,
        /// Why tasks of the batch are blocked.
        blockers: Vec<Blocker>,
        /// RFC 3339 in UTC.
        at: String,
        /// The terms of tasks that deltas of the batch begin.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        terms: Vec<Terms>,
    },
    /// A task locked resources.
    #[serde(rename = "LOCKS_TAKEN")]
    Locked {
        task_id: TaskId,
        resources: Vec<Resource>,
    },
    /// A task released resources.
    #[serde(rename = "LOCKS_RELEASED")]
    Released {
        task_id: TaskId,
        resources: Vec<Resource>,
    },
    /// Lines were added to the log of a task.
    #[serde(rename = "WORKLOG_APPENDED")]
    Logged {
        task_id: TaskId,
        lines: Vec<LogLine>,
    },
}

/// A task that a worker took on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assigned {
    pub owner: String,
    pub terms: Terms,
    /// RFC 3339 in UTC.
    pub at: String,
}

/// The terms of a task: its goal, and what its owner may touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub task_id: TaskId,
    /// What the whole run is for.
    pub objective: String,
    pub title: String,
    /// Tasks that must be done first.
    pub dependencies: Vec<TaskId>,
    /// Resources that it locks; never empty.
    pub lock_scope: Vec<Resource>,
    /// Resources that it must not touch.
    pub forbidden_scope: Vec<Resource>,
    /// Criteria that decide whether it is done; never empty.
    pub acceptance_criteria: Vec<String>,
    /// Constraints that the owner keeps to; data, never instructions.
    pub constraints: Vec<String>,
    /// How long its owner may be silent.
    pub timeout_seconds: u64,
    /// How often its owner sends a heartbeat.
    pub heartbeat_interval_seconds: u64,
    pub priority: Priority,
    /// The assignment as it was received.
    pub packet: Value,
}

/// How a task ended for its worker. The caller that read the report has checked it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub task_id: TaskId,
    /// Done, blocked or failed.
    pub status: Status,
    /// Why it did not succeed, as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The same as text.
    pub reason: String,
    /// The result as it was received.
    pub result: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    pub task_id: TaskId,
    pub silent_ms: i64,
    /// How long its owner may be silent.
    pub timeout_seconds: u64,
    /// RFC 3339 in UTC.
    pub last_heartbeat_at: String,
}

/// Why a task cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub task_id: TaskId,
    pub code: Code,
    pub reason: String,
}

/// One line of a worklog, with the fields that are judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The line as it was written, without its line end.
    pub line: String,
    /// Why the task did not continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
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
            // The run of a planner joins its records across tools.
            trace_id: run_id.to_owned(),
        }
    }

    pub fn of(event: &Event) -> Result<Self, ReadError> {
        event.untagged()
    }

    /// The task it is about; `None` for a fact about several.
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

    /// A description for users.
    pub fn words(&self) -> String {
        match self {
            Self::Assigned(one) => {
                format!("{} is in progress with {}", one.terms.task_id, one.owner)
            }
            Self::Heartbeat { task_id, .. } => format!("{task_id} sent a heartbeat"),
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
