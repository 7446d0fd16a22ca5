//! Builds the command line, files and environment that start an adapter's program in a sandbox.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::provider::Login;
use super::{Adapted, Adapter};
use crate::contract::ResultRule;
use crate::contract::additions::{bound_schema, is_shipped};
use crate::contract::document::Document;
use crate::contract::output::Output;
use crate::net::credential::DUMMY;

/// Path of the answer's schema inside the sandbox.
pub(super) const SCHEMA: &str = "/run/provost/answer.schema.json";

/// The schema that an agent's final answer must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No schema.
    Free,
    /// The schema of a task result.
    Bound,
    /// The schema for an agent that reads and writes no file: a reviewer or a planner.
    ReadOnly(&'static Value),
}

impl Answer {
    /// The schema for `contract`. A report of another format is left as a file, because providers
    /// accept no schema with optional fields.
    pub fn of(contract: &Document) -> Self {
        let output = Output::of(contract.assigned_agent.role);
        let bound = bound_schema(contract);
        if bound.is_some_and(|(_, artifact)| !is_shipped(artifact, output)) {
            // A schema of the repository may have optional fields, too.
            return Self::Free;
        }
        match (ResultRule::of(contract), output) {
            (ResultRule::Required, Output::TaskResult) => Self::Bound,
            (ResultRule::Required, Output::ReviewReport | Output::TestReport)
            | (ResultRule::Optional, _) => Self::Free,
        }
    }

    /// Whether the agent may change no file.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::ReadOnly(_))
    }

    pub fn schema(self) -> Option<Value> {
        match self {
            Self::Free => None,
            Self::Bound => Some(result_schema()),
            Self::ReadOnly(schema) => Some(schema.clone()),
        }
    }
}

/// The command line: the program of the adapter, or the command of a server.
pub fn argv(agent: &Adapted, answer: Answer) -> Vec<String> {
    if let Some(command) = agent.own_command() {
        return command.to_vec();
    }
    let program = agent.program().map(str::to_owned);
    let arguments = agent.adapter.arguments(agent, answer);
    program.into_iter().chain(arguments).collect()
}

/// `words` changed so that the program resumes the conversation `thread`. Unchanged if `thread` is
/// not a valid name of one.
pub fn continued(words: &[String], adapter: Adapter, thread: &str) -> Vec<String> {
    let words = words.to_vec();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let named = (1..=128).contains(&thread.len()) && thread.bytes().all(plain);
    // The agent chose the name, and it becomes an argument.
    if !named || thread.starts_with('-') {
        return words;
    }
    adapter.resume(words, thread)
}

/// The files to mount for the program, by their path in the sandbox.
pub fn files(agent: &Adapted, answer: Answer) -> Vec<(&'static str, String)> {
    let schema = answer.schema().map(|schema| (SCHEMA, schema.to_string()));
    let settings = agent.adapter.files(agent, answer);
    schema.into_iter().chain(settings).collect()
}

/// Text that asks for the schema, for a program that cannot enforce one. The answer is validated
/// against the schema in any case.
pub fn binding(adapter: Adapter, answer: Answer) -> String {
    match answer.schema().filter(|_| !adapter.binds_answer()) {
        None => String::new(),
        Some(schema) => format!(
            "\nThe structured answer is your last message: one JSON object that fits this schema, \
             and nothing before or after it.\n\n{schema}\n"
        ),
    }
}

/// The environment of the program; its own state directories follow from its home.
pub fn environment(agent: &Adapted) -> BTreeMap<String, String> {
    let mut variables = agent.adapter.environment(agent);
    let vendor = agent.adapter.vendor();
    if let Some(vendor) = vendor.filter(|_| agent.provider.is_some()) {
        let subscription = vendor.subscription;
        // The program does not start without a key, and takes the first kind of login it finds.
        let variable = match agent.login() {
            Login::Brokered | Login::Key | Login::FileKey | Login::None => {
                Some(vendor.key_variable)
            }
            Login::Token => subscription.and_then(|own| own.token_variable),
            // A dummy of the file is in its home.
            Login::File => None,
        };
        variables.extend(variable.map(|name| (name, DUMMY.to_owned())));
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The schema of a result: only the fields that the agent must fill in.
///
/// Every property is required and no other is allowed, because providers require that.
fn result_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["status", "summary", "failure"],
        "properties": {
            "status": { "type": "string", "enum": ["SUCCESS", "FAILED", "BLOCKED", "SKIPPED"] },
            "summary": { "type": "string" },
            "failure": { "anyOf": [
                { "type": "null" },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["message", "hint"],
                    "properties": {
                        "message": { "type": "string" },
                        "hint": { "type": "string" }
                    }
                }
            ] }
        }
    })
}

/// The result document for an answer that was bound to its schema. The answer is not judged here;
/// an answer without structure becomes an invalid result.
pub fn result(task_id: &str, answer: &Value) -> Value {
    let Value::Object(fields) = answer else {
        return answer.clone();
    };
    let mut result = fields.clone();
    result.insert("task_id".to_owned(), json!(task_id));
    result.insert("evidence_refs".to_owned(), json!({}));
    Value::Object(result)
}
