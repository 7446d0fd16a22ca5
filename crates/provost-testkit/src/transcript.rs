//! Output of a series of commands, for users and for programs, as one text for a snapshot.
//!
//! # Invariants
//!
//! - Whatever differs from run to run (ids, digests, times, durations, paths, versions) becomes a
//!   word in angle brackets. Ids are numbered in order of appearance, so that a snapshot still
//!   shows which lines concern the same run.
//! - Nothing else is left out: it has exit status, stdout and stderr of every command.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::stage::{Outcome, Stage, program};

static IDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?<kind>run|plan|chain)_(?:\d{8}_\d{6}_\d{3}_[0-9a-f]{12}|[0-9a-z]{8,})\b",
        r"|\b(?<task>task)-\d{10,}\b|\b01[0-9A-HJKMNP-TV-Z]{24}\b|\b(?<short>[0-9a-f]{8})\b",
    ))
});

/// What is replaced by a word, in this order.
static WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?",
            "<time>",
        ),
        (r"ed25519:[A-Za-z0-9+/]{43}=", "ed25519:<key>"),
        (r"\b[0-9a-f]{64}\b", "<sha256>"),
        (r"\b[0-9a-f]{40}\b", "<sha1>"),
        (r"\b[0-9a-f]{32}\b", "<hex32>"),
        (r"\b[0-9a-f]{16}\b", "<hex16>"),
        (r"\b([0-9a-f]{8}|[0-9a-f]{10}|[0-9a-f]{12})\b", "<hex>"),
        (r"[A-Za-z0-9+/]{80,}={0,2}", "<base64>"),
        (r#"time="\d+\.\d+""#, "time=\"<number>\""),
        (
            r"\b\d+(\.\d+)? ?(ms|s|min|h|seconds?|minutes?)\b",
            "<duration>",
        ),
        // The width of a column depends on its content.
        (r" {2,}<duration>", "  <duration>"),
        // The number of attacks depends on the kernel.
        (r"\b\d+ escape attempts\b", "<number> escape attempts"),
        (r"\bLinux \d+\.\d+[^ ,;)]*", "Linux <version>"),
    ]
    .into_iter()
    .map(|(text, word)| (pattern(text), word))
    .collect()
});

/// Whether the numbers of this field of an answer are measured.
fn is_measured(name: &str) -> bool {
    name.ends_with("_ms")
        || matches!(
            name,
            "pid" | "uid" | "agent_start_epoch" | "seconds" | "bytes" | "size"
        )
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

pub struct Transcript<'a> {
    stage: &'a Stage,
    ids: BTreeMap<String, String>,
    text: String,
}

impl Stage {
    /// A transcript of what follows.
    pub fn transcript(&self) -> Transcript<'_> {
        Transcript {
            stage: self,
            ids: BTreeMap::new(),
            text: String::new(),
        }
    }
}

impl Transcript<'_> {
    /// Runs the program for a user whose output is no terminal, and records its output.
    pub fn plain(&mut self, words: &[&str]) -> Outcome {
        let outcome = self.stage.ask(words);
        self.head(words, outcome.exit);
        let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
        self.block("stdout", &stdout);
        self.block("stderr", &outcome.stderr);
        outcome
    }

    /// The same with `--json`: the answer is recorded with one field per line.
    pub fn json(&mut self, words: &[&str]) -> Outcome {
        let mut all = words.to_vec();
        all.insert(0, "--json");
        let outcome = self.stage.ask(&all);
        self.head(&all, outcome.exit);
        let stdout = match &outcome.json {
            Value::Null => String::from_utf8_lossy(&outcome.stdout).into_owned(),
            value => serde_json::to_string_pretty(&settled(value.clone())).unwrap(),
        };
        self.block("stdout", &stdout);
        self.block("stderr", &outcome.stderr);
        outcome
    }

    /// Both ways, for a command that changes nothing.
    pub fn both(&mut self, words: &[&str]) {
        self.plain(words);
        self.json(words);
    }

    /// On a terminal of 80 columns: what it shows at the end.
    pub fn terminal(&mut self, words: &[&str]) -> Outcome {
        self.terminal_of(80, words)
    }

    /// The same on a terminal of `columns`.
    pub fn terminal_of(&mut self, columns: usize, words: &[&str]) -> Outcome {
        let program = program().display().to_string();
        let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
        let line: Vec<String> = words.iter().map(quoted).collect();
        let inner = format!(
            "stty cols {columns} rows 200; exec '{program}' {}",
            line.join(" ")
        );
        let mut command = self.stage.command("script");
        command.args(["-q", "-e", "-c", &inner, "/dev/null"]);
        command.env("TERM", "xterm-256color");
        let outcome = self.stage.spawn(command).wait();
        self.head(words, outcome.exit);
        let seen = shown_at_the_end(&String::from_utf8_lossy(&outcome.stdout));
        self.block("terminal", &seen);
        outcome
    }

    /// The ids of all runs, plans and chains of the repository.
    fn whole_ids(&self) -> Vec<String> {
        let names = ["runs", "plans", "chains", "refused"]
            .into_iter()
            .flat_map(|kind| {
                let directory = self.stage.path("repo/.provost").join(kind);
                std::fs::read_dir(directory).into_iter().flatten().flatten()
            });
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    pub fn text(self) -> String {
        self.text
    }

    fn head(&mut self, words: &[&str], exit: i32) {
        let quoted = |word: &&str| {
            if word.is_empty() || word.contains([' ', '\'', '"', '\n', ';', '&', '|', '>']) {
                format!("'{word}'")
            } else {
                (*word).to_owned()
            }
        };
        let words: Vec<String> = words.iter().map(quoted).collect();
        let line = self.settle(&format!("$ provost {}", words.join(" ")));
        let _ = writeln!(self.text, "{line}\nexit {exit}");
    }

    fn block(&mut self, name: &str, text: &str) {
        let text = self.settle(text.trim_end());
        if !text.is_empty() {
            let _ = writeln!(self.text, "-- {name}\n{text}");
        }
        if name != "stdout" {
            self.text.push('\n');
        }
    }

    fn settle(&mut self, text: &str) -> String {
        let place = self.stage.path("");
        let place = place.display().to_string();
        let text = text.replace(place.trim_end_matches('/'), "<stage>");
        let text = text.replace(&program().display().to_string(), "<provost>");
        let text = text.replace('\u{1b}', "<esc>").replace('\r', "<cr>");
        let all = self.whole_ids();
        let ids = &mut self.ids;
        let text = IDS.replace_all(&text, |found: &Captures<'_>| {
            let next = ids.len() + 1;
            if let Some(short) = found.name("short") {
                let is_it = |id: &&String| {
                    let random = id.rsplit('_').next();
                    random.is_some_and(|random| random.starts_with(short.as_str()))
                };
                let Some(id) = all.iter().find(is_it) else {
                    return found[0].to_owned();
                };
                let kind = id.split('_').next().unwrap_or_default();
                let name = || format!("<{kind}-{next}>");
                return ids.entry(id.clone()).or_insert_with(name).clone();
            }
            let kind = found.name("kind").or(found.name("task"));
            let kind = kind.map_or("intent", |kind| kind.as_str());
            let name = || format!("<{kind}-{next}>");
            ids.entry(found[0].to_owned()).or_insert_with(name).clone()
        });
        let mut text = text.into_owned();
        for (pattern, word) in &*WORDS {
            text = pattern.replace_all(&text, *word).into_owned();
        }
        text
    }
}

/// What a terminal shows after `text`: it knows the sequences that the program uses, and keeps
/// colours.
pub fn shown_at_the_end(text: &str) -> String {
    // A line feed after a carriage return keeps the line.
    let text = text.replace("\r\n", "\n");
    let mut lines: Vec<String> = vec![String::new()];
    let (mut row, mut at_start) = (0_usize, false);
    let mut rest = text.as_str();
    while let Some(letter) = rest.chars().next() {
        if let Some((count, end, after)) = control(rest) {
            match end {
                'A' => row = row.saturating_sub(count),
                'J' if at_start => {
                    lines.truncate(row + 1);
                    lines[row].clear();
                }
                'K' if at_start => lines[row].clear(),
                'm' => lines[row] += &rest[..rest.len() - after.len()],
                _ => {}
            }
            at_start &= end == 'A';
            rest = after;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\r' => at_start = true,
            '\n' => {
                row += 1;
                if row == lines.len() {
                    lines.push(String::new());
                }
                at_start = false;
            }
            letter => {
                if std::mem::take(&mut at_start) {
                    lines[row].clear();
                }
                lines[row].push(letter);
            }
        }
    }
    lines.join("\n")
}

/// The number and the end of the control sequence that `text` begins with, and what follows it.
fn control(text: &str) -> Option<(usize, char, &str)> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.find(|letter: char| letter.is_ascii_alphabetic())?;
    let count = inside[..end].parse().unwrap_or(1);
    let (end, after) = inside[end..].split_at(1);
    Some((count, end.chars().next()?, after))
}

/// An answer without measured numbers.
fn settled(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let value = match value {
                    Value::Number(_) if is_measured(&name) => "<number>".into(),
                    other => settled(other),
                };
                (name, value)
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(settled).collect()),
        other => other,
    }
}
