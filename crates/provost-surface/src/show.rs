//! Prints answers: as text for people, as JSON for programs.
//!
//! Text that agents or repositories influence is shown through [`one_line`], or through
//! [`neutralise`] where it may have lines of its own.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use provost_core::exit::Exit;
pub use provost_core::foreign_text::{neutralise, one_line};
use provost_core::verdict::{FoundAt, Verdict, rows_of};
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::look;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
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

/// Prints `outcome` and returns the exit status.
pub fn show(outcome: &Outcome, reader: Reader) -> Exit {
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
        Reader::Person if exit == Exit::Yes || outcome.is_ok() => {
            print_line(look::for_people(&text, &io::stdout()).trim_end())
        }
        Reader::Person => {
            print_message(look::for_people(&text, &io::stderr()).trim_end());
            Ok(())
        }
    };
    // A closed pipe (`provost log | head`) is not our failure.
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

/// Prints one message for a person on stderr.
pub fn print_message(text: &str) {
    // A failure to write to stderr cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn render_failure(failure: &Failure) -> String {
    let mut text = format!("error[{}]: {}\n", failure.code, one_line(&failure.reason));
    for cause in &failure.causes {
        text += &format!("  because: {}\n", one_line(cause));
    }
    for row in findings(&failure.verdict()) {
        text += &format!("  {}\n", one_line(&row));
    }
    match &failure.hint {
        Some(hint) => text += &format!("hint: {}\n", one_line(hint)),
        None => text += &format!("hint: provost explain {}\n", failure.code),
    }
    if let Some(run_id) = failure.record() {
        text += &format!("next: provost show {run_id}\n");
    }
    text
}

fn render_verdict(verdict: &Verdict) -> String {
    if verdict.allow {
        let mut text = format!("ok: {}\n", one_line(&verdict.reason));
        for note in verdict.notes() {
            text += &format!("  note: {}\n", one_line(note));
        }
        return text;
    }
    let mut text = format!("error[{}]: {}\n", verdict.code, one_line(&verdict.reason));
    for row in findings(verdict) {
        text += &format!("  {}\n", one_line(&row));
    }
    match verdict.hint() {
        Some(hint) => text + &format!("hint: {}\n", one_line(hint)),
        None => text + &format!("hint: provost explain {}\n", verdict.code),
    }
}

/// How many findings the text output lists.
const MOST_FINDINGS: usize = 40;

/// The rows of a denial: `details.findings[]` of gates, each with a path and a problem.
///
/// A single finding is the reason itself and is not repeated.
pub fn findings(verdict: &Verdict) -> Vec<String> {
    findings_of(&verdict.reason, verdict.details.as_ref())
}

/// The same for a denial that is not a whole verdict.
pub fn findings_of(reason: &str, details: Option<&Value>) -> Vec<String> {
    let rows: Vec<FoundAt<'_>> = rows_of(details).iter().map(FoundAt::read).collect();
    let line = |FoundAt { path, problem }: &FoundAt<'_>| match *path {
        "" => (*problem).to_owned(),
        path => format!("{path}: {problem}"),
    };
    match rows.as_slice() {
        // What the reason contains already is not repeated.
        [FoundAt { path, problem }]
            if reason.contains(path) && (!path.is_empty() || reason.contains(problem)) =>
        {
            Vec::new()
        }
        rows => {
            let more = rows.len().saturating_sub(MOST_FINDINGS);
            let rest = (more > 0).then(|| format!("and {more} more; --json lists all"));
            rows.iter()
                .take(MOST_FINDINGS)
                .map(line)
                .chain(rest)
                .collect()
        }
    }
}

/// The first line of `text`, cut at the end of the terminal if it begins at `column`.
pub fn headline(text: &str, column: usize) -> String {
    let first = neutralise(text.trim().lines().next().unwrap_or_default()).replace('\t', " ");
    match width_of(io::stdout()) {
        Some(width) => cut(&first, width.saturating_sub(column).max(NARROWEST)),
        None => first,
    }
}

/// The least number of characters that are shown, however narrow the terminal is.
const NARROWEST: usize = 16;

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A path as a person reads it: relative to the current directory, if it is below that.
pub fn relative(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here
        .as_deref()
        .and_then(|here| path.strip_prefix(here).ok());
    let shown = below.filter(|below| !below.as_os_str().is_empty());
    one_line(&shown.unwrap_or(path).display().to_string())
}

/// The width of the terminal behind `out`; a file or a pipe has none.
pub fn width_of(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_the_terminal_does() {
        assert_eq!(cut("one two", 7), "one two");
        assert_eq!(cut("one two", 6), "one t…");
        assert_eq!(cut("one two", 5), "one…");
        assert_eq!(headline(" one\ntwo ", 0), "one");
    }

    #[test]
    fn one_finding_is_said_once() {
        let deny = |rows: Value| {
            let verdict = Verdict::deny(provost_core::code::Code::DiffRefused, "`a` is out");
            findings(&verdict.with(serde_json::json!({ "findings": rows })))
        };
        let row = |path: &str| serde_json::json!({ "path": path, "problem": "is out" });
        assert!(deny(serde_json::json!([row("`a`")])).is_empty());
        assert_eq!(deny(serde_json::json!([row("b/c")])), ["b/c: is out"]);
        let two = deny(serde_json::json!([row("a"), row("b")]));
        assert_eq!(two, ["a: is out", "b: is out"]);
    }

    #[test]
    fn foreign_text_adds_no_line() {
        let forged = "`a\nok: the packet holds\t`";
        let rows = serde_json::json!([
            { "path": forged, "problem": forged },
            { "path": "b", "problem": forged },
        ]);
        let code = provost_core::code::Code::PacketRefused;
        let verdict = Verdict::deny(code, forged);
        let verdict = verdict.with(serde_json::json!({ "findings": rows }));
        let text = render_verdict(&verdict);
        assert_eq!(text.lines().count(), 4, "{text}");
        let failure = Failure::new(code, forged).hint(forged);
        assert_eq!(render_failure(&failure).lines().count(), 2);
    }
}
