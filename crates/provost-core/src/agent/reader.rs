//! Parses the output stream of an agent line by line, and keeps totals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Adapter;
use super::claude::{self, Tally};
use super::codex;
use super::event::{Event, Usage};
use super::gemini::{self, Speech};
use super::mcp::{self, Breach, Call, Dialogue};

/// The longest line that is read, in bytes; a longer one is counted and skipped.
const LONGEST_LINE: usize = 4 << 20;

/// Parses the stream of one attempt.
#[derive(Debug)]
pub struct Reader {
    adapter: Adapter,
    line: Vec<u8>,
    /// Whether the rest of an overlong line is still to come.
    skipping: bool,
    tally: Tally,
    speech: Speech,
    dialogue: Option<Dialogue>,
    last: String,
    /// The forbidden actions of the contract, in lower case.
    forbidden: Vec<String>,
    answer: Option<Value>,
    sum: Sum,
    complaint: Option<Complaint>,
}

/// An error of a program about its model, which it retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The HTTP status of the model's reply, if any.
    pub status: Option<u16>,
    /// The program's message.
    pub words: String,
    /// How often it was reported since the agent last made progress.
    pub times: u32,
}

/// Totals of an attempt's stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub events: u64,
    /// How many events show progress.
    pub progress: u64,
    /// Lines that are not events: not JSON, or too long.
    pub unread: u64,
    /// Usage as the agent reports it.
    pub usage: Usage,
    /// How often a tool was used for each forbidden action.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forbidden: BTreeMap<String, u64>,
    /// The program's name for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// How the agent says that it ended; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// How an agent says that it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The agent finished.
    Done,
    /// It gave up, with this message.
    GaveUp(String),
    /// It violates its protocol, in this way.
    Broken(String),
}

impl Reader {
    pub fn new(adapter: Adapter) -> Self {
        Self {
            adapter,
            line: Vec::new(),
            skipping: false,
            tally: Tally::default(),
            speech: Speech::default(),
            dialogue: None,
            last: String::new(),
            forbidden: Vec::new(),
            answer: None,
            sum: Sum::default(),
            complaint: None,
        }
    }

    /// Counts tool uses that match `actions`.
    #[must_use]
    pub fn minding(mut self, actions: &[String]) -> Self {
        let words = actions.iter().map(|action| action.trim().to_lowercase());
        self.forbidden = words.filter(|action| !action.is_empty()).collect();
        self
    }

    /// Starts a conversation with a server that is to execute `call`.
    pub fn speaking(call: Call) -> Self {
        Self {
            dialogue: Some(Dialogue::begin(call)),
            ..Self::new(Adapter::Mcp)
        }
    }

    /// The bytes to send to the program since the last call.
    pub fn take_words(&mut self) -> Vec<u8> {
        let dialogue = self.dialogue.as_mut();
        dialogue.map(Dialogue::take_words).unwrap_or_default()
    }

    /// Whether the conversation is complete; most programs have none.
    pub fn is_over(&self) -> bool {
        self.dialogue.as_ref().is_some_and(Dialogue::is_over)
    }

    /// Ends a conversation that cannot continue.
    pub fn break_off(&mut self, why: &str) -> Vec<Event> {
        self.broken(Breach(why.to_owned()))
    }

    fn broken(&mut self, Breach(words): Breach) -> Vec<Event> {
        let Some(dialogue) = self.dialogue.as_mut().filter(|it| !it.is_over()) else {
            return Vec::new();
        };
        dialogue.close();
        let text = format!("the server {words}");
        self.sum.end = Some(End::Broken(words));
        let event = Event::Error { text };
        self.note(&event);
        vec![event]
    }

    /// The error about its model, if it has made no progress since.
    pub fn complaint(&self) -> Option<&Complaint> {
        self.complaint.as_ref()
    }

    pub fn sum(&self) -> &Sum {
        &self.sum
    }

    /// The answer, complete; a string if it is not JSON.
    pub fn answer(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Processes the next bytes and returns their events.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            self.gather(part);
            if lines.peek().is_some() {
                events.extend(self.end_line());
            }
        }
        events
    }

    /// Processes the rest after the last line break and returns its events.
    pub fn finish(&mut self) -> Vec<Event> {
        self.end_line()
    }

    fn gather(&mut self, part: &[u8]) {
        if self.skipping || self.line.len() + part.len() > LONGEST_LINE {
            self.line.clear();
            self.skipping = true;
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) -> Vec<Event> {
        let line = std::mem::take(&mut self.line);
        let too_long = std::mem::take(&mut self.skipping);
        if !too_long && line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let read = serde_json::from_slice::<Value>(&line);
        let Some(line) = read.ok().filter(|line| !too_long && line.is_object()) else {
            self.sum.unread += 1;
            let what = if too_long {
                "printed a line of more than 4 MiB"
            } else {
                "printed what is no message"
            };
            return self.break_off(what);
        };
        let events = match self.adapter {
            Adapter::Exec => Vec::new(),
            Adapter::Codex => codex::events(&line, &self.last),
            Adapter::Claude => claude::events(&line, &mut self.tally),
            Adapter::Gemini => gemini::events(&line, &mut self.speech),
            Adapter::Mcp => match self.dialogue.as_mut().map(|it| it.hear(&line)) {
                Some(Ok(events)) => events,
                Some(Err(breach)) => return self.broken(breach),
                None => Vec::new(),
            },
        };
        self.keep_answer(&line);
        self.keep_complaint(&line, &events);
        if events.is_empty() && self.stirs(&line) {
            self.sum.progress += 1;
        }
        for event in &events {
            self.note(event);
        }
        events
    }

    /// Whether a line that is not an event shows that the agent is working: a tool that starts, or
    /// a thought.
    fn stirs(&self, line: &Value) -> bool {
        let kind = text(line, "/type");
        match self.adapter {
            Adapter::Exec => false,
            Adapter::Codex => kind.starts_with("item.") && text(line, "/item/type") != "error",
            // System lines include retries.
            Adapter::Claude => matches!(kind, "assistant" | "user" | "stream_event"),
            Adapter::Gemini => kind == "tool_result" || text(line, "/role") == "assistant",
            Adapter::Mcp => mcp::stirs(line),
        }
    }

    fn note(&mut self, event: &Event) {
        let sum = &mut self.sum;
        sum.events += 1;
        sum.progress += u64::from(event.is_progress());
        match event {
            Event::Session { thread } => sum.thread = Some(thread.clone()),
            Event::Message { text } => text.clone_into(&mut self.last),
            Event::Usage(usage) => sum.usage = *usage,
            Event::Final { ok: true, .. } => sum.end = Some(End::Done),
            Event::Final { ok: false, text } => sum.end = Some(End::GaveUp(text.clone())),
            Event::Tool { detail, .. } => {
                let detail = detail.to_lowercase();
                let seen = self.forbidden.iter().filter(|it| detail.contains(*it));
                for action in seen {
                    *sum.forbidden.entry(action.clone()).or_default() += 1;
                }
            }
            Event::FileChange { .. } | Event::Error { .. } => {}
        }
    }

    /// Keeps the error of a line about the model; progress clears it.
    fn keep_complaint(&mut self, line: &Value, events: &[Event]) {
        let found = match self.adapter {
            Adapter::Codex => codex::complaint(line),
            Adapter::Claude => claude::complaint(line),
            Adapter::Exec | Adapter::Gemini | Adapter::Mcp => None,
        };
        if let Some((status, words)) = found {
            let times = self.complaint.take().map_or(0, |before| before.times) + 1;
            self.complaint = Some(Complaint {
                status,
                words,
                times,
            });
        } else if events.iter().any(Event::is_progress) {
            self.complaint = None;
        }
    }

    /// Events are truncated, so the whole answer is kept separately.
    fn keep_answer(&mut self, line: &Value) {
        let found = match self.adapter {
            Adapter::Exec => None,
            Adapter::Codex => {
                let message = text(line, "/item/type") == "agent_message";
                let words = text(line, "/item/text");
                message.then(|| serde_json::from_str(words).unwrap_or(Value::from(words)))
            }
            Adapter::Claude => line.get("structured_output").cloned(),
            Adapter::Gemini => (text(line, "/type") == "result").then(|| self.speech.answer()),
            Adapter::Mcp => {
                let words = self.dialogue.as_ref().and_then(Dialogue::answer);
                words.map(spoken)
            }
        };
        self.answer = found.or(self.answer.take());
    }
}

/// The answer in `words`, with or without a Markdown code fence; text that is not JSON becomes a
/// string.
pub(super) fn spoken(words: &str) -> Value {
    let bare = words.trim();
    let fenced = bare.strip_prefix("```json").or(bare.strip_prefix("```"));
    let inner = fenced.and_then(|rest| rest.strip_suffix("```"));
    serde_json::from_str(inner.unwrap_or(bare)).unwrap_or(Value::from(words))
}

/// The string at `place`, or empty.
pub(super) fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    let found = value.pointer(place).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The number at `place`, or 0.
pub(super) fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}
