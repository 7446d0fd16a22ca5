//! What surrounded a run: its repository, its versions, its model, and who watched.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::manifest::RunStatus;
use super::shape::present;

/// What ran the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// Its name.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<String>,
    /// Whether it works by MCP alone.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub mcp_only: Option<bool>,
    /// Its settings, by name.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub profile: Option<String>,
}

/// How strict the policy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the format's and say it all")]
pub enum PolicyPack {
    Low,
    Medium,
    High,
}

/// The repository of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repo {
    /// Where it lay.
    pub root: String,
    /// The commit the work began from.
    pub baseline_ref: String,
    /// What came of it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub final_ref: Option<String>,
    /// Where it came from.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub remote_url: Option<String>,
    /// The branch it was on.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub branch: Option<String>,
}

/// The versions of what took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Of the contract format.
    pub contracts_schema: String,
    /// Of Provost.
    pub orchestrator: String,
    /// Of the Codex command line.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub codex_cli: Option<String>,
    /// Of the agents library.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub agents_sdk: Option<String>,
    /// Of Python.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub python: Option<String>,
    /// Of Node.js.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub node: Option<String>,
}

/// The model behind an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub id: Option<String>,
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
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub seed: Option<i64>,
    /// What a reader should know besides.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub notes: Option<String>,
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

/// Where the trace is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Its id.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub trace_id: Option<String>,
    /// Its address.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub trace_url: Option<String>,
}

/// The workflow engine around a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Its id of the run.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub workflow_id: Option<String>,
    /// Where it queued the run.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub task_queue: Option<String>,
    /// Its namespace.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace: Option<String>,
    /// What it says of the run.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub status: Option<RunStatus>,
}

/// How a run was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observability {
    /// Whether at all.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub enabled: Option<bool>,
    /// Whether OpenTelemetry was there.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub has_otel: Option<bool>,
    /// Where it sent to.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub otlp_endpoint: Option<String>,
    /// How.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub otlp_protocol: Option<String>,
    /// Whether it also wrote to the terminal.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub console_enabled: Option<bool>,
    /// Whether the run needed it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<bool>,
}
