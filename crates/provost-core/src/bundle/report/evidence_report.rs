//! The report about the evidence itself: which files are missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `evidence_report.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceReport {
    /// Whether all evidence is there.
    pub status: EvidenceStatus,
    /// The missing files, as paths from the root of the bundle.
    pub missing: Vec<String>,
}

/// Whether all evidence is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceStatus {
    Ok,
    Fail,
}
