//! One file for each protocol that an agent program prints.
//!
//! # Invariants
//!
//! - What a program prints is untrusted. A message that violates the protocol of a conversation ends
//!   the conversation; the host never waits for a message that cannot come.
//! - A parser has no effects: the host passes it lines and sends what it says.

mod app_server;
mod claude;
mod codex;
mod gemini;
mod mcp;
mod prompt;

use std::fmt;

use provost_core::agent::Adapted;
use provost_core::agent::adapter::StreamForm;
use provost_core::agent::event::Event;
use provost_core::agent::launch::Answer;
use serde_json::Value;

/// The parser for what `agent` prints while it works on `task`.
pub(crate) fn of(agent: &Adapted, task: &AgentTask<'_>) -> Box<dyn StreamParser> {
    match agent.adapter.prints(agent) {
        StreamForm::Any => Box::new(UnreadStream),
        StreamForm::CodexExec => Box::new(codex::CodexStream::default()),
        StreamForm::CodexAppServer => Box::new(app_server::AppServerDialogue::begin(agent, task)),
        StreamForm::Claude => Box::new(claude::ClaudeStream::begin(agent, task)),
        StreamForm::Gemini => Box::new(gemini::GeminiStream::default()),
        StreamForm::Mcp => Box::new(mcp::McpStream::begin(agent, task)),
    }
}

/// The work that a program gets where it converses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentTask<'a> {
    pub(crate) prompt: &'a str,
    /// The conversation to continue.
    pub(crate) thread: Option<&'a str>,
    pub(crate) answer: Answer,
}

/// The output of a command, which is not read.
#[derive(Debug)]
struct UnreadStream;

impl StreamParser for UnreadStream {
    fn read(&mut self, _: &Value) -> Result<Line, Breach> {
        Ok(Line::default())
    }
}

/// Reads the output of one attempt, line by line.
pub(crate) trait StreamParser: fmt::Debug + Send {
    fn read(&mut self, line: &Value) -> Result<Line, Breach>;

    /// The conversation with a program that answers requests; most have none.
    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        None
    }
}

/// What one line of output says.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) events: Vec<Event>,
    /// Whether it shows that the agent is working, even without an event: a tool that starts, or a
    /// thought.
    pub(crate) is_progress: bool,
    /// The error about a model that does not answer: the status, if any, and the message.
    pub(crate) complaint: Option<(Option<u16>, String)>,
    /// The whole answer so far; events are truncated.
    pub(crate) answer: Option<Value>,
}

/// The client's side of a conversation.
pub(crate) trait Conversation {
    /// The bytes to send to the program since the last call.
    fn take_words(&mut self) -> Vec<u8>;

    fn is_over(&self) -> bool;

    /// Ends it; nothing more is sent.
    fn close(&mut self);

    /// The commands that the program asks about and that have no answer, by its ids.
    fn asked_commands(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Answers the question `id`; an error is the reason of a no.
    fn answer_command(&mut self, _id: &str, _permitted: Result<(), &str>) {}
}

/// A violation of its protocol by the program, as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breach(pub(super) String);

/// The answer in `words`, with or without a Markdown code fence; text that is not JSON becomes a
/// string.
fn spoken(words: &str) -> Value {
    let bare = words.trim();
    let fenced = bare.strip_prefix("```json").or(bare.strip_prefix("```"));
    let inner = fenced.and_then(|rest| rest.strip_suffix("```"));
    serde_json::from_str::<Value>(inner.unwrap_or(bare)).unwrap_or(Value::from(words))
}

/// The string at `place`, or empty.
fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    let found = value.pointer(place).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The number at `place`, or 0.
fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
