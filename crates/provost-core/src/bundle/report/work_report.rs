//! The report of the agent that did the work, as far as it is known from outside the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::{GateResult, Sha256, Time};
use crate::json::closed;

closed! {
    /// `work_report.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        pub run_id?: String,
        /// Which attempt this was.
        pub attempt?: u32,
        /// Who did the work.
        pub role?: WorkRole,
        /// The commit it began from.
        pub baseline_ref?: String,
        /// What came of it.
        pub head_ref?: String,
        /// The difference.
        pub patch?: FileRef,
        /// The paths that differ.
        pub changed_files?: FileRef,
        /// What the gates said of it.
        pub gates?: WorkGates,
        /// Where the streams of the agent lie.
        pub evidence?: EvidenceFiles,
        /// What to do now.
        pub next_actions?: NextActions,
        /// When.
        pub timestamps?: Timestamps,
        /// What was counted.
        pub metrics?: Map<String, Value>,
        /// What a reader should know besides.
        pub notes?: String,
    }
}

/// How work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkStatus {
    Success,
    Fail,
    Aborted,
}

/// Who did the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkRole {
    Pm,
    TechLead,
    Worker,
    Reviewer,
    TestRunner,
    Orchestrator,
}

closed! {
    /// A file, by path and digest.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct FileRef {
        /// Where it lies, from the root of the bundle.
        pub path: String,
        /// The digest of its bytes.
        pub sha256: Sha256,
        /// How many bytes it has.
        pub bytes?: u64,
        /// What kind of content it has.
        pub mime?: String,
    }
}

closed! {
    /// What the gates said of the work.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct WorkGates {
        /// About the paths and their content.
        pub diff_gate?: GateResult,
        /// About the tools used.
        pub tool_gate?: PartialGate,
    }
}

closed! {
    /// The answer of a gate that may not have been asked.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct PartialGate {
        /// Whether it let the work through.
        pub passed?: bool,
        /// What it held against it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub violations: Vec<String>,
    }
}

closed! {
    /// Where the streams of an agent lie.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct EvidenceFiles {
        /// Its events.
        pub codex_events_jsonl?: String,
        /// Its transcript.
        pub transcript_md?: String,
        /// Its conversation's id.
        pub thread_id_txt?: String,
        /// The trace's id.
        pub trace_id_txt?: String,
        /// The ledger.
        pub orchestrator_events_jsonl?: String,
    }
}

closed! {
    /// What to do now.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct NextActions {
        /// In words.
        pub recommended?: Value,
        /// The smallest widening of the scope that would have done.
        pub suggested_allowed_paths_delta?: Vec<String>,
    }
}

closed! {
    /// When work was done.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Timestamps {
        /// When it began.
        pub started_at?: Time,
        /// When it ended.
        pub finished_at?: Time,
    }
}
