//! How a run was carried out: program, model, environment and sandbox. No gate depends on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::Sha256;
use crate::closed::closed;
use crate::run::fact::SandboxTest;

closed! {
    /// `run_meta.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct RunMeta {
        /// The version of Provost.
        pub provost: String,
        /// The command of the agent.
        pub agent: Vec<String>,
        /// The adapter of its program; `exec` for any other program.
        pub adapter: String,
        /// What the program answered to `--version`.
        pub program_version?: String,
        /// The model that it was started with; absent if its own settings decide.
        pub model?: String,
        /// SHA-256 of the variables of its sandbox, without the id of the run.
        pub environment_sha256?: Sha256,
        /// Whether its tool calls are in the bundle.
        pub tool_calls: ToolCalls,
        /// The self-test of its sandbox; absent if the run did not reach it.
        pub sandbox?: SandboxTest,
        /// The same, by the word of bundle format 1.
        pub r#box?: SandboxTest,
        /// How often another process took the run over.
        pub resumed: u32,
        /// How many attempts there were.
        pub attempts: u32,
    }
}

/// Whether the tool calls of an agent can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolCalls {
    /// As its program reports them, in `agent/TASK/events.jsonl`.
    #[serde(rename = "reported")]
    Reported,
    /// A command reports none; only its output and the resulting tree are known.
    #[serde(rename = "not observable")]
    NotObservable,
    /// No agent worked.
    #[serde(rename = "none")]
    None,
}

/// `network_use.v1`: the endpoints that a contract grants, and the requests of its agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkUse {
    /// As the contract names them.
    pub grants: Vec<String>,
    /// The requests, counted by kind and endpoint, as `AGENT_ENDED` has them; open, because a later
    /// version may count more.
    pub requests: Vec<Map<String, Value>>,
}
