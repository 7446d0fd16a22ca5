//! Shows answers: one way for people, one for programs.
//!
//! Text that agents or repositories had a hand in may carry terminal escapes; [`plain`] takes them
//! out of everything that is shown to a person.

use std::io::{self, Write as _};

use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person at a terminal or in a log.
    Person,
    /// A program: `--json`.
    Program,
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        let exit = verdict.exit();
        let text = render_verdict(&verdict);
        let json = serde_json::to_value(&verdict).unwrap_or_default();
        Self { exit, json, text }
    }
}

/// Shows `outcome` and says how the process ends.
pub(crate) fn show(outcome: &Outcome, reader: Reader) -> Exit {
    let (exit, json, text) = match outcome {
        Ok(answer) => (answer.exit, answer.json.clone(), answer.text.clone()),
        Err(failure) => {
            let json = serde_json::to_value(failure.verdict()).unwrap_or_default();
            (failure.code.exit(), json, render_failure(failure))
        }
    };
    let written = match reader {
        Reader::Program if json.is_null() => Ok(()),
        Reader::Program => print_line(&json.to_string()),
        Reader::Person if exit == Exit::Yes || outcome.is_ok() => print_line(text.trim_end()),
        Reader::Person => {
            tell(text.trim_end());
            Ok(())
        }
    };
    // A reader that went away (`provost log | head`) is not our failure.
    if written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        return Exit::Lacking;
    }
    exit
}

fn print_line(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one message for a person to stderr.
pub(crate) fn tell(text: &str) {
    // Nobody is left to be told that telling failed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn render_failure(failure: &Failure) -> String {
    let mut text = format!("error[{}]: {}\n", failure.code, plain(&failure.reason));
    for cause in &failure.causes {
        text += &format!("  because: {}\n", plain(cause));
    }
    match &failure.hint {
        Some(hint) => text += &format!("hint: {}\n", plain(hint)),
        None => text += &format!("hint: provost explain {}\n", failure.code),
    }
    text
}

fn render_verdict(verdict: &Verdict) -> String {
    if verdict.allow {
        return format!("ok: {}\n", plain(&verdict.reason));
    }
    let mut text = format!("error[{}]: {}\n", verdict.code, plain(&verdict.reason));
    for row in findings(verdict) {
        text += &format!("  {}\n", plain(&row));
    }
    text + &format!("hint: provost explain {}\n", verdict.code)
}

/// The rows of a denial: `details.findings[]` of gates, each with a path and what is wrong.
fn findings(verdict: &Verdict) -> Vec<String> {
    let rows = verdict
        .details
        .as_ref()
        .and_then(|details| details.get("findings"));
    let text = |row: &Value, key: &str| {
        row.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let line = |row: &Value| match text(row, "path").as_str() {
        "" => text(row, "problem"),
        path => format!("{path}: {}", text(row, "problem")),
    };
    rows.and_then(Value::as_array)
        .map(|rows| rows.iter().map(line).collect())
        .unwrap_or_default()
}

/// `text` without anything a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    let safe = |character: char| match character {
        '\n' | '\t' => character,
        other if other.is_control() || is_direction(other) => '\u{fffd}',
        other => other,
    };
    text.chars().map(safe).collect()
}

/// `text` as one word of a shell's command line.
pub(crate) fn quoted(text: &str) -> String {
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@:,=".contains(letter);
    if !text.is_empty() && text.chars().all(harmless) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Characters that make text read in another order than it is stored.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        let cases = [
            ("/usr/bin/sh", "/usr/bin/sh"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
        ];
        for (text, want) in cases {
            assert_eq!(quoted(text), want);
        }
    }

    #[test]
    fn a_terminal_is_given_nothing_to_obey() {
        assert_eq!(
            plain("a\x1b[31mb\u{9b}c\u{202e}d\n"),
            "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\n"
        );
    }
}
