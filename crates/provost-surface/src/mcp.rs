//! Serves MCP on stdin and stdout: one JSON-RPC message per line.
//!
//! Implemented without the official SDK, because four methods over a pipe need neither an async
//! runtime nor its forty crates.
//!
//! # Invariants
//!
//! - A line is bounded; what is no request is answered with an error, and the next line is read.
//! - Short requests are answered while a long one is at work; long ones are answered in order.
//! - Everything that was read is answered, even after the input has ended.
//! - A separate thread renews the leases, whatever the rest is doing.
//! - Only answers go to stdout.

use std::io::{self, BufRead, Read as _, Write};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use provost_change::next_step::Audience;
use provost_change::tools::{self, Request, ToolDescription};
use provost_core::json;
use provost_core::lease::Owner;
use provost_host::clock;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::Failure;
use crate::change::{ChangeSession, Identity, Kept, Trouble};
use crate::{session, stores};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 8 << 20;

/// The longest id of a request, in bytes; each answer repeats it.
const LONGEST_ID: usize = 256;

/// How many requests may wait before reading stops.
const WAITING: usize = 256;

/// How often leases are renewed; the shortest lease is a minute.
const BEAT: Duration = Duration::from_secs(15);

/// Supported versions of the protocol, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const BUSY: i32 = -32000;

/// A message to the worker thread.
enum Work {
    Call {
        id: Value,
        tool: String,
        arguments: Map<String, Value>,
    },
    Name(String),
}

/// Standard output, one whole line at a time.
#[derive(Clone)]
struct Out(Arc<Mutex<io::Stdout>>);

impl Out {
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

    fn answer(&self, id: &Value, result: impl Serialize) {
        self.say(id, RpcOutcome::Result(result));
    }

    fn refuse(&self, id: &Value, code: i32, message: &str) {
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
struct CallResult {
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

/// Serves until stdin ends.
pub fn serve() -> Result<(), Failure> {
    let owner = session::owner()?;
    let mut session = ChangeSession::new(Identity::Process(owner.clone()), "unknown client");
    session.bind();
    beat(owner, session.registries());
    let out = Out(Arc::new(Mutex::new(io::stdout())));
    let (work, queue) = mpsc::sync_channel(WAITING);
    let worker = thread::Builder::new().name("tools".to_owned()).spawn({
        let out = out.clone();
        move || serve_tools(session, &queue, &out)
    });
    let worker = worker.map_err(|error| {
        Failure::new(
            provost_core::code::Code::HostFailed,
            format!("no thread: {error}"),
        )
    })?;
    let mut input = io::stdin().lock();
    loop {
        match line(&mut input) {
            Ok(Some(Line::Whole(bytes))) => handle(&bytes, &work, &out),
            Ok(Some(Line::TooLong)) => {
                let words = format!("a line has more than {LONGEST} bytes");
                out.refuse(&Value::Null, INVALID_REQUEST, &words);
            }
            Ok(None) | Err(_) => break,
        }
    }
    drop(work);
    // All requests are answered before the end; intents that are left can be recovered.
    let _ = worker.join();
    Ok(())
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

/// Answers a message, or sends it to the worker thread.
fn handle(bytes: &[u8], work: &SyncSender<Work>, out: &Out) {
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
            let _ = work.send(Work::Name(label(parameters)));
            out.answer(&id, greeting(parameters));
        }
        "ping" => out.answer(&id, nothing),
        "tools/list" => {
            let tools = tools::list();
            out.answer(&id, ToolList { tools });
        }
        "tools/call" => call(&id, parameters, work, out),
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

fn greeting(parameters: &Map<String, Value>) -> Greeting {
    let asked = parameters.get("protocolVersion").and_then(Value::as_str);
    let mut known = VERSIONS.into_iter();
    Greeting {
        capabilities: Capabilities {
            tools: ToolCapability {
                list_changed: false,
            },
        },
        instructions: "Analyse the repository, start a controlled change, edit only when \
                       edit_allowed is true, analyse again, then finish with every file you \
                       touched.",
        protocol_version: known.find(|one| asked == Some(*one)).unwrap_or(VERSIONS[0]),
        server_info: ServerInfo {
            name: "provost",
            version: env!("CARGO_PKG_VERSION"),
        },
    }
}

fn call(id: &Value, parameters: &Map<String, Value>, work: &SyncSender<Work>, out: &Out) {
    let Some(tool) = parameters.get("name").and_then(Value::as_str) else {
        out.refuse(id, INVALID_PARAMS, "`name` says which tool");
        return;
    };
    if !tools::is_known(tool) {
        out.refuse(id, INVALID_PARAMS, "there is no such tool");
        return;
    }
    let arguments = match parameters.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => {
            out.refuse(id, INVALID_PARAMS, "`arguments` are an object");
            return;
        }
    };
    let asked = Work::Call {
        id: id.clone(),
        tool: tool.to_owned(),
        arguments,
    };
    // If too many requests wait, no more are read before one of them is answered.
    if work.send(asked).is_err() {
        out.refuse(id, BUSY, "the server ends");
    }
}

/// Answers calls, one after the other.
fn serve_tools(mut session: ChangeSession, queue: &mpsc::Receiver<Work>, out: &Out) {
    for work in queue {
        match work {
            Work::Name(label) => session.rename(label),
            Work::Call {
                id,
                tool,
                arguments,
            } => {
                let asked = Request::read(&tool, &arguments).map_err(Trouble::from);
                let answer = asked
                    .and_then(|request| session.call(&request))
                    .and_then(|answer| Ok(answer.json(Audience::Tool)?));
                let result = match answer {
                    Ok(value) => CallResult {
                        content: [TextContent {
                            text: value.to_string(),
                        }],
                        is_error: false,
                        structured_content: Some(value),
                    },
                    Err(trouble) => CallResult {
                        content: [TextContent {
                            text: serde_json::to_string(&trouble.payload()).unwrap_or_default(),
                        }],
                        is_error: true,
                        structured_content: None,
                    },
                };
                out.answer(&id, result);
            }
        }
    }
}

/// Renews the leases of this process as long as it lives.
fn beat(owner: Owner, registries: Kept) {
    let renew = move || {
        loop {
            thread::sleep(BEAT);
            let paths = registries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            for path in paths {
                // A registry that cannot be reached is tried again; leases last longer.
                if let Ok(mut registry) = stores::intent_registry(&path) {
                    let _ = registry.renew_all(&owner, clock::now_millis());
                }
            }
        }
    };
    // Without this thread, requests still renew leases.
    let _ = thread::Builder::new().name("heart".to_owned()).spawn(renew);
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
            greeting(&given).protocol_version
        };
        assert_eq!(version("2025-06-18"), "2025-06-18");
        assert_eq!(version("1999-01-01"), VERSIONS[0]);
    }
}
