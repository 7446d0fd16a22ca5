//! What surrounded a run: its repository, its versions, its model, and who watched.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::manifest::RunStatus;
use crate::json::closed;

closed! {
    /// What ran the agent.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Runner {
        /// Its name.
        pub name?: String,
        /// Whether it works by MCP alone.
        pub mcp_only?: bool,
        /// Its settings, by name.
        pub profile?: String,
    }
}

closed! {
    /// The repository of a run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Repo {
        /// Where it lay.
        pub root: String,
        /// The commit the work began from.
        pub baseline_ref: String,
        /// What came of it.
        pub final_ref?: String,
        /// Where it came from.
        pub remote_url?: String,
        /// The branch it was on.
        pub branch?: String,
    }
}

closed! {
    /// The versions of what took part.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Versions {
        /// Of the contract format.
        pub contracts_schema: String,
        /// Of Provost.
        pub orchestrator: String,
        /// Of the Codex command line.
        pub codex_cli?: String,
        /// Of the agents library.
        pub agents_sdk?: String,
        /// Of Python.
        pub python?: String,
        /// Of Node.js.
        pub node?: String,
    }
}

closed! {
    /// The model behind an agent.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Model {
        /// Its name.
        pub id?: String,
        /// From 0 to 2.
        #[serde(
            default,
            deserialize_with = "up_to_two",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(range(min = 0, max = 2))]
        pub temperature: Option<f64>,
        /// From 0 to 1.
        #[serde(
            default,
            deserialize_with = "up_to_one",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(range(min = 0, max = 1))]
        pub top_p: Option<f64>,
        /// What its randomness began from.
        pub seed?: i64,
        /// What a reader should know besides.
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
        /// Where it queued the run.
        pub task_queue?: String,
        /// Its namespace.
        pub namespace?: String,
        /// What it says of the run.
        pub status?: RunStatus,
    }
}

closed! {
    /// How a run was observed.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Observability {
        /// Whether at all.
        pub enabled?: bool,
        /// Whether OpenTelemetry was there.
        pub has_otel?: bool,
        /// Where it sent to.
        pub otlp_endpoint?: String,
        /// How.
        pub otlp_protocol?: String,
        /// Whether it also wrote to the terminal.
        pub console_enabled?: bool,
        /// Whether the run needed it.
        pub required?: bool,
    }
}
