//! The result of a task, and the verdict of each gate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Failure, GateResult, Nullable, Time};
use crate::closed::closed;

closed! {
    /// `task_result.v1`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskResult {
        /// The run.
        pub run_id: String,
        /// The task.
        pub task_id: String,
        /// The producer of this report.
        pub producer: Producer,
        /// How the task ended.
        pub status: TaskStatus,
        /// When it began.
        pub started_at: Time,
        /// When it ended.
        pub finished_at: Time,
        /// The result as text.
        pub summary: String,
        /// The files it made.
        pub artifacts: Vec<ArtifactRef>,
        /// The commits and changes of the task.
        pub git: GitState,
        /// The verdict of each gate.
        pub gates: Gates,
        /// What to do next.
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
    /// The producer of a report.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Producer {
        /// Its role.
        pub role: ProducerRole,
        /// Its id.
        pub agent_id: String,
        /// The id of its conversation.
        pub codex_thread_id?: String,
    }
}

/// The role of a report's producer.
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

/// The commits and changes of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitState {
    /// The base commit.
    pub baseline_ref: String,
    /// The resulting commit or tree.
    pub head_ref: String,
    /// The changed paths.
    pub changed_files: ArtifactRef,
    /// The patch.
    pub patch: ArtifactRef,
}

/// The verdict of each gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// The verdict about the changed paths and their content.
    pub diff_gate: GateResult,
    /// The verdict about the contract.
    pub policy_gate: GateResult,
    /// The verdict about the review.
    pub review_gate: GateResult,
    /// The verdict about the acceptance commands.
    pub tests_gate: GateResult,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextSteps {
    /// The next action, as one word.
    pub suggested_action: String,
    /// The next action, explained.
    pub notes: String,
}
