//! One task on the board: its id, its state and its owner.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use provost_core::schema::leaf::{self, UtcTime};
use provost_core::text_schema;
use provost_core::words;

/// `T-` and digits, or 36 hexadecimal digits and dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a task id: `T-` and digits, or a UUID")]
pub struct NoTaskId(pub String);

impl TaskId {
    /// `None` if `text` is not a task id.
    pub fn parse(text: &str) -> Option<Self> {
        leaf::is_task_id(text).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TaskId {
    type Error = NoTaskId;

    fn try_from(text: String) -> Result<Self, NoTaskId> {
        if leaf::is_task_id(&text) {
            Ok(Self(text))
        } else {
            Err(NoTaskId(text))
        }
    }
}

impl From<TaskId> for String {
    fn from(task: TaskId) -> Self {
        task.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

text_schema!(TaskId, { "type": "string", "pattern": leaf::TASK_ID });

words! {
    /// The state of a task.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    pub enum Status {
        /// No worker has begun.
        Todo = "todo",
        /// Its owner works on it.
        InProgress = "in_progress",
        /// It waits until its blocker is resolved.
        Blocked = "blocked",
        /// It is finished, and the result was checked.
        Done = "done",
        /// It ended without success.
        Failed = "failed",
        /// It was withdrawn.
        Canceled = "canceled",
    }
}

impl Status {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Canceled => true,
            Self::Todo | Self::InProgress | Self::Blocked => false,
        }
    }

    /// Whether a task may go from this state to `next`. An ended task may only repeat the state in
    /// which it ended.
    pub fn may_become(self, next: Self) -> bool {
        use Status::{Blocked, Canceled, Done, Failed, InProgress, Todo};
        match self {
            Todo => matches!(next, InProgress | Blocked | Failed | Canceled),
            InProgress => matches!(next, Done | Blocked | Failed | Canceled),
            Blocked => matches!(next, Todo | InProgress | Failed | Canceled),
            Done | Failed | Canceled => next == self,
        }
    }
}

words! {
    #[derive(PartialOrd, Ord, Deserialize, Default, JsonSchema)]
    pub enum Priority {
        /// When there is nothing else.
        Low = "low",
        /// In its turn.
        #[default]
        Normal = "normal",
        /// Before the others.
        High = "high",
        /// At once.
        Critical = "critical",
    }
}

/// What the watchdog needs to know about a task; absent if no delta says it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pulse {
    /// When its owner last sent a heartbeat, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UtcTime>")]
    pub last_heartbeat_at: Option<String>,
    /// Whether the watchdog took it away from its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// How long to wait before the next try.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub retry_after_ms: Option<i64>,
}

impl Pulse {
    /// Whether every field is absent.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    /// Overwrites the fields that `newer` has.
    pub fn update(&mut self, newer: &Self) {
        if newer.last_heartbeat_at.is_some() {
            self.last_heartbeat_at.clone_from(&newer.last_heartbeat_at);
        }
        self.timed_out = newer.timed_out.or(self.timed_out);
        self.retry_after_ms = newer.retry_after_ms.or(self.retry_after_ms);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub task_id: TaskId,
    pub status: Status,
    /// Empty when the task has no owner.
    pub owner: String,
    /// The tasks that must be done before it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    #[serde(flatten)]
    pub pulse: Pulse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_names() {
        let uuid = "0f9e8d7c-6b5a-4c3d-9e2f-1a0b9c8d7e6f";
        for good in [
            "T-1",
            "T-0012",
            uuid,
            "------------------------------------",
        ] {
            assert!(TaskId::parse(good).is_some(), "{good}");
        }
        let long = format!("{uuid}\n");
        for bad in [
            "", "T-", "T-1\n", "t-1", "T-１", "T-1 ", " T-1", "T1", &long,
        ] {
            assert!(TaskId::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_task_goes_only_where_the_table_says() {
        // Rows are the present state, columns the next one, both in the order of `ALL`.
        let table = [
            [false, true, true, false, true, true],
            [false, false, true, true, true, true],
            [true, true, false, false, true, true],
            [false, false, false, true, false, false],
            [false, false, false, false, true, false],
            [false, false, false, false, false, true],
        ];
        for (from, row) in Status::ALL.into_iter().zip(table) {
            for (to, want) in Status::ALL.into_iter().zip(row) {
                assert_eq!(from.may_become(to), want, "{from} → {to}");
            }
        }
    }
}
