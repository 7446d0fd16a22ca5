//! The report about the evidence itself: what a run did not leave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `evidence_report.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceReport {
    /// Whether everything is there.
    pub status: EvidenceStatus,
    /// What is not: paths from the root of the bundle.
    pub missing: Vec<String>,
}

/// Whether everything is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceStatus {
    Ok,
    Fail,
}
