//! The environment of a run: repository, versions, model, and observability.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::manifest::RunStatus;
use crate::closed::closed;

closed! {
    /// The program that ran the agent.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Runner {
        /// Its name.
        pub name?: String,
        /// Whether it works by MCP alone.
        pub mcp_only?: bool,
        /// The name of its settings profile.
        pub profile?: String,
    }
}

closed! {
    /// The repository of a run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Repo {
        /// Its path.
        pub root: String,
        /// The base commit.
        pub baseline_ref: String,
        /// The resulting commit or tree.
        pub final_ref?: String,
        /// The URL it was cloned from.
        pub remote_url?: String,
        /// The branch it was on.
        pub branch?: String,
    }
}

closed! {
    /// The versions of the programs involved.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Versions {
        /// The version of the contract format.
        pub contracts_schema: String,
        /// The version of Provost.
        pub orchestrator: String,
        /// The version of the Codex command line.
        pub codex_cli?: String,
        /// The version of the agents library.
        pub agents_sdk?: String,
        /// The version of Python.
        pub python?: String,
        /// The version of Node.js.
        pub node?: String,
    }
}

closed! {
    /// The model behind an agent.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Model {
        /// Its name.
        pub id?: String,
        /// The sampling temperature, from 0 to 2.
        #[serde(
            default,
            deserialize_with = "up_to_two",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(range(min = 0, max = 2))]
        pub temperature: Option<f64>,
        /// The nucleus sampling parameter `top_p`, from 0 to 1.
        #[serde(
            default,
            deserialize_with = "up_to_one",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(range(min = 0, max = 1))]
        pub top_p: Option<f64>,
        /// The random seed.
        pub seed?: i64,
        /// Further notes.
        pub notes?: String,
    }
}

fn up_to_two<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    within(reader, 2.0)
}

fn up_to_one<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    within(reader, 1.0)
}

fn within<'de, D: Deserializer<'de>>(reader: D, most: f64) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(reader)?;
    if (0.0..=most).contains(&number) {
        return Ok(Some(number));
    }
    Err(D::Error::custom(format!("is not between 0 and {most}")))
}

closed! {
    /// Where the trace is.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Trace {
        /// Its id.
        pub trace_id?: String,
        /// Its address.
        pub trace_url?: String,
    }
}

closed! {
    /// The workflow engine around a run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Workflow {
        /// Its id of the run.
        pub workflow_id?: String,
        /// The queue of the run.
        pub task_queue?: String,
        /// Its namespace.
        pub namespace?: String,
        /// Its status of the run.
        pub status?: RunStatus,
    }
}

closed! {
    /// How a run was observed.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Observability {
        /// Whether the run was observed.
        pub enabled?: bool,
        /// Whether OpenTelemetry was available.
        pub has_otel?: bool,
        /// The endpoint of the collector.
        pub otlp_endpoint?: String,
        /// The protocol of the collector.
        pub otlp_protocol?: String,
        /// Whether it also wrote to the terminal.
        pub console_enabled?: bool,
        /// Whether the run required it.
        pub required?: bool,
    }
}
