//! The report of the acceptance commands: which ran, and how they ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Failure, Judged, Nullable, Time, one_or_more, seconds};
use crate::closed::closed;

closed! {
    /// `test_report.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TestReport {
        /// The run.
        pub run_id: String,
        /// The task.
        pub task_id: String,
        /// The runner of the commands.
        pub runner: TestRunner,
        /// When the first command started.
        pub started_at: Time,
        /// When the last command ended.
        pub finished_at: Time,
        /// The combined status; `SKIPPED` if no command ran.
        pub status: TestStatus,
        /// The commands, in the order they ran.
        pub commands: Vec<CommandResult>,
        /// Further files that they left.
        pub artifacts: Vec<ArtifactRef>,
        /// Which attempt was tested.
        pub attempt?: u32,
        /// The number of tests.
        pub summary?: TestSummary,
        /// Why a command failed, or why none ran.
        #[schemars(with = "Nullable<Failure>")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failure: Option<Failure>,
        /// Provost's additions.
        pub x_provost?: Judged,
    }
}

/// The runner of the commands.
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

/// The combined status of the commands.
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
        /// Its name in the contract.
        pub name: String,
        /// The program and its arguments; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub cmd_argv: Vec<String>,
        /// Whether the contract requires it to pass.
        pub must_pass: bool,
        /// Its time limit, in seconds.
        #[serde(deserialize_with = "seconds")]
        #[schemars(range(min = 0))]
        pub timeout_sec: f64,
        /// Its exit code.
        pub exit_code: i64,
        /// Its duration, in seconds.
        #[serde(deserialize_with = "seconds")]
        #[schemars(range(min = 0))]
        pub duration_sec: f64,
        /// Its standard output.
        pub stdout: ArtifactRef,
        /// Its standard error.
        pub stderr: ArtifactRef,
        /// Its working directory.
        pub cwd?: String,
    }
}

closed! {
    /// The number of tests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct TestSummary {
        /// How many passed.
        pub passed?: u64,
        /// How many failed.
        pub failed?: u64,
        /// How many were skipped.
        pub skipped?: u64,
    }
}
