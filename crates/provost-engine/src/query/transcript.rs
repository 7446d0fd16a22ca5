//! What the agents and reviewers of a run said and did, as their programs report it.
//!
//! It is a claim and decides nothing. The files are read while they grow, so the last line of one
//! may be incomplete.

use provost_core::agent::event::Event;
use provost_core::json;
use provost_core::run::effect::Effect;
use provost_core::run::fact::{AgentRun, Ending};
use provost_core::run::{State, Step};
use serde::Serialize;
use serde_json::Value;

use super::archive::RunFiles;

/// How many bytes at the end of a file are searched for the last words.
const WINDOW: u64 = 64 * 1024;

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Worker {
    Agent,
    Reviewer,
}

impl Worker {
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Reviewer => "reviewer",
        }
    }
}

/// The files of the bundle with the words of one attempt of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptSource {
    /// From 1.
    pub attempt: u32,
    pub worker: Worker,
    /// The events, if its program is known.
    pub events: Option<String>,
    pub stdout: String,
    pub stderr: String,
}

impl TranscriptSource {
    pub(crate) fn of(attempt: u32, worker: Worker, run: &AgentRun) -> Self {
        Self {
            attempt,
            worker,
            events: run.claims.as_ref().map(|it| it.events.file.clone()),
            stdout: run.stdout.file.clone(),
            stderr: run.stderr.file.clone(),
        }
    }

    /// The files to read: the events, or else everything that was printed.
    pub fn files(&self) -> Vec<(&str, LineKind)> {
        match &self.events {
            Some(events) => vec![(events, LineKind::Event)],
            None => vec![
                (&self.stdout, LineKind::Stdout),
                (&self.stderr, LineKind::Stderr),
            ],
        }
    }

    /// One line of one of the files; `None` if it is not what it should be.
    pub fn entry(&self, kind: LineKind, line: &str) -> Option<TranscriptEntry> {
        let said = match kind {
            LineKind::Event => Said::Event(json::parse_as(line.as_bytes()).ok()?),
            LineKind::Stdout | LineKind::Stderr => Said::Line {
                kind,
                text: line.to_owned(),
            },
        };
        let Self {
            attempt, worker, ..
        } = *self;
        Some(TranscriptEntry {
            attempt,
            worker,
            said,
        })
    }

    /// The entries at the end of its files, oldest first.
    fn last_entries(&self, files: &dyn RunFiles) -> Vec<TranscriptEntry> {
        let entries = |(file, kind): (&str, LineKind)| {
            let bytes = files.end_of(file, WINDOW).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let entries: Vec<_> = lines.filter_map(|line| self.entry(kind, line)).collect();
            entries
        };
        // Standard output counts more than what was printed beside it.
        self.files().into_iter().rev().flat_map(entries).collect()
    }
}

/// What a line of such a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    Event,
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TranscriptEntry {
    pub attempt: u32,
    pub worker: Worker,
    #[serde(flatten)]
    pub said: Said,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Said {
    Event(Event),
    /// A line of a program that is not known.
    Line {
        kind: LineKind,
        text: String,
    },
}

impl TranscriptEntry {
    /// The speaker and the words, as others wrote them; `None` if there is nothing to read.
    pub fn words(&self) -> Option<(&'static str, String)> {
        match &self.said {
            Said::Line { text, .. } => Some((self.worker.word(), text.clone())),
            Said::Event(event) => event_words(self.worker, event),
        }
    }

    /// The words of a worker, and not of a tool or a program.
    fn spoken(&self) -> Option<String> {
        let (speaker, words) = self.words()?;
        let is_worker =
            speaker == self.worker.word() || matches!(self.said, Said::Event(Event::Final { .. }));
        (is_worker && !words.trim().is_empty()).then_some(words)
    }

    /// The tool that was used, with its arguments.
    fn tool(&self) -> Option<String> {
        match &self.said {
            Said::Event(Event::Tool { .. }) => Some(self.words()?.1),
            Said::Event(Event::FileChange { path }) => Some(format!("edit {}", in_workspace(path))),
            _ => None,
        }
    }
}

/// The speaker and the words of an event; `None` if there is nothing to read.
pub fn event_words(worker: Worker, event: &Event) -> Option<(&'static str, String)> {
    match event {
        Event::Session { .. } | Event::Usage(_) => None,
        Event::Message { text } | Event::Final { ok: true, text } => {
            Some((worker.word(), said_in(text)))
        }
        Event::Tool { name, detail } => Some(("tool", format!("{name} {}", arguments(detail)))),
        Event::ToolResult { ok, text } => Some(("result", outcome(*ok, text))),
        Event::FileChange { path } => Some(("edit", in_workspace(path).to_owned())),
        Event::Error { text } => Some(("error", text.clone())),
        Event::Final { ok: false, text } => Some(("error", format!("gave up: {text}"))),
    }
}

/// The summary of an answer that was bound to a schema; other text as it is.
fn said_in(text: &str) -> String {
    let answer = serde_json::from_str::<Value>(text).ok();
    let summary = answer.as_ref().and_then(|it| it.get("summary")?.as_str());
    summary.unwrap_or(text).to_owned()
}

/// The arguments of a tool; those of JSON as `name=value`.
fn arguments(detail: &str) -> String {
    let Ok(Value::Object(fields)) = json::parse(detail.as_bytes()) else {
        return detail.to_owned();
    };
    let field = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => format!("{name}={}", in_workspace(text)),
        None => format!("{name}={value}"),
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    fields.join(" ")
}

/// The first line of what a tool answered, and how many there are.
fn outcome(ok: bool, text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map_or("(no output)", str::trim);
    let more = match lines.count() {
        0 => String::new(),
        1 => " (1 more line)".to_owned(),
        more => format!(" ({more} more lines)"),
    };
    let mark = if ok { "" } else { "failed: " };
    format!("{mark}{first}{more}")
}

/// A path below the workspace, relative to it.
fn in_workspace(path: &str) -> &str {
    path.strip_prefix("/workspace/").unwrap_or(path)
}

/// The words of all attempts, oldest first; of the active one too.
pub fn transcripts(state: &State) -> Vec<TranscriptSource> {
    let source = TranscriptSource::of;
    let mut all = Vec::new();
    for past in &state.past {
        all.extend(
            past.agent
                .iter()
                .map(|it| source(past.attempt, Worker::Agent, it)),
        );
        let reviewed = past.reviewed.iter().map(|it| &it.run);
        all.extend(reviewed.map(|it| source(past.attempt, Worker::Reviewer, it)));
    }
    let now = state.attempt;
    all.extend(state.agent.iter().map(|it| source(now, Worker::Agent, it)));
    let reviewed = state.reviewed.iter().map(|it| &it.run);
    all.extend(reviewed.map(|it| source(now, Worker::Reviewer, it)));
    all.extend(active(state));
    all
}

/// The words of the worker that is at work now.
fn active(state: &State) -> Option<TranscriptSource> {
    let step = state.pending.filter(|_| state.finished.is_none())?;
    let attempt = state.attempt;
    match (step, state.effect(step).ok()?) {
        (Step::Agent, Effect::Agent(effect)) => Some(TranscriptSource {
            attempt,
            worker: Worker::Agent,
            events: effect.adaptation.map(|it| it.events),
            stdout: effect.stdout,
            stderr: effect.stderr,
        }),
        (Step::Review, Effect::Review(effect)) => Some(TranscriptSource {
            attempt,
            worker: Worker::Reviewer,
            events: effect.look.adaptation.map(|it| it.events),
            stdout: effect.look.stdout,
            stderr: effect.look.stderr,
        }),
        _ => None,
    }
}

/// The last words of the agent of the last attempt. One that never started said nothing: what its
/// streams hold is from the sandbox.
pub(super) fn last_words(state: &State, files: &dyn RunFiles) -> Option<String> {
    let ending = state.agent.as_ref().map(|run| run.ending);
    if ending == Some(Ending::NotStarted) {
        return None;
    }
    let all = transcripts(state);
    let mut agents = all.iter().rev().filter(|it| it.worker == Worker::Agent);
    let entries = agents.next()?.last_entries(files);
    entries.iter().rev().find_map(TranscriptEntry::spoken)
}

/// What the active worker did and said last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Latest {
    pub(super) tool: Option<String>,
    pub(super) words: Option<String>,
}

pub(super) fn latest(state: &State, files: &dyn RunFiles) -> Latest {
    let Some(source) = active(state) else {
        return Latest::default();
    };
    let entries = source.last_entries(files);
    Latest {
        tool: entries.iter().rev().find_map(TranscriptEntry::tool),
        words: entries.iter().rev().find_map(TranscriptEntry::spoken),
    }
}

/// The end of a transcript as lines, each with its speaker.
pub(super) fn last_lines(run: &AgentRun, files: &dyn RunFiles) -> Vec<String> {
    let source = TranscriptSource::of(0, Worker::Agent, run);
    let entries = source.last_entries(files);
    let words = entries.iter().filter_map(TranscriptEntry::words);
    let mut lines: Vec<String> = Vec::new();
    for (speaker, text) in words {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line = format!("{speaker}: {line}");
            // The last message is often repeated at the end.
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(events: Option<&str>) -> TranscriptSource {
        TranscriptSource {
            attempt: 2,
            worker: Worker::Agent,
            events: events.map(str::to_owned),
            stdout: "stdout.log".to_owned(),
            stderr: "stderr.log".to_owned(),
        }
    }

    #[test]
    fn every_kind_of_event_is_readable_in_one_line() {
        let cases = [
            (r#"{"kind":"session","thread":"t"}"#, None),
            (
                r#"{"kind":"message","text":"I look"}"#,
                Some("agent: I look"),
            ),
            (
                r#"{"kind":"message","text":"{\"status\":\"SUCCESS\",\"summary\":\"all fine\"}"}"#,
                Some("agent: all fine"),
            ),
            (
                r#"{"kind":"tool","name":"shell","detail":"ls -l"}"#,
                Some("tool: shell ls -l"),
            ),
            (
                r#"{"kind":"tool","name":"Read","detail":"{\"file_path\":\"/workspace/a\",\"limit\":3}"}"#,
                Some("tool: Read file_path=a limit=3"),
            ),
            (
                r#"{"kind":"tool_result","ok":true,"text":"\n one\ntwo\n\nthree\n"}"#,
                Some("result: one (2 more lines)"),
            ),
            (
                r#"{"kind":"tool_result","ok":false,"text":""}"#,
                Some("result: failed: (no output)"),
            ),
            (
                r#"{"kind":"file_change","path":"/workspace/src/a"}"#,
                Some("edit: src/a"),
            ),
            (r#"{"kind":"error","text":"429"}"#, Some("error: 429")),
            (
                r#"{"kind":"final","ok":false,"text":"no model"}"#,
                Some("error: gave up: no model"),
            ),
            ("{\"kind\":\"message\",\"te", None),
        ];
        let source = source(Some("events.jsonl"));
        for (line, want) in cases {
            let entry = source.entry(LineKind::Event, line);
            let words = entry.and_then(|entry| entry.words());
            let words = words.map(|(speaker, words)| format!("{speaker}: {words}"));
            assert_eq!(words.as_deref(), want, "{line}");
        }
    }

    #[test]
    fn an_entry_is_the_event_with_its_attempt() {
        let line = r#"{"kind":"message","text":"hi"}"#;
        let entry = source(Some("e")).entry(LineKind::Event, line).unwrap();
        let want = r#"{"attempt":2,"worker":"agent","kind":"message","text":"hi"}"#;
        assert_eq!(serde_json::to_string(&entry).unwrap(), want);
        let entry = source(None).entry(LineKind::Stderr, "oh").unwrap();
        let want = r#"{"attempt":2,"worker":"agent","kind":"stderr","text":"oh"}"#;
        assert_eq!(serde_json::to_string(&entry).unwrap(), want);
    }
}
