//! JSON-RPC of MCP servers: one message per line, and the four methods that a server of tools has.

use std::io::{self, BufRead, Read as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

use provost_change::tools::ToolDescription;
use provost_core::json;
use serde::Serialize;
use serde_json::{Map, Value};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 8 << 20;

/// The longest id of a request, in bytes; each answer repeats it.
const LONGEST_ID: usize = 256;

/// Supported versions of the protocol, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const BUSY: i32 = -32000;

/// A server of tools.
pub(crate) trait RpcServer {
    /// What a model has to know to use the tools.
    fn instructions(&self) -> &'static str;

    /// The client said its name.
    fn named(&self, _client: String) {}

    fn tools(&self) -> Vec<ToolDescription>;

    /// Answers a call of `tool`, now or later.
    fn call(&self, id: &Value, tool: &str, arguments: Map<String, Value>, out: &Out);
}

/// Standard output, one whole line at a time.
#[derive(Clone)]
pub(crate) struct Out(Arc<Mutex<io::Stdout>>);

impl Out {
    pub(crate) fn stdout() -> Self {
        Self(Arc::new(Mutex::new(io::stdout())))
    }

    fn say<T: Serialize>(&self, id: &Value, outcome: RpcOutcome<'_, T>) {
        let message = RpcMessage {
            id,
            jsonrpc: VERSION,
            outcome,
        };
        let message = serde_json::to_value(message).unwrap_or_default();
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that is gone also ends its input, which ends the server.
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    pub(crate) fn answer(&self, id: &Value, result: impl Serialize) {
        self.say(id, RpcOutcome::Result(result));
    }

    pub(crate) fn refuse(&self, id: &Value, code: i32, message: &str) {
        let error: RpcOutcome<'_, ()> = RpcOutcome::Error { code, message };
        self.say(id, error);
    }
}

/// The version of JSON-RPC.
const VERSION: &str = "2.0";

#[derive(Serialize)]
struct RpcMessage<'a, T> {
    id: &'a Value,
    jsonrpc: &'static str,
    #[serde(flatten)]
    outcome: RpcOutcome<'a, T>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum RpcOutcome<'a, T> {
    Result(T),
    Error { code: i32, message: &'a str },
}

#[derive(Serialize)]
struct ToolList {
    tools: Vec<ToolDescription>,
}

/// The result of a call: the payload as text and, unless the call failed, as a value.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallResult {
    content: [TextContent; 1],
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct TextContent {
    text: String,
}

impl CallResult {
    /// A call that succeeded.
    pub(crate) fn of(value: Value) -> Self {
        Self {
            content: [TextContent {
                text: value.to_string(),
            }],
            is_error: false,
            structured_content: Some(value),
        }
    }

    /// A call that failed.
    pub(crate) fn failed(text: String) -> Self {
        Self {
            content: [TextContent { text }],
            is_error: true,
            structured_content: None,
        }
    }
}

/// Answers every message until the input ends.
pub(crate) fn serve(input: &mut impl BufRead, server: &impl RpcServer, out: &Out) {
    loop {
        match line(input) {
            Ok(Some(Line::Whole(bytes))) => handle(&bytes, server, out),
            Ok(Some(Line::TooLong)) => {
                let words = format!("a line has more than {LONGEST} bytes");
                out.refuse(&Value::Null, INVALID_REQUEST, &words);
            }
            Ok(None) | Err(_) => break,
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The next line; nothing at the end.
fn line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let read = input
        .by_ref()
        .take(LONGEST + 1)
        .read_until(b'\n', &mut bytes)?;
    if read == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') || bytes.len() as u64 <= LONGEST {
        return Ok(Some(Line::Whole(bytes)));
    }
    loop {
        bytes.clear();
        let read = input.by_ref().take(1 << 20).read_until(b'\n', &mut bytes)?;
        if read == 0 || bytes.last() == Some(&b'\n') {
            return Ok(Some(Line::TooLong));
        }
    }
}

/// Answers a message.
fn handle(bytes: &[u8], server: &impl RpcServer, out: &Out) {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return;
    }
    let message = match json::parse(bytes) {
        Ok(Value::Object(message)) => message,
        Ok(_) => {
            out.refuse(&Value::Null, INVALID_REQUEST, "a message is one object");
            return;
        }
        Err(error) => {
            out.refuse(&Value::Null, PARSE_ERROR, &error.to_string());
            return;
        }
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        out.refuse(&Value::Null, INVALID_REQUEST, "`jsonrpc` is \"2.0\"");
        return;
    }
    let id = message.get("id").cloned();
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        // A response to a request that we never sent needs no answer.
        if !message.contains_key("result") && !message.contains_key("error") {
            out.refuse(
                &id.unwrap_or_default(),
                INVALID_REQUEST,
                "there is no method",
            );
        }
        return;
    };
    // A notification needs no answer.
    let Some(id) = id else { return };
    let short = id.as_str().is_none_or(|text| text.len() <= LONGEST_ID);
    if !(id.is_string() || id.is_number()) || !short {
        let words = format!("an id is a number, or a text of {LONGEST_ID} bytes at most");
        out.refuse(&Value::Null, INVALID_REQUEST, &words);
        return;
    }
    let nothing = Map::new();
    let parameters = match message.get("params") {
        None | Some(Value::Null) => &nothing,
        Some(Value::Object(parameters)) => parameters,
        Some(_) => {
            out.refuse(&id, INVALID_PARAMS, "parameters are an object");
            return;
        }
    };
    match method {
        "initialize" => {
            server.named(label(parameters));
            out.answer(&id, greeting(parameters, server.instructions()));
        }
        "ping" => out.answer(&id, nothing),
        "tools/list" => {
            let tools = server.tools();
            out.answer(&id, ToolList { tools });
        }
        "tools/call" => call(&id, parameters, server, out),
        _ => out.refuse(&id, NO_METHOD, "there is no such method"),
    }
}

/// The name of a client.
fn label(parameters: &Map<String, Value>) -> String {
    let client = parameters.get("clientInfo");
    let part = |name: &str| {
        let text = client.and_then(|client| client[name].as_str());
        text.unwrap_or_default()
            .chars()
            .take(100)
            .collect::<String>()
    };
    let name = format!("{} {}", part("name"), part("version"));
    match name.trim() {
        "" => "unknown client".to_owned(),
        name => name.to_owned(),
    }
}

/// The answer to `initialize`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Greeting {
    capabilities: Capabilities,
    instructions: &'static str,
    protocol_version: &'static str,
    server_info: ServerInfo,
}

#[derive(Serialize)]
struct Capabilities {
    tools: ToolCapability,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolCapability {
    list_changed: bool,
}

#[derive(Serialize)]
struct ServerInfo {
    name: &'static str,
    version: &'static str,
}

fn greeting(parameters: &Map<String, Value>, instructions: &'static str) -> Greeting {
    let asked = parameters.get("protocolVersion").and_then(Value::as_str);
    let mut known = VERSIONS.into_iter();
    Greeting {
        capabilities: Capabilities {
            tools: ToolCapability {
                list_changed: false,
            },
        },
        instructions,
        protocol_version: known.find(|one| asked == Some(*one)).unwrap_or(VERSIONS[0]),
        server_info: ServerInfo {
            name: "provost",
            version: env!("CARGO_PKG_VERSION"),
        },
    }
}

fn call(id: &Value, parameters: &Map<String, Value>, server: &impl RpcServer, out: &Out) {
    let Some(tool) = parameters.get("name").and_then(Value::as_str) else {
        out.refuse(id, INVALID_PARAMS, "`name` says which tool");
        return;
    };
    let arguments = match parameters.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => {
            out.refuse(id, INVALID_PARAMS, "`arguments` are an object");
            return;
        }
    };
    server.call(id, tool, arguments, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_as_a_whole() {
        let long = vec![b'x'; usize::try_from(LONGEST).unwrap() + 10];
        let mut input = io::Cursor::new([b"{}\n".to_vec(), long, b"\nnext".to_vec()].concat());
        assert!(matches!(line(&mut input).unwrap(), Some(Line::Whole(bytes)) if bytes == b"{}\n"));
        assert!(matches!(line(&mut input).unwrap(), Some(Line::TooLong)));
        assert!(matches!(line(&mut input).unwrap(), Some(Line::Whole(bytes)) if bytes == b"next"));
        assert!(line(&mut input).unwrap().is_none());
    }

    #[test]
    fn an_unknown_version_is_answered_with_ours() {
        let version = |asked: &str| {
            let given = Map::from_iter([("protocolVersion".to_owned(), Value::from(asked))]);
            greeting(&given, "").protocol_version
        };
        assert_eq!(version("2025-06-18"), "2025-06-18");
        assert_eq!(version("1999-01-01"), VERSIONS[0]);
    }
}
