//! The result of a task: what came of it, and what each gate said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Failure, GateResult, Nullable, Time};
use crate::json::closed;

closed! {
    /// `task_result.v1`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskResult {
        /// The run.
        pub run_id: String,
        /// The task.
        pub task_id: String,
        /// Who made this report.
        pub producer: Producer,
        /// How the task ended.
        pub status: TaskStatus,
        /// When it began.
        pub started_at: Time,
        /// When it ended.
        pub finished_at: Time,
        /// The same in words.
        pub summary: String,
        /// What it made.
        pub artifacts: Vec<ArtifactRef>,
        /// What it changed.
        pub git: GitState,
        /// What each gate said.
        pub gates: Gates,
        /// What to do now.
        pub next_steps: NextSteps,
        /// Which attempt this was.
        pub attempt?: u32,
        /// Why it failed.
        #[schemars(with = "Nullable<Failure>")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failure: Option<Failure>,
    }
}

closed! {
    /// Who made a report.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Producer {
        /// Its role.
        pub role: ProducerRole,
        /// Its id.
        pub agent_id: String,
        /// Its conversation.
        pub codex_thread_id?: String,
    }
}

/// The role of who made a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProducerRole {
    Pm,
    TechLead,
    Worker,
    Reviewer,
    TestRunner,
    Searcher,
    Researcher,
    UiUx,
    Frontend,
    Backend,
    Ai,
    Security,
    Infra,
    Test,
    Ops,
    Orchestrator,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskStatus {
    Success,
    Failed,
    Blocked,
    Skipped,
}

/// What a task changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitState {
    /// The commit it began from.
    pub baseline_ref: String,
    /// What came of it.
    pub head_ref: String,
    /// The paths that differ.
    pub changed_files: ArtifactRef,
    /// The difference.
    pub patch: ArtifactRef,
}

/// What each gate said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// About the paths and their content.
    pub diff_gate: GateResult,
    /// About what the contract asks for.
    pub policy_gate: GateResult,
    /// About the review.
    pub review_gate: GateResult,
    /// About the acceptance commands.
    pub tests_gate: GateResult,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextSteps {
    /// In a word.
    pub suggested_action: String,
    /// In more.
    pub notes: String,
}
