//! The report of the agent's work, as far as it is known from outside the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::{GateResult, Sha256, Time};
use crate::closed::closed;

closed! {
    /// `work_report.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct WorkReport {
        /// The task.
        pub task_id: String,
        /// How the work ended.
        pub status: WorkStatus,
        /// The path of the patch.
        pub patch_ref: String,
        /// The changes as text.
        pub diff_summary: String,
        /// Paths of evidence files, by name.
        pub evidence_refs: Map<String, Value>,
        /// Why it failed; empty if it did not.
        pub failure_reason: String,
        /// The run.
        pub run_id?: String,
        /// Which attempt this was.
        pub attempt?: u32,
        /// The role of the worker.
        pub role?: WorkRole,
        /// The base commit.
        pub baseline_ref?: String,
        /// The resulting commit or tree.
        pub head_ref?: String,
        /// The patch.
        pub patch?: FileRef,
        /// The changed paths.
        pub changed_files?: FileRef,
        /// The verdicts of the gates.
        pub gates?: WorkGates,
        /// Paths of the agent's output streams.
        pub evidence?: EvidenceFiles,
        /// What to do next.
        pub next_actions?: NextActions,
        /// When the work started and ended.
        pub timestamps?: Timestamps,
        /// Measurements.
        pub metrics?: Map<String, Value>,
        /// Further notes.
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

/// The role of a worker.
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
        /// Its path from the root of the bundle.
        pub path: String,
        /// The digest of its bytes.
        pub sha256: Sha256,
        /// Its size in bytes.
        pub bytes?: u64,
        /// Its media type.
        pub mime?: String,
    }
}

closed! {
    /// The verdicts of the gates on the work.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct WorkGates {
        /// The verdict about the changed paths and their content.
        pub diff_gate?: GateResult,
        /// The verdict about the tools used.
        pub tool_gate?: PartialGate,
    }
}

closed! {
    /// The verdict of a gate that may not have run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct PartialGate {
        /// Whether it allowed the work.
        pub passed?: bool,
        /// The violations that it found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub violations: Vec<String>,
    }
}

closed! {
    /// Paths of an agent's output streams.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct EvidenceFiles {
        /// The path of its events.
        pub codex_events_jsonl?: String,
        /// The path of its transcript.
        pub transcript_md?: String,
        /// The path of the file with its conversation's id.
        pub thread_id_txt?: String,
        /// The path of the file with the trace id.
        pub trace_id_txt?: String,
        /// The path of the ledger.
        pub orchestrator_events_jsonl?: String,
    }
}

closed! {
    /// What to do next.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct NextActions {
        /// The recommended action.
        pub recommended?: Value,
        /// The smallest addition to the allowed paths that would have sufficed.
        pub suggested_allowed_paths_delta?: Vec<String>,
    }
}

closed! {
    /// When work started and ended.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Timestamps {
        /// When it began.
        pub started_at?: Time,
        /// When it ended.
        pub finished_at?: Time,
    }
}
