//! One line of an event log, as the format defines it. A record of our ledger is one, with its
//! place in the chain added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shape::{Nullable, Sha256, Time, nullable};
use crate::closed::closed;
use crate::record::Level;

closed! {
    /// `orchestrator_event.v1`, and what Provost adds: `seq`, `prev`, `hash` and `mac`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct OrchestratorEvent {
        /// When it happened.
        pub ts: Time,
        /// How much it matters.
        pub level: Level,
        /// The kind of event.
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
        /// The id that joins the records of one run across tools.
        pub trace_id: String,
        /// Another name of the event.
        pub event?: String,
        /// Further facts.
        pub context?: Map<String, Value>,
        /// Facts about the record itself.
        pub meta?: Map<String, Value>,
        /// The model that took part.
        pub model_id?: String,
        /// The agent that took part.
        pub agent_id?: String,
        /// Its role.
        pub role?: String,
        /// The tool that was used.
        pub tool_name?: String,
        /// The step.
        pub step?: Step,
        /// Its span in a trace.
        pub span_id?: String,
        /// The parent of that span.
        pub parent_span_id?: String,
        /// The tool calls that were made.
        pub tool_calls?: Vec<Map<String, Value>>,
        /// Its number in the chain.
        pub seq?: u64,
        /// The hash of the record before it.
        pub prev?: Sha256,
        /// The hash of this record.
        pub hash?: Sha256,
        /// A message authentication code that shows its writer that the record is their own.
        pub mac?: Sha256,
    }
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
