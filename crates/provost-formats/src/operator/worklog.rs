//! The log of a task: entries are added, never changed, and the last one says how it ended.

use crate::board::row::Status;
use crate::board::worklog;
use provost_core::code::Code;
use provost_core::json::{self, Node};
use provost_core::schema::read::FormatReader;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;

use super::entry::{self, Entry};
use super::finding::Findings;
use super::header::take_header;
use super::{Answer, Strictness};

/// The log of a task that ended.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct Worklog {
    lines: Vec<String>,
    outcome: Ending,
}

/// How a task ended.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    Done,
    Blocked,
    Failed,
    Canceled,
}

impl Ending {
    const ALL: [Self; 4] = [Self::Done, Self::Blocked, Self::Failed, Self::Canceled];

    fn status(self) -> Status {
        match self {
            Self::Done => Status::Done,
            Self::Blocked => Status::Blocked,
            Self::Failed => Status::Failed,
            Self::Canceled => Status::Canceled,
        }
    }
}

static WORKLOG: FormatReader<Worklog> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    if let Some(payload) = found.read(&WORKLOG, node, "") {
        let outcome = payload.outcome.status();
        judge(&borrowed(&payload.lines), outcome, found);
    }
    Answer::new("the worklog holds")
}

fn borrowed(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

/// Judges the lines of a log file, for a task that ended with the status `ended`; without it, for
/// a task that is in progress.
pub fn lines(bytes: &[u8], ended: Option<&str>, strictness: Strictness) -> Verdict {
    let mut found = Findings::new(strictness);
    let mut endings = Ending::ALL.into_iter().map(Ending::status);
    let outcome = match ended {
        None => Some(Status::InProgress),
        Some(name) => endings.find(|status| status.name() == name),
    };
    match (outcome, std::str::from_utf8(bytes)) {
        (None, _) => {
            let ended = ended.unwrap_or_default();
            let problem = format!("`{ended}` is none of done, blocked, failed, canceled");
            found.add(Code::SchemaInvalid, "/outcome", problem);
        }
        (_, Err(why)) => {
            let problem = format!("the worklog is not UTF-8 (byte {})", why.valid_up_to());
            found.add(Code::SchemaInvalid, "", problem);
        }
        (Some(outcome), Ok(text)) => {
            let lines: Vec<&str> = text.lines().collect();
            judge(&lines, outcome, &mut found);
        }
    }
    found.verdict(Answer::new("the worklog holds"))
}

fn judge(lines: &[&str], outcome: Status, found: &mut Findings) {
    let Some(entries) = read(lines, 0, "/lines", found) else {
        return;
    };
    judge_order(&entries, "/lines", found);
    let last = entries.last().map(|(_, entry)| entry.end());
    if let Err(why) = worklog::end(outcome, last) {
        match entries.last() {
            Some((at, _)) => found.add(why.code(), format_args!("/lines/{at}"), why),
            None => found.add(why.code(), "/lines", why),
        }
    }
}

/// Reads the entries of `lines`, the first of which is number `from` of the list at the pointer
/// `at`; `None` if one is invalid.
fn read(
    lines: &[&str],
    from: usize,
    at: &str,
    found: &mut Findings,
) -> Option<Vec<(usize, Entry)>> {
    let before = found.count();
    let mut entries = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.trim().is_empty() && !found.is_strict() {
            continue;
        }
        let index = from + index;
        let at = format!("{at}/{index}");
        match json::read(line.as_bytes()) {
            Ok(node) => entries.extend(entry::read(&node, &at, found).map(|entry| (index, entry))),
            Err(why) => found.add(Code::SchemaInvalid, at, why),
        }
    }
    (found.count() == before).then_some(entries)
}

/// In strict mode a log is about one task, and its times do not go back.
fn judge_order(entries: &[(usize, Entry)], at: &str, found: &mut Findings) {
    if !found.is_strict() {
        return;
    }
    for pair in entries.windows(2) {
        let ((_, one), (index, two)) = (&pair[0], &pair[1]);
        if two.nanos() < one.nanos() {
            let path = format_args!("{at}/{index}/timestamp");
            found.add(Code::NonCompliant, path, "is earlier than the entry before");
        }
        if two.task_id != one.task_id || two.run_id != one.run_id {
            let problem = "is about another task than the entry before";
            found.add(Code::NonCompliant, format_args!("{at}/{index}"), problem);
        }
    }
}

/// A log before and after an append.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct WorklogAppend {
    before_lines: Vec<String>,
    after_lines: Vec<String>,
}

static APPEND: FormatReader<WorklogAppend> = FormatReader::new();

pub(super) fn check_append(node: &Node<'_>, found: &mut Findings) -> Answer {
    const AFTER: &str = "/after_lines";
    if let Some(payload) = found.read(&APPEND, node, "") {
        let before = borrowed(&payload.before_lines);
        match worklog::added(&before, &borrowed(&payload.after_lines)) {
            Err(why) => found.add(why.code(), AFTER, why),
            Ok(new) => {
                read_added(&before, new, AFTER, found);
            }
        }
    }
    Answer::new("lines were only added")
}

/// Reads the entries of lines that follow `before`; `None` if one is invalid.
pub(super) fn read_added(
    before: &[&str],
    new: &[&str],
    at: &str,
    found: &mut Findings,
) -> Option<Vec<(usize, Entry)>> {
    let from = before.len();
    let entries = read(new, from, at, found)?;
    let last = last_entry(before).map(|last| (from.saturating_sub(1), last));
    let all: Vec<_> = last.into_iter().chain(entries.iter().cloned()).collect();
    judge_order(&all, at, found);
    Some(entries)
}

/// The last entry of `before`, if it can be read; earlier lines are not judged again.
fn last_entry(before: &[&str]) -> Option<Entry> {
    let line = before.iter().rev().find(|line| !line.trim().is_empty())?;
    let node = json::read(line.as_bytes()).ok()?;
    entry::read(&node, "", &mut Findings::new(Strictness::Literal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_lines_is_judged_like_a_payload() {
        let line = concat!(
            r#"{"timestamp":"2026-03-01T10:00:00Z","#,
            r#""run_id":"7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d","task_id":"T-4","#,
            r#""actor":"a","action":"edit","files_touched":[],"decision":"","result":"","#,
            r#""next_step":""}"#
        );
        let two = format!("{line}\r\n\n{line}\n");
        let cases: [(&[u8], Option<&str>, bool); 9] = [
            (two.as_bytes(), Some("done"), true),
            (two.as_bytes(), Some("blocked"), false),
            (two.as_bytes(), Some("in_progress"), false),
            // The task is still in progress.
            (two.as_bytes(), None, true),
            (b"", None, false),
            (b"", Some("done"), false),
            (b"\n\n", Some("done"), false),
            (b"\xff", Some("done"), false),
            (b"[]\n", Some("done"), false),
        ];
        for (bytes, ended, want) in cases {
            let verdict = lines(bytes, ended, Strictness::Literal);
            assert_eq!(verdict.allow, want, "{ended:?}: {verdict:?}");
        }
    }

    #[test]
    fn an_entry_comes_back_from_its_line() {
        let found = &mut Findings::new(Strictness::Strict);
        let entry = Entry {
            timestamp: "2026-03-01T10:00:00Z".to_owned(),
            run_id: "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d".to_owned(),
            task_id: crate::board::row::TaskId::parse("T-4").unwrap(),
            actor: "a".to_owned(),
            action: "edit".to_owned(),
            files_touched: vec!["x".to_owned()],
            decision: "line\nbreak".to_owned(),
            result: String::new(),
            next_step: "go".to_owned(),
            code: Some(Code::LockConflict),
            evidence: Some("log".to_owned()),
        };
        let line = serde_json::to_string(&entry).unwrap();
        assert!(!line.contains('\n'));
        let value = json::read(line.as_bytes()).unwrap();
        assert_eq!(entry::read(&value, "", found), Some(entry));
        assert!(found.is_empty());
    }
}
