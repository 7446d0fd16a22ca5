//! The JSON Schemas of Provost's own formats, generated from the types that parse them.
//!
//! The texts are also files under `schemas/`; `cargo xtask schemas` writes them, and tidy compares
//! them.
//!
//! # Invariants
//!
//! - Objects are closed; an optional field is left out, never `null`.
//! - A document that matches its schema is accepted by its type.
//! - Formats that others fixed have two modes. Rules of strict mode are below the keyword
//!   `x-strict`; what is published is strict mode.

pub mod leaf;
pub mod own;
pub mod read;
mod rules;
pub mod validate;

#[cfg(test)]
mod tests;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::agent_registry::AgentRegistry;
use crate::bundle::report::{
    EvidenceBundle, EvidenceReport, NetworkUse, OrchestratorEvent, ReexecReport, ReviewReport,
    RunManifest, RunMeta, TaskResult, TestReport, WorkReport,
};
use crate::contract::RESULT_SCHEMA_TEXT;
use crate::contract::document::Document;
use crate::run::fact::SandboxTest;

/// A format, by the name of its schema.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name, with the version.
    pub name: &'static str,
    make: fn() -> Value,
}

pub const TASK_CONTRACT: Format = Format::of::<Document>("task_contract.v1");

/// The format of most agents' results.
pub const AGENT_TASK_RESULT: Format = Format::made("agent_task_result.v1", agent_task_result);

pub const REVIEW_REPORT: Format = Format::of::<ReviewReport>("review_report.v1");

/// The format of the acceptance commands' results.
pub const TEST_REPORT: Format = Format::of::<TestReport>("test_report.v1");

pub const FORMATS: &[Format] = &[
    Format::of::<AgentRegistry>("agent_registry.v1"),
    AGENT_TASK_RESULT,
    Format::of::<EvidenceBundle>("evidence_bundle.v1"),
    Format::of::<EvidenceReport>("evidence_report.v1"),
    Format::of::<NetworkUse>("network_use.v1"),
    Format::of::<OrchestratorEvent>("orchestrator_event.v1"),
    Format::of::<ReexecReport>("reexec_report.v1"),
    REVIEW_REPORT,
    Format::of::<RunManifest>("run_manifest.v1"),
    Format::of::<RunMeta>("run_meta.v1"),
    Format::of::<SandboxTest>("sandbox_selftest.v1"),
    TASK_CONTRACT,
    Format::of::<TaskResult>("task_result.v1"),
    TEST_REPORT,
    Format::of::<WorkReport>("work_report.v1"),
];

pub fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter()
}

/// Finds a format by its name, with or without the version.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.is_called(name))
}

impl Format {
    /// A format whose schema `make` generates.
    pub const fn made(name: &'static str, make: fn() -> Value) -> Self {
        Self { name, make }
    }

    /// Whether `name`, with or without the version, is its name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.name.strip_suffix(".v1") == Some(name)
    }

    /// A format that others fixed, which `T` parses.
    pub const fn foreign<T: JsonSchema>(name: &'static str) -> Self {
        Self {
            name,
            make: || foreign::<T>(Strictness::Strict),
        }
    }

    /// A format that others fixed, whose readers ignore unknown fields.
    pub const fn foreign_and_open<T: JsonSchema>(name: &'static str) -> Self {
        Self {
            name,
            make: || foreign::<T>(Strictness::Literal),
        }
    }

    /// The format that `T` parses.
    pub const fn of<T: JsonSchema>(name: &'static str) -> Self {
        Self {
            name,
            make: generate::<T>,
        }
    }

    pub fn schema(&self) -> Value {
        let mut schema = (self.make)();
        schema["title"] = self.name.into();
        schema
    }

    /// The schema as the file `schemas/NAME.json` holds it.
    pub fn text(&self) -> String {
        // Contracts name the digest of these bytes.
        if self.name == "agent_task_result.v1" {
            return RESULT_SCHEMA_TEXT.to_owned();
        }
        format!("{:#}\n", self.schema())
    }
}

fn agent_task_result() -> Value {
    serde_json::from_str::<Value>(RESULT_SCHEMA_TEXT).unwrap_or_default()
}

fn generate<T: JsonSchema>() -> Value {
    let mut schema = SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    close(&mut schema);
    schema
}

/// The schema of `T`, which the answer of an agent is bound to.
///
/// Every member is required and no other is permitted, because providers demand that of a schema;
/// keywords that some of them refuse are left out.
pub fn bound<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    keep_bound_keywords(&mut schema);
    schema
}

const BOUND_KEYWORDS: &str = "type additionalProperties required properties items enum";

fn keep_bound_keywords(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    fields.retain(|name, _| BOUND_KEYWORDS.split(' ').any(|keyword| keyword == name));
    fields
        .get_mut("items")
        .into_iter()
        .for_each(keep_bound_keywords);
    if let Some(Value::Object(members)) = fields.get_mut("properties") {
        members.values_mut().for_each(keep_bound_keywords);
    }
}

/// How strictly a document of a format that others fixed is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// By the text of the format; unknown fields are ignored.
    Literal,
    /// Also refuses unknown fields, except those that begin with `x_`, and what the text permits
    /// although it cannot be intended.
    Strict,
}

/// The schema of `T`, a format that others fixed.
fn foreign<T: JsonSchema>(strictness: Strictness) -> Value {
    let mut schema = generate::<T>();
    extensible(&mut schema);
    settle(&mut schema, strictness);
    schema
}

/// Lets every object have fields that begin with `x_`, and in strict mode no other unknown ones,
/// unless its type says which it may have.
fn extensible(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(extensible),
        Value::Object(members) => {
            members.values_mut().for_each(extensible);
            let is_object = members.get("properties").is_some_and(Value::is_object);
            if is_object && !members.contains_key("additionalProperties") {
                let open = json!({ "^x_": true });
                members.insert("patternProperties".to_owned(), open);
                let closed = json!({ "additionalProperties": false });
                members.insert(STRICT.to_owned(), closed);
            }
        }
        _ => {}
    }
}

/// The keyword for the rules that only strict mode has.
const STRICT: &str = "x-strict";

/// Adds the rules of strict mode to the others, or removes them.
fn settle(schema: &mut Value, strictness: Strictness) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| settle(one, strictness)),
        Value::Object(members) => {
            if let Some(Value::Object(added)) = members.remove(STRICT)
                && strictness == Strictness::Strict
            {
                members.extend(added);
            }
            members.values_mut().for_each(|one| settle(one, strictness));
        }
        _ => {}
    }
}

/// Removes `null` from optional fields, everywhere in `schema`.
///
/// For the generator an optional field may be `null`; for Provost's parsers it is present or
/// absent.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Object(members) => {
            let required = members.get("required").cloned().unwrap_or_default();
            let is_required = |name: &String| {
                let list = required.as_array();
                list.is_some_and(|list| list.iter().any(|one| one == name.as_str()))
            };
            if let Some(Value::Object(fields)) = members.get_mut("properties") {
                let optional = fields.iter_mut().filter(|(name, _)| !is_required(name));
                optional.for_each(|(_, field)| never_null(field));
            }
            members.values_mut().for_each(close);
        }
        _ => {}
    }
}

fn never_null(field: &mut Value) {
    let Value::Object(members) = field else {
        return;
    };
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(list)) = members.get_mut("enum") {
        list.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            members.remove("anyOf");
            members.extend(only);
        }
    }
}
