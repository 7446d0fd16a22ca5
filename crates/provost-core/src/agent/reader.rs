//! Follows what an agent prints, line by line, and keeps the sum of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Adapter;
use super::claude::{self, Tally};
use super::codex;
use super::event::{Event, Usage};
use super::gemini::{self, Speech};
use super::mcp::{self, Breach, Call, Dialogue};

/// The longest line that is read; a longer one is counted and left out.
const LONGEST_LINE: usize = 4 << 20;

/// Follows the stream of one attempt.
#[derive(Debug)]
pub struct Reader {
    adapter: Adapter,
    line: Vec<u8>,
    /// Whether the rest of a line that is too long is still to come.
    skipping: bool,
    tally: Tally,
    speech: Speech,
    dialogue: Option<Dialogue>,
    last: String,
    /// What the contract asks the agent not to do, in lower case.
    forbidden: Vec<String>,
    answer: Option<Value>,
    sum: Sum,
    complaint: Option<Complaint>,
}

/// What a program says about its model, which it asks again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The status that the model answered with, if it did.
    pub status: Option<u16>,
    /// The words of the program.
    pub words: String,
    /// How often it said so since work last went on.
    pub times: u32,
}

/// What the stream of an attempt comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// How many events there were.
    pub events: u64,
    /// How many of them show that work went on.
    pub progress: u64,
    /// Lines that are no event: not JSON, or too long.
    pub unread: u64,
    /// What was spent, as the agent says.
    pub usage: Usage,
    /// How often a tool was used for what the contract asks not to do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forbidden: BTreeMap<String, u64>,
    /// How the program calls the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// How it ended, by its own word; nothing if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// The last word of an agent about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It came to its end.
    Done,
    /// It gave up, with these words.
    GaveUp(String),
    /// It does not speak as it has to; in which way.
    Broken(String),
}

impl Reader {
    /// Begins to follow the program of `adapter`.
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

    /// Looks out for `actions` among what tools are used for.
    #[must_use]
    pub fn minding(mut self, actions: &[String]) -> Self {
        let words = actions.iter().map(|action| action.trim().to_lowercase());
        self.forbidden = words.filter(|action| !action.is_empty()).collect();
        self
    }

    /// Begins to speak with a server that is to do `call`.
    pub fn speaking(call: Call) -> Self {
        Self {
            dialogue: Some(Dialogue::begin(call)),
            ..Self::new(Adapter::Mcp)
        }
    }

    /// What is to be sent to the program since the last time.
    pub fn take_words(&mut self) -> Vec<u8> {
        let dialogue = self.dialogue.as_mut();
        dialogue.map(Dialogue::take_words).unwrap_or_default()
    }

    /// Whether everything was said in a conversation; there is none with most programs.
    pub fn is_over(&self) -> bool {
        self.dialogue.as_ref().is_some_and(Dialogue::is_over)
    }

    /// Ends a conversation that cannot go on.
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

    /// What it said about its model since work last went on.
    pub fn complaint(&self) -> Option<&Complaint> {
        self.complaint.as_ref()
    }

    /// What it comes to so far.
    pub fn sum(&self) -> &Sum {
        &self.sum
    }

    /// The answer that a schema was bound to, whole; a text if it is no JSON.
    pub fn answer(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Takes the next bytes; answers what they told.
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

    /// Takes what follows the last line break; answers what it told.
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

    /// Whether a line that is no event shows that work goes on: a tool that begins, or a thought.
    fn stirs(&self, line: &Value) -> bool {
        let kind = text(line, "/type");
        match self.adapter {
            Adapter::Exec => false,
            Adapter::Codex => kind.starts_with("item.") && text(line, "/item/type") != "error",
            // What is of the system tells of retries, too.
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

    /// What a line says about the model; work that goes on takes it back.
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

    /// Events are cut, so the answer is kept beside them.
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

/// The answer that `words` hold, with or without the fence that models like to put around it; what
/// is no JSON stays a text.
pub(super) fn spoken(words: &str) -> Value {
    let bare = words.trim();
    let fenced = bare.strip_prefix("```json").or(bare.strip_prefix("```"));
    let inner = fenced.and_then(|rest| rest.strip_suffix("```"));
    serde_json::from_str(inner.unwrap_or(bare)).unwrap_or(Value::from(words))
}

/// The text at `place`, or none.
pub(super) fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    let found = value.pointer(place).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The number at `place`, or none.
pub(super) fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}
