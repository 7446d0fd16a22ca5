//! The report of the agent that did the work, as far as it is known from outside the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::{GateResult, Sha256, Time, present};

/// `work_report.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkReport {
    /// The task.
    pub task_id: String,
    /// How the work ended.
    pub status: WorkStatus,
    /// Where the patch lies.
    pub patch_ref: String,
    /// The difference in words.
    pub diff_summary: String,
    /// Where evidence lies, by name.
    pub evidence_refs: Map<String, Value>,
    /// Why it failed; empty when it did not.
    pub failure_reason: String,
    /// The run.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub run_id: Option<String>,
    /// Which attempt this was.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub attempt: Option<u32>,
    /// Who did the work.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub role: Option<WorkRole>,
    /// The commit it began from.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub baseline_ref: Option<String>,
    /// What came of it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub head_ref: Option<String>,
    /// The difference.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub patch: Option<FileRef>,
    /// The paths that differ.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub changed_files: Option<FileRef>,
    /// What the gates said of it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub gates: Option<WorkGates>,
    /// Where the streams of the agent lie.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub evidence: Option<EvidenceFiles>,
    /// What to do now.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub next_actions: Option<NextActions>,
    /// When.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub timestamps: Option<Timestamps>,
    /// What was counted.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub metrics: Option<Map<String, Value>>,
    /// What a reader should know besides.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub notes: Option<String>,
}

/// How work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the format's and say it all")]
pub enum WorkStatus {
    Success,
    Fail,
    Aborted,
}

/// Who did the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the format's and say it all")]
pub enum WorkRole {
    Pm,
    TechLead,
    Worker,
    Reviewer,
    TestRunner,
    Orchestrator,
}

/// A file, by path and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRef {
    /// Where it lies, from the root of the bundle.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Sha256,
    /// How many bytes it has.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub bytes: Option<u64>,
    /// What kind of content it has.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub mime: Option<String>,
}

/// What the gates said of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkGates {
    /// About the paths and their content.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub diff_gate: Option<GateResult>,
    /// About the tools used.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_gate: Option<PartialGate>,
}

/// The answer of a gate that may not have been asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialGate {
    /// Whether it let the work through.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub passed: Option<bool>,
    /// What it held against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<String>,
}

/// Where the streams of an agent lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFiles {
    /// Its events.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub codex_events_jsonl: Option<String>,
    /// Its transcript.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub transcript_md: Option<String>,
    /// Its conversation's id.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub thread_id_txt: Option<String>,
    /// The trace's id.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub trace_id_txt: Option<String>,
    /// The ledger.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub orchestrator_events_jsonl: Option<String>,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextActions {
    /// In words.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub recommended: Option<Value>,
    /// The smallest widening of the scope that would have done.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub suggested_allowed_paths_delta: Option<Vec<String>>,
}

/// When work was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timestamps {
    /// When it began.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub finished_at: Option<Time>,
}
