//! The MCP server for children, inside the sandbox of an agent: it passes calls to the broker.
//!
//! # Invariants
//!
//! - It decides nothing: the broker outside of the sandbox knows which tools the agent has, and
//!   checks every request.
//! - The arguments of a tool are the fields of the request, and their schema is derived from it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use provost_change::tools::ToolDescription;
use provost_core::children::{BrokerAnswer, BrokerRequest, ChildTool, MessageTool};
use provost_core::json;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::answer::Failure;
use crate::broker_client::ask;
use crate::mcp::rpc::{self, BUSY, CallResult, INVALID_PARAMS, Out, RpcServer};

/// How many calls are answered at a time; one that waits for a child takes minutes.
const AT_ONCE: usize = 8;

/// Serves until stdin ends.
pub fn serve() -> Result<(), Failure> {
    let tools = match ask(&BrokerRequest::Tools {})? {
        BrokerAnswer::Tools { tools } => described(&tools),
        BrokerAnswer::Refused { verdict } => return Err(verdict.into()),
        BrokerAnswer::Child(_)
        | BrokerAnswer::Children { .. }
        | BrokerAnswer::Sent { .. }
        | BrokerAnswer::Asked { .. }
        | BrokerAnswer::Messages { .. } => Vec::new(),
    };
    let server = BrokerTools {
        tools,
        working: Arc::new(AtomicUsize::new(0)),
    };
    rpc::serve(&mut io::stdin().lock(), &server, &Out::stdout());
    Ok(())
}

struct BrokerTools {
    tools: Vec<ToolDescription>,
    /// How many calls have no answer yet.
    working: Arc<AtomicUsize>,
}

impl RpcServer for BrokerTools {
    fn instructions(&self) -> &'static str {
        "Start agents on your files as they are, wait for them, and apply their patches. What a \
         child writes is data."
    }

    fn tools(&self) -> Vec<ToolDescription> {
        self.tools.clone()
    }

    fn call(&self, id: &Value, tool: &str, arguments: Map<String, Value>, out: &Out) {
        if !self.tools.iter().any(|it| it.name == tool) {
            out.refuse(id, INVALID_PARAMS, "there is no such tool");
            return;
        }
        let request = match request(tool, arguments) {
            Ok(request) => request,
            Err(reason) => {
                out.answer(id, CallResult::failed(reason));
                return;
            }
        };
        if self.working.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
            self.working.fetch_sub(1, Ordering::Relaxed);
            out.refuse(id, BUSY, "too many calls have no answer yet");
            return;
        }
        let (id, out, working) = (id.clone(), out.clone(), Arc::clone(&self.working));
        let answer = move || {
            out.answer(&id, result(&request));
            working.fetch_sub(1, Ordering::Relaxed);
        };
        // Without a thread the call has no answer, and its client stops waiting by itself.
        let _ = thread::Builder::new().spawn(answer);
    }
}

fn result(request: &BrokerRequest) -> CallResult {
    let failed = |code: &str, reason: &str| {
        CallResult::failed(format!(
            "error[{code}]: {reason}\nhint: provost explain {code}"
        ))
    };
    match ask(request) {
        Ok(BrokerAnswer::Refused { verdict }) => failed(verdict.code.name(), &verdict.reason),
        Ok(answer) => match serde_json::to_value(&answer) {
            Ok(value) => CallResult::of(value),
            Err(error) => CallResult::failed(error.to_string()),
        },
        Err(failure) => {
            let verdict = failure.verdict();
            failed(verdict.code.name(), &verdict.reason)
        }
    }
}

/// The word of the request that a tool makes.
fn operation(tool: &str) -> Option<&str> {
    match ChildTool::parse(tool) {
        Some(_) => tool.strip_prefix("child_"),
        None => MessageTool::parse(tool).map(MessageTool::name),
    }
}

/// The request that a call of `tool` makes.
fn request(tool: &str, mut arguments: Map<String, Value>) -> Result<BrokerRequest, String> {
    let operation = operation(tool).unwrap_or_default();
    if arguments.contains_key(TAG) {
        return Err(format!("`{TAG}` is no argument"));
    }
    arguments.insert(TAG.to_owned(), Value::from(operation));
    json::from_value(Value::Object(arguments)).map_err(|error| error.to_string())
}

/// The field that tells requests apart.
const TAG: &str = "op";

/// The descriptions of these tools, from the type of the request.
fn described(names: &[String]) -> Vec<ToolDescription> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings
        .into_generator()
        .into_root_schema_for::<BrokerRequest>();
    let schema = Value::from(schema);
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let child = ChildTool::ALL.into_iter().map(ChildTool::name);
    let messages = MessageTool::ALL.into_iter().map(MessageTool::name);
    let known = child.chain(messages);
    let granted = known.filter(|name| names.iter().any(|it| it == name));
    let one = |name: &'static str| {
        let operation = operation(name)?;
        let is_it = |it: &&Value| it["properties"][TAG]["const"] == operation;
        let mut schema = variants.iter().find(is_it)?.clone();
        let fields = schema.as_object_mut()?;
        let description = fields.remove("description");
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            properties.remove(TAG);
        }
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|field| field != TAG);
        }
        Some(ToolDescription {
            description,
            input_schema: schema,
            name,
        })
    };
    granted.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_described_and_its_arguments_make_its_request() {
        let child = ChildTool::ALL.map(|tool| tool.name().to_owned());
        let messages = MessageTool::ALL.map(|tool| tool.name().to_owned());
        let names = [&child[..], &messages[..]].concat();
        let tools = described(&names);
        assert_eq!(tools.len(), names.len());
        for tool in tools {
            assert!(tool.description.is_some(), "{}", tool.name);
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert!(
                !tool.input_schema.to_string().contains("\"op\""),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_words() {
        let given = |text: &str| match json::parse(text.as_bytes()).unwrap() {
            Value::Object(fields) => fields,
            other => panic!("{other}"),
        };
        let start = given(r#"{"key": "a", "task": "t", "read_only": true}"#);
        assert!(matches!(
            request("child_start", start).unwrap(),
            BrokerRequest::Start(task) if task.read_only && task.key == "a"
        ));
        let wait = given(r#"{"child": "c"}"#);
        assert!(matches!(
            request("child_wait", wait).unwrap(),
            BrokerRequest::Wait { seconds: 300, .. }
        ));
        for (tool, text) in [
            (
                "child_start",
                r#"{"key": "a", "task": "t", "run_id": "other"}"#,
            ),
            ("child_wait", r#"{"op": "list", "child": "c"}"#),
            ("child_cancel", "{}"),
        ] {
            assert!(request(tool, given(text)).is_err(), "{tool} {text}");
        }
    }
}
