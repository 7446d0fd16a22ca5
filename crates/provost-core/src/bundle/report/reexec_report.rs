//! The report of a replay: what was equal and what was not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::Time;
use crate::closed::closed;

/// `reexec_report.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReexecReport {
    /// The run.
    pub run_id: String,
    /// Whether the results were equal.
    pub status: ReexecStatus,
    /// When it was replayed.
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

/// Whether the results of a replay were equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReexecStatus {
    Pass,
    Fail,
}

closed! {
    /// One difference.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Difference {
        /// What differs.
        pub key: String,
        /// The sealed value.
        pub expected?: Value,
        /// The value of the replay.
        pub actual?: Value,
    }
}
