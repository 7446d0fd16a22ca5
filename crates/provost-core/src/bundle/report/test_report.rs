//! The report of the acceptance commands: what ran, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Failure, Judged, Nullable, Time, one_or_more, seconds};
use crate::json::closed;

closed! {
    /// `test_report.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TestReport {
        /// The run.
        pub run_id: String,
        /// The task.
        pub task_id: String,
        /// Who ran the commands.
        pub runner: TestRunner,
        /// When the first began.
        pub started_at: Time,
        /// When the last ended.
        pub finished_at: Time,
        /// How they ended together; `SKIPPED` when none ran.
        pub status: TestStatus,
        /// The commands, in the order they ran.
        pub commands: Vec<CommandResult>,
        /// What they left besides.
        pub artifacts: Vec<ArtifactRef>,
        /// Which attempt was judged.
        pub attempt?: u32,
        /// How many tests.
        pub summary?: TestSummary,
        /// Why it failed, or why nothing ran.
        #[schemars(with = "Nullable<Failure>")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failure: Option<Failure>,
        /// What Provost adds.
        pub x_provost?: Judged,
    }
}

/// Who ran the commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRunner {
    /// Its role.
    pub role: TestRunnerRole,
    /// Its id.
    pub agent_id: String,
}

/// The roles that run acceptance commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TestRunnerRole {
    TestRunner,
    Orchestrator,
}

/// How the commands ended together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TestStatus {
    Pass,
    Fail,
    Error,
    Skipped,
}

closed! {
    /// One command and how it ended.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct CommandResult {
        /// What the contract calls it.
        pub name: String,
        /// The program and its arguments; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub cmd_argv: Vec<String>,
        /// Whether the contract needs it to pass.
        pub must_pass: bool,
        /// When it would have been stopped.
        #[serde(deserialize_with = "seconds")]
        #[schemars(range(min = 0))]
        pub timeout_sec: f64,
        /// How it ended.
        pub exit_code: i64,
        /// How long it took.
        #[serde(deserialize_with = "seconds")]
        #[schemars(range(min = 0))]
        pub duration_sec: f64,
        /// What it printed.
        pub stdout: ArtifactRef,
        /// What it printed as errors.
        pub stderr: ArtifactRef,
        /// Where it ran.
        pub cwd?: String,
    }
}

closed! {
    /// How many tests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct TestSummary {
        /// Passed.
        pub passed?: u64,
        /// Failed.
        pub failed?: u64,
        /// Skipped.
        pub skipped?: u64,
    }
}
