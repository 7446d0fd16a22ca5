//! The report of a run that was executed again: what came out the same and what did not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::Time;
use crate::json::closed;

/// `reexec_report.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReexecReport {
    /// The run.
    pub run_id: String,
    /// Whether it came out the same.
    pub status: ReexecStatus,
    /// When it was executed again.
    pub reexec_ts: Time,
    /// Whether everything that must be equal is.
    pub hard_equal_pass: bool,
    /// Whether everything that should be equal is.
    pub soft_equal_pass: bool,
    /// What must be equal and is not.
    pub hard_diffs: Vec<Difference>,
    /// What should be equal and is not.
    pub soft_diffs: Vec<Difference>,
    /// What could not be compared.
    pub errors: Vec<String>,
}

/// Whether a run came out the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReexecStatus {
    Pass,
    Fail,
}

closed! {
    /// One thing that differs.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Difference {
        /// What it is.
        pub key: String,
        /// What it was.
        pub expected?: Value,
        /// What it is now.
        pub actual?: Value,
    }
}
