//! An MCP server that takes a prompt, and the client side of the conversation with it.
//!
//! # Invariants
//!
//! - The server is untrusted code. A message that violates the protocol ends the conversation;
//!   nothing is guessed, and the client never waits for a reply that cannot come.
//! - Requests of the server to its client are refused: it gets no model sampling, no files and no
//!   approvals that way.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::codex::VENDOR;
use super::{
    AgentAdapter, Breach, Conversation, Line, Start, StreamParser, Vendor, number, spoken, text,
};
use crate::agent::Adapted;
use crate::agent::event::{Event, Usage, brief};
use crate::children::SERVER;

/// The supported protocol versions; the client asks for the first one.
const VERSIONS: [&str; 4] = ["2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05"];

/// The most pages of the tool list that are requested.
const MOST_PAGES: u64 = 16;

/// The most requests a server may send to its client.
const MOST_REQUESTS: u32 = 256;

/// The JSON-RPC code for a method that is not offered.
const NOT_OFFERED: i64 = -32601;

/// The default tool that takes a prompt: that of Codex.
pub const TOOL: &str = "codex";

/// The default tool that continues a thread.
pub const REPLY_TOOL: &str = "codex-reply";

/// A server that is an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its command line.
    pub command: Vec<String>,
    /// The tool that takes a prompt.
    pub tool: String,
    /// The tool that takes a prompt and a thread to continue, if the server has it.
    pub reply_tool: String,
}

/// Whether `text` is a valid tool name.
pub fn is_tool(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// The entry that means "no server" in a list that must not be empty.
pub const NONE: &str = "none";

/// The entry that stands for model sampling, which no server gets.
pub const SAMPLING: &str = "sampling";

/// Whether `text` is a valid name of a server for an agent.
pub fn is_server(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let reserved = [NONE, SAMPLING, SERVER].contains(&text);
    (1..=64).contains(&text.len()) && text.bytes().all(plain) && !reserved
}

pub(super) struct Mcp;

impl AgentAdapter for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn start(&self) -> Start {
        Start::Server
    }

    /// That of Codex; a policy may name another place, or none.
    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor {
            api: None,
            subscription: None,
            ..VENDOR
        })
    }

    fn binds_answer(&self) -> bool {
        false
    }

    fn parser(&self, agent: &Adapted, prompt: &str, thread: Option<&str>) -> Box<dyn StreamParser> {
        let mut arguments = Map::new();
        if let Some(model) = &agent.model {
            arguments.insert("model".to_owned(), json!(model));
        }
        let call = agent.server.as_deref().map(|server| Call {
            server: server.clone(),
            prompt: prompt.to_owned(),
            arguments,
            thread: thread.map(str::to_owned),
        });
        Box::new(McpStream(call.map(Dialogue::begin)))
    }
}

/// Without a server there is no conversation.
#[derive(Debug)]
struct McpStream(Option<Dialogue>);

impl StreamParser for McpStream {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        let Some(dialogue) = &mut self.0 else {
            return Ok(Line {
                is_progress: shows_progress(line),
                ..Line::default()
            });
        };
        Ok(Line {
            events: dialogue.hear(line)?,
            is_progress: shows_progress(line),
            complaint: None,
            answer: dialogue.answer.as_deref().map(spoken),
        })
    }

    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        let dialogue = self.0.as_mut()?;
        Some(dialogue)
    }
}

impl Conversation for Dialogue {
    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    fn close(&mut self) {
        self.stage = Stage::Over;
        self.out.clear();
    }
}

/// The call of a server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    server: Server,
    prompt: String,
    /// Further arguments of the tool.
    arguments: Map<String, Value>,
    /// The thread to continue.
    thread: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    Listing,
    /// Whether it continues a thread.
    Calling {
        thread: bool,
    },
    Over,
}

/// A conversation with a server.
#[derive(Debug)]
struct Dialogue {
    call: Call,
    stage: Stage,
    /// The id of the last request.
    asked: u64,
    tools: Vec<String>,
    requests: u32,
    out: Vec<u8>,
    answer: Option<String>,
}

fn breach<T>(words: impl Into<String>) -> Result<T, Breach> {
    Err(Breach(words.into()))
}

impl Dialogue {
    /// Starts a conversation; the first request is ready to be sent.
    fn begin(call: Call) -> Self {
        let mut dialogue = Self {
            call,
            stage: Stage::Greeting,
            asked: 0,
            tools: Vec::new(),
            requests: 0,
            out: Vec::new(),
            answer: None,
        };
        let client = json!({ "name": "provost", "version": env!("CARGO_PKG_VERSION") });
        dialogue.ask(
            "initialize",
            &json!({ "protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client }),
        );
        dialogue
    }

    /// Processes one message and returns its events.
    fn hear(&mut self, message: &Value) -> Result<Vec<Event>, Breach> {
        if self.is_over() {
            return Ok(Vec::new());
        }
        if text(message, "/jsonrpc") != "2.0" {
            return breach("sent what is no message of JSON-RPC 2.0");
        }
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), None) => Ok(notified(method, &message["params"])),
            (Some(method), Some(id)) => self.refuse(method, id),
            (None, Some(id)) => self.answered(id, message),
            (None, None) => breach("sent a message without a method and without an id"),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn send(&mut self, message: &Value) {
        self.out.extend(message.to_string().into_bytes());
        self.out.push(b'\n');
    }

    /// A server may ping its client; every other request is refused.
    fn refuse(&mut self, method: &str, id: &Value) -> Result<Vec<Event>, Breach> {
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            return breach(format!(
                "asked its client for more than {MOST_REQUESTS} things"
            ));
        }
        if method == "ping" {
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
            return Ok(Vec::new());
        }
        let error = json!({ "code": NOT_OFFERED, "message": "not offered to this server" });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        let text = brief(&format!(
            "the server asks for {method}, which it is not given"
        ));
        Ok(vec![Event::Error { text }])
    }

    fn answered(&mut self, id: &Value, message: &Value) -> Result<Vec<Event>, Breach> {
        if id.as_u64() != Some(self.asked) {
            return breach("answered a request that was not sent");
        }
        let result = match (message.get("result"), message.get("error")) {
            (Some(result), None) => result,
            (None, Some(error)) => return Ok(self.failed(text(error, "/message"))),
            _ => return breach("sent an answer that has not one of `result` and `error`"),
        };
        match self.stage {
            Stage::Greeting => self.greeted(result),
            Stage::Listing => self.listed(result),
            Stage::Calling { thread } => self.done(result, thread),
            Stage::Over => Ok(Vec::new()),
        }
    }

    /// Handles an error reply. If a server has lost the thread, the whole prompt is sent again.
    fn failed(&mut self, words: &str) -> Vec<Event> {
        let error = Event::Error { text: brief(words) };
        if self.stage == (Stage::Calling { thread: true }) {
            self.call_anew();
            return vec![error];
        }
        self.stage = Stage::Over;
        let text = brief(words);
        vec![error, Event::Final { ok: false, text }]
    }

    fn greeted(&mut self, result: &Value) -> Result<Vec<Event>, Breach> {
        let version = text(result, "/protocolVersion");
        if !VERSIONS.contains(&version) {
            return breach(format!("speaks version `{}` of MCP", brief(version)));
        }
        if result.pointer("/capabilities/tools").is_none() {
            return breach("offers no tools");
        }
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self.stage = Stage::Listing;
        self.ask("tools/list", &json!({}));
        Ok(Vec::new())
    }

    fn listed(&mut self, result: &Value) -> Result<Vec<Event>, Breach> {
        let Some(tools) = result["tools"].as_array() else {
            return breach("lists its tools without a list");
        };
        let known = [&self.call.server.tool, &self.call.server.reply_tool];
        let names = tools.iter().map(|tool| text(tool, "/name"));
        let found = names.filter(|name| known.iter().any(|wanted| wanted == name));
        let found: Vec<String> = found.map(str::to_owned).collect();
        self.tools.extend(found);
        if let Some(cursor) = result.get("nextCursor").and_then(Value::as_str) {
            if self.asked > MOST_PAGES {
                return breach("lists its tools without end");
            }
            self.ask("tools/list", &json!({ "cursor": cursor }));
            return Ok(Vec::new());
        }
        let server = &self.call.server;
        let offers = |name: &String| self.tools.contains(name);
        if !offers(&server.tool) {
            return breach(format!("offers no tool `{}`", server.tool));
        }
        let reply = Some(server.reply_tool.clone()).filter(offers);
        match (reply, self.call.thread.clone()) {
            (Some(tool), Some(thread)) => {
                let arguments = json!({ "prompt": self.call.prompt, "threadId": thread });
                self.stage = Stage::Calling { thread: true };
                self.ask(
                    "tools/call",
                    &json!({ "name": tool, "arguments": arguments }),
                );
            }
            _ => self.call_anew(),
        }
        Ok(Vec::new())
    }

    fn call_anew(&mut self) {
        let mut arguments = self.call.arguments.clone();
        arguments.insert("prompt".to_owned(), json!(self.call.prompt));
        let tool = self.call.server.tool.clone();
        self.stage = Stage::Calling { thread: false };
        self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
    }

    fn done(&mut self, result: &Value, thread: bool) -> Result<Vec<Event>, Breach> {
        let words = match result["content"].as_array() {
            Some(parts) => {
                let words: Vec<&str> = parts.iter().map(|part| text(part, "/text")).collect();
                words.join("\n")
            }
            // Codex reports a broken session this way.
            None => match result.get("error").and_then(Value::as_str) {
                Some(words) => return Ok(self.failed(words)),
                None => return breach("answered a call without content"),
            },
        };
        if result["isError"] == Value::Bool(true) {
            return Ok(self.failed(&words));
        }
        let mut events = Vec::new();
        if let Some(thread) = result.pointer("/structuredContent/threadId") {
            events.push(session(thread.as_str().unwrap_or_default()));
        } else if let Some(known) = self.call.thread.as_deref().filter(|_| thread) {
            events.push(session(known));
        }
        self.stage = Stage::Over;
        let text = brief(&words);
        if !words.is_empty() {
            events.push(Event::Message { text: text.clone() });
        }
        events.push(Event::Final { ok: true, text });
        self.answer = Some(words);
        Ok(events)
    }
}

fn session(thread: &str) -> Event {
    Event::Session {
        thread: brief(thread),
    }
}

/// The events of a notification: what Codex reports about its work, or none for an unknown one.
fn notified(method: &str, params: &Value) -> Vec<Event> {
    if method != "codex/event" {
        return Vec::new();
    }
    let message = &params["msg"];
    let tool = |name: &str, detail: &str| {
        vec![Event::Tool {
            name: brief(name),
            detail: brief(detail),
        }]
    };
    match text(message, "/type") {
        "session_configured" => {
            let thread = [text(message, "/thread_id"), text(message, "/session_id")];
            let thread = thread.into_iter().find(|thread| !thread.is_empty());
            thread.map(session).into_iter().collect()
        }
        "agent_message" => vec![Event::Message {
            text: brief(text(message, "/message")),
        }],
        "exec_command_begin" => {
            let words = message["command"].as_array().map_or(&[][..], Vec::as_slice);
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            tool("shell", &words.join(" "))
        }
        "mcp_tool_call_begin" => tool(
            text(message, "/invocation/server"),
            text(message, "/invocation/tool"),
        ),
        "web_search_end" => tool("web_search", text(message, "/query")),
        "patch_apply_begin" => {
            let changes = message["changes"].as_object();
            let paths = changes.into_iter().flat_map(Map::keys);
            let change = |path: &String| Event::FileChange { path: brief(path) };
            paths.map(change).collect()
        }
        "token_count" => {
            let total = &message["info"]["total_token_usage"];
            let spent = Usage {
                input_tokens: number(total, "/input_tokens"),
                cached_tokens: number(total, "/cached_input_tokens"),
                output_tokens: number(total, "/output_tokens"),
                micro_usd: 0,
            };
            // The first ones come before anything was spent.
            total
                .is_object()
                .then_some(Event::Usage(spent))
                .into_iter()
                .collect()
        }
        "error" | "stream_error" => vec![Event::Error {
            text: brief(text(message, "/message")),
        }],
        _ => Vec::new(),
    }
}

/// Whether a message that is not an event shows that the agent is working.
fn shows_progress(message: &Value) -> bool {
    match text(message, "/method") {
        "notifications/progress" => true,
        "codex/event" => {
            let kind = text(message, "/params/msg/type");
            !kind.contains("error") && !kind.contains("warning")
        }
        _ => false,
    }
}
