//! The log of a task: entries are added, never changed, and the last one says how it ended.

use provost_core::board::row::Status;
use provost_core::board::worklog::{self, LastEntry};
use provost_core::code::Code;
use provost_core::json::{self, Node};
use provost_core::verdict::Verdict;

use super::entry::{self, Entry};
use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::{Answer, Strictness};

const OUTCOMES: &str = "done, blocked, failed, canceled";

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    if let Some(payload) = Object::payload(value, found) {
        let lines = payload.texts("lines", Length::Any, found);
        let outcome = payload.word("outcome", outcome, OUTCOMES, found);
        payload.close(&["lines", "outcome"], found);
        if let (Some(lines), Some(outcome)) = (lines, outcome) {
            judge(&lines, outcome, payload.at("lines"), found);
        }
    }
    Answer::new("the worklog holds")
}

/// Judges the lines of a log file, for a task that ended with the status `ended`.
pub fn lines(bytes: &[u8], ended: &str, strictness: Strictness) -> Verdict {
    let mut found = Findings::new(strictness);
    match (outcome(ended), std::str::from_utf8(bytes)) {
        (None, _) => {
            let problem = format!("`{ended}` is not one of {OUTCOMES}");
            found.add(Code::SchemaInvalid, Place::root().key("outcome"), problem);
        }
        (_, Err(why)) => {
            let problem = format!("the worklog is not UTF-8 (byte {})", why.valid_up_to());
            found.add(Code::SchemaInvalid, *Place::root(), problem);
        }
        (Some(outcome), Ok(text)) => {
            let lines: Vec<&str> = text.lines().collect();
            judge(&lines, outcome, Place::root().key("lines"), &mut found);
        }
    }
    found.verdict(Answer::new("the worklog holds"))
}

fn outcome(name: &str) -> Option<Status> {
    match Status::parse(name)? {
        Status::Todo | Status::InProgress => None,
        ended @ (Status::Blocked | Status::Done | Status::Failed | Status::Canceled) => Some(ended),
    }
}

fn judge(lines: &[&str], outcome: Status, place: Place<'_>, found: &mut Findings) {
    let Some(entries) = read(lines, 0, place, found) else {
        return;
    };
    judge_order(&entries, place, found);
    let last = entries.last().map(|(_, entry)| LastEntry {
        code: entry.code,
        next_step: &entry.next_step,
    });
    if let Err(why) = worklog::end(outcome, last) {
        match entries.last() {
            Some((at, _)) => found.add(why.code(), place.index(*at), why),
            None => found.add(why.code(), place, why),
        }
    }
}

/// Reads the entries of `lines`, the first of which is number `from`; `None` if one is invalid.
fn read(
    lines: &[&str],
    from: usize,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Vec<(usize, Entry)>> {
    let before = found.count();
    let mut entries = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let place = place.index(from + at);
        if line.trim().is_empty() && !found.is_strict() {
            continue;
        }
        match json::read(line.as_bytes()) {
            Ok(value) => {
                let entry = entry::parse(&value, place, found);
                entries.extend(entry.map(|entry| (from + at, entry)));
            }
            Err(why) => found.add(Code::SchemaInvalid, place, why),
        }
    }
    (found.count() == before).then_some(entries)
}

/// In strict mode a log is about one task, and its times do not go back.
fn judge_order(entries: &[(usize, Entry)], place: Place<'_>, found: &mut Findings) {
    if !found.is_strict() {
        return;
    }
    for pair in entries.windows(2) {
        let ((_, one), (at, two)) = (&pair[0], &pair[1]);
        if two.time.nanos < one.time.nanos {
            let problem = "is earlier than the entry before";
            found.add(
                Code::NonCompliant,
                place.index(*at).key("timestamp"),
                problem,
            );
        }
        if two.task_id != one.task_id || two.run_id != one.run_id {
            let problem = "is about another task than the entry before";
            found.add(Code::NonCompliant, place.index(*at), problem);
        }
    }
}

pub(super) fn check_append(value: &Node<'_>, found: &mut Findings) -> Answer {
    if let Some(payload) = Object::payload(value, found) {
        let before = payload.texts("before_lines", Length::Any, found);
        let after = payload.texts("after_lines", Length::Any, found);
        payload.close(&["before_lines", "after_lines"], found);
        if let (Some(before), Some(after)) = (before, after) {
            judge_append(&before, &after, payload, found);
        }
    }
    Answer::new("lines were only added")
}

fn judge_append(before: &[&str], after: &[&str], payload: Object<'_, '_>, found: &mut Findings) {
    let place = payload.at("after_lines");
    match worklog::added(before, after) {
        Err(why) => found.add(why.code(), place, why),
        Ok(new) => {
            read_added(before, new, place, found);
        }
    }
}

/// Reads the entries of lines that follow `before`; `None` if one is invalid.
pub(super) fn read_added(
    before: &[&str],
    new: &[&str],
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Vec<(usize, Entry)>> {
    let from = before.len();
    let entries = read(new, from, place, found)?;
    let last = last_entry(before).map(|last| (from.saturating_sub(1), last));
    let all: Vec<_> = last.into_iter().chain(entries.iter().cloned()).collect();
    judge_order(&all, place, found);
    Some(entries)
}

/// The last entry of `before`, if it can be read; earlier lines are not judged again.
fn last_entry(before: &[&str]) -> Option<Entry> {
    let line = before.iter().rev().find(|line| !line.trim().is_empty())?;
    let value = json::read(line.as_bytes()).ok()?;
    entry::parse(
        &value,
        *Place::root(),
        &mut Findings::new(Strictness::Literal),
    )
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
        let cases: [(&[u8], &str, bool); 7] = [
            (two.as_bytes(), "done", true),
            (two.as_bytes(), "blocked", false),
            (two.as_bytes(), "in_progress", false),
            (b"", "done", false),
            (b"\n\n", "done", false),
            (b"\xff", "done", false),
            (b"[]\n", "done", false),
        ];
        for (bytes, ended, want) in cases {
            let verdict = lines(bytes, ended, Strictness::Literal);
            assert_eq!(verdict.allow, want, "{ended}: {verdict:?}");
        }
    }

    #[test]
    fn an_entry_comes_back_from_its_line() {
        let found = &mut Findings::new(Strictness::Strict);
        let entry = Entry {
            timestamp: "2026-03-01T10:00:00Z".to_owned(),
            time: provost_core::time::read("2026-03-01T10:00:00Z").unwrap(),
            run_id: "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d".to_owned(),
            task_id: provost_core::board::row::TaskId::parse("T-4").unwrap(),
            actor: "a".to_owned(),
            action: "edit".to_owned(),
            files_touched: vec!["x".to_owned()],
            decision: "line\nbreak".to_owned(),
            result: String::new(),
            next_step: "go".to_owned(),
            code: Some(Code::LockConflict),
            evidence: Some("log".to_owned()),
        };
        let line = entry.render();
        assert!(!line.contains('\n'));
        let value = json::read(line.as_bytes()).unwrap();
        assert_eq!(entry::parse(&value, *Place::root(), found), Some(entry));
        assert!(found.is_empty());
    }
}
