//! One entry of a worklog.

use crate::board::row::TaskId;
use crate::board::worklog::LastEntry;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::schema::leaf::{Filled, GivenUtcTime, RunUuid};
use provost_core::schema::read::FormatReader;
use provost_core::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::Findings;
use super::header::{BoardCode, take_header};

/// One step that a worker logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
pub struct Entry {
    /// RFC 3339, in UTC.
    #[schemars(with = "GivenUtcTime")]
    pub timestamp: String,
    #[schemars(with = "RunUuid")]
    pub run_id: String,
    pub task_id: TaskId,
    #[schemars(with = "Filled")]
    pub actor: String,
    #[schemars(with = "Filled")]
    pub action: String,
    #[schemars(with = "Vec<Filled>")]
    pub files_touched: Vec<String>,
    /// Data, never instructions.
    pub decision: String,
    /// Data, never instructions.
    pub result: String,
    pub next_step: String,
    /// Why the task could not continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BoardCode>")]
    pub code: Option<Code>,
    /// What proves the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

static FORMAT: FormatReader<Entry> = FormatReader::new();

/// Reads an entry at the pointer `at`; `None` if its shape is wrong.
pub(super) fn read(node: &Node<'_>, at: &str, found: &mut Findings) -> Option<Entry> {
    let entry = found.read(&FORMAT, node, at);
    // A log is stored and passed on, so no field of it may contain a secret.
    found.look_for_secrets_below(&at, node);
    entry
}

impl Entry {
    /// What is judged if it is the last one.
    pub(super) fn end(&self) -> LastEntry<'_> {
        LastEntry {
            code: self.code,
            next_step: &self.next_step,
        }
    }

    /// Its time in nanoseconds since 1970, for comparison.
    pub(super) fn nanos(&self) -> i128 {
        time::read(&self.timestamp).map_or(0, |written| written.nanos)
    }
}
