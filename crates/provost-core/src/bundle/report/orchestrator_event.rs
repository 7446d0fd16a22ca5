//! One line of an event log as the format tells it. A record of our ledger is one, with its place in
//! the chain beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::{Nullable, Sha256, Time, nullable, present};
use crate::record::Level;

/// `orchestrator_event.v1`, and what Provost adds: `seq`, `prev` and `hash`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrchestratorEvent {
    /// When.
    pub ts: Time,
    /// How much it matters.
    pub level: Level,
    /// What kind of thing happened.
    pub event_type: String,
    /// The run.
    pub run_id: String,
    /// The task.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub task_id: Option<String>,
    /// The attempt.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<u32>")]
    pub attempt: Option<u32>,
    /// The facts.
    pub payload: Map<String, Value>,
    /// Joins the records of one run across tools.
    pub trace_id: String,
    /// Another name of the same.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub event: Option<String>,
    /// More facts.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub context: Option<Map<String, Value>>,
    /// Facts about the record.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub meta: Option<Map<String, Value>>,
    /// The model that took part.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_id: Option<String>,
    /// The agent that took part.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub agent_id: Option<String>,
    /// Its role.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub role: Option<String>,
    /// The tool that was used.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_name: Option<String>,
    /// The step.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub step: Option<Step>,
    /// Where it is in a trace.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub span_id: Option<String>,
    /// What that is part of.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_span_id: Option<String>,
    /// The calls that were made.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_calls: Option<Vec<Map<String, Value>>>,
    /// Its number in the chain.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub seq: Option<u64>,
    /// The hash of the record before it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub prev: Option<Sha256>,
    /// The hash of this record.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub hash: Option<Sha256>,
}

/// A step by number or by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Step {
    /// By number.
    Number(i64),
    /// By name.
    Name(String),
}
