//! Parses the output stream of an agent line by line, and keeps totals.

use provost_core::agent::Adapted;
use provost_core::agent::event::Event;
use provost_core::agent::sum::{Complaint, End, Sum};
use provost_core::contract::forbidden;
use serde_json::Value;

use super::parser::{self, AgentTask, Breach, Conversation, StreamParser};

/// The longest line that is read, in bytes; a longer one is counted and skipped.
const LONGEST_LINE: usize = 4 << 20;

/// Parses the stream of one attempt.
#[derive(Debug)]
pub(crate) struct Reader {
    parser: Box<dyn StreamParser>,
    line: Vec<u8>,
    /// Whether the rest of an overlong line is still to come.
    skipping: bool,
    /// The forbidden actions of the contract, in lower case.
    forbidden: Vec<String>,
    /// Forms of commands that are counted.
    shapes: Vec<String>,
    answer: Option<Value>,
    sum: Sum,
    complaint: Option<Complaint>,
}

impl Reader {
    /// Reads the output of `agent`, which works on `task`.
    pub(crate) fn new(agent: &Adapted, task: &AgentTask<'_>) -> Self {
        Self {
            parser: parser::of(agent, task),
            line: Vec::new(),
            skipping: false,
            forbidden: Vec::new(),
            shapes: Vec::new(),
            answer: None,
            sum: Sum::default(),
            complaint: None,
        }
    }

    /// Counts tool uses that match `actions`.
    #[must_use]
    pub(crate) fn minding(mut self, actions: &[String]) -> Self {
        let words = actions.iter().map(|action| action.trim().to_lowercase());
        self.forbidden = words.filter(|action| !action.is_empty()).collect();
        self
    }

    /// Counts tool uses with one of the forms `shapes`.
    #[must_use]
    pub(crate) fn watching_for(mut self, shapes: &[String]) -> Self {
        self.shapes = shapes.to_vec();
        self
    }

    /// Whether the program gets its task, and replies, in a conversation; most do not.
    pub(crate) fn converses(&mut self) -> bool {
        self.parser.conversation().is_some()
    }

    /// The bytes to send to the program since the last call.
    pub(crate) fn take_words(&mut self) -> Vec<u8> {
        let conversation = self.parser.conversation();
        conversation.map_or_else(Vec::new, Conversation::take_words)
    }

    /// The commands that the program asks about and that have no answer, by its ids.
    pub(crate) fn asked_commands(&mut self) -> Vec<(String, String)> {
        let conversation = self.parser.conversation();
        conversation.map_or_else(Vec::new, |it| it.asked_commands())
    }

    /// Answers the question `id`; an error is the reason of a no.
    pub(crate) fn answer_command(&mut self, id: &str, permitted: Result<(), &str>) {
        if let Some(conversation) = self.parser.conversation() {
            conversation.answer_command(id, permitted);
        }
    }

    /// Whether the conversation is complete.
    pub(crate) fn is_over(&mut self) -> bool {
        self.parser.conversation().is_some_and(|it| it.is_over())
    }

    /// Ends a conversation that cannot continue.
    pub(crate) fn break_off(&mut self, why: &str) -> Vec<Event> {
        self.broken(Breach(why.to_owned()))
    }

    fn broken(&mut self, Breach(words): Breach) -> Vec<Event> {
        let conversation = self.parser.conversation();
        let Some(conversation) = conversation.filter(|it| !it.is_over()) else {
            return Vec::new();
        };
        conversation.close();
        let text = format!("the server {words}");
        self.sum.end = Some(End::Broken(words));
        let event = Event::Error { text };
        self.note(&event);
        vec![event]
    }

    /// The error about its model, if it has made no progress since.
    pub(crate) fn complaint(&self) -> Option<&Complaint> {
        self.complaint.as_ref()
    }

    pub(crate) fn sum(&self) -> &Sum {
        &self.sum
    }

    /// The answer, complete; a string if it is not JSON.
    pub(crate) fn answer(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Processes the next bytes and returns their events.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
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
    pub(crate) fn finish(&mut self) -> Vec<Event> {
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
                "printed a line that is not a JSON message"
            };
            return self.break_off(what);
        };
        let read = match self.parser.read(&line) {
            Ok(read) => read,
            Err(breach) => return self.broken(breach),
        };
        let events = read.events;
        self.answer = read.answer.or(self.answer.take());
        self.keep_complaint(read.complaint, &events);
        if events.is_empty() && read.is_progress {
            self.sum.progress += 1;
        }
        for event in &events {
            self.note(event);
        }
        events
    }

    fn note(&mut self, event: &Event) {
        let sum = &mut self.sum;
        sum.events += 1;
        sum.progress += u64::from(event.is_progress());
        match event {
            Event::Session { thread } => sum.thread = Some(thread.clone()),
            Event::Usage(usage) => sum.usage = *usage,
            Event::Final { ok: true, .. } => sum.end = Some(End::Done),
            Event::Final { ok: false, text } => sum.end = Some(End::GaveUp(text.clone())),
            Event::Tool { detail, .. } => {
                let shapes = self.shapes.iter();
                for shape in shapes.filter(|shape| forbidden::is_seen(shape, detail)) {
                    *sum.shapes.entry(shape.clone()).or_default() += 1;
                }
                let detail = detail.to_lowercase();
                let seen = self.forbidden.iter().filter(|it| detail.contains(*it));
                for action in seen {
                    *sum.forbidden.entry(action.clone()).or_default() += 1;
                }
            }
            Event::Message { .. }
            | Event::ToolResult { .. }
            | Event::FileChange { .. }
            | Event::Error { .. } => {}
        }
    }

    /// Keeps the error of a line about the model; progress clears it.
    fn keep_complaint(&mut self, found: Option<(Option<u16>, String)>, events: &[Event]) {
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
}
