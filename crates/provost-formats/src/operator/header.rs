//! The fields with which every payload begins, and parts that several payloads share.

use crate::board::lock::{self, Lock};
use crate::board::row::TaskId;
use provost_core::code::Code;
use provost_core::schema::leaf::{Filled, OptionalVersion1, RunUuid, Strictly, UtcTime, Version1};
use provost_core::text_schema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::finding::Findings;

/// The version that is written.
const SCHEMA_VERSION: &str = "1.0.0";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    #[schemars(with = "Version1")]
    schema_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UtcTime>")]
    generated_at: Option<String>,
    #[schemars(with = "RunUuid")]
    pub run_id: String,
}

impl Header {
    /// The header that Provost writes.
    pub fn of(run_id: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            generated_at: None,
            run_id: run_id.to_owned(),
        }
    }
}

/// Lets a payload have the fields of a header that it does not declare. Its version is always
/// judged; the others only in strict mode.
pub(super) fn take_header(schema: &mut Schema) {
    let generator = &mut SchemaGenerator::default();
    let fields = [
        ("schema_version", OptionalVersion1::json_schema(generator)),
        ("generated_at", Strictly::<UtcTime>::json_schema(generator)),
        ("run_id", Strictly::<RunUuid>::json_schema(generator)),
    ];
    let members = schema.ensure_object();
    let known = members
        .entry("properties")
        .or_insert_with(|| Map::new().into());
    if let Value::Object(known) = known {
        for (name, schema) in fields {
            known.entry(name).or_insert(schema.to_value());
        }
    }
}

/// The schema of one of the fourteen codes.
#[derive(Debug)]
pub(super) enum BoardCode {}

text_schema!(BoardCode, {
    "type": "string", "pattern": r"\S", "enum": Code::OF_BOARD.map(Code::name)
});

/// What keeps a task from continuing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blocker {
    pub task_id: TaskId,
    #[schemars(with = "BoardCode")]
    pub code: Code,
    #[schemars(with = "Filled")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// Adds a finding for locks of different tasks that overlap.
pub(super) fn conflicts(locks: &[Lock], at: &str, found: &mut Findings) {
    for (one, two) in lock::conflicts(locks) {
        let (held, other) = (&locks[one], &locks[two]);
        let problem = format!(
            "`{}` of {} overlaps `{}` of {}",
            other.resource, other.task_id, held.resource, held.task_id
        );
        found.add(Code::LockConflict, format_args!("{at}/{two}"), problem);
    }
}
