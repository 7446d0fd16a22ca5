//! Reads requests to a stored board, always strictly.
//!
//! Every function returns the input of a board's decision, or the verdict on a payload that is
//! invalid. What only a board can know (rows, locks, versions) is decided there.

use provost_core::board::decide::Report;
use provost_core::board::delta::Delta;
use provost_core::board::fact::{Blocker, LogLine, Terms};
use provost_core::board::resource::Resource;
use provost_core::board::row::TaskId;
use provost_core::board::state::Board;
use provost_core::board::worklog::{self, LastEntry};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::verdict::Verdict;
use serde_json::{Value, json};

use super::assignment::{Assignment, ContextKind, render_lock};
use super::entry::Entry;
use super::finding::{Findings, Place};
use super::gates::Bounds;
use super::object::Object;
use super::result::TaskResult;
use super::{Answer, Kind, Strictness, Surroundings, assignment, envelope, result, shape};

/// Reads an assignment: its run, and the terms of the task.
pub fn read_assignment(bytes: &[u8]) -> Result<(String, Terms), Verdict> {
    let node = super::read(bytes).map_err(|why| super::unreadable(&why))?;
    let packet = judged(|found| assignment::parse(&node, *Place::root(), found))?;
    Ok((packet.run_id.clone(), terms(packet)))
}

fn terms(packet: Assignment) -> Terms {
    let rendered = packet.render();
    let constraints = packet.context.into_iter();
    let constraints = constraints.filter(|one| one.kind == ContextKind::Constraint);
    let task = packet.task;
    Terms {
        task_id: task.task_id,
        objective: packet.global_objective,
        title: task.title,
        dependencies: task.dependencies,
        lock_scope: task.lock_scope,
        forbidden_scope: task.forbidden_scope,
        acceptance_criteria: task.acceptance_criteria,
        constraints: constraints.map(|one| one.value).collect(),
        timeout_seconds: task.timeout_seconds,
        heartbeat_interval_seconds: task.heartbeat_interval_seconds,
        priority: task.priority,
        packet: rendered,
    }
}

/// Reads a result, as JSON or as Markdown with front matter.
pub fn read_result(bytes: &[u8]) -> Result<TaskResult, Verdict> {
    judged(|found| match super::read_result(bytes, found) {
        Ok(node) => result::parse(&node, *Place::root(), found),
        Err(why) => {
            found.add(Code::SchemaInvalid, *Place::root(), why);
            None
        }
    })
}

/// Compares `result` with the assignment of its task on `board`; `log` is the file in which the
/// worker kept its log, if there is one.
pub fn report(board: &Board, result: &TaskResult, log: Option<&[u8]>) -> Result<Report, Verdict> {
    let task = &result.task_id;
    let status = result.status.status();
    judged(|found| {
        if let Some(terms) = board.terms(task) {
            let packet = Node::from(terms.packet.clone());
            let bounds = Bounds::read(&packet, *Place::root(), &mut found.fresh());
            if let Some(bounds) = bounds {
                bounds.judge(result, *Place::root(), found);
            } else {
                let problem = "the assignment of the task cannot be read";
                found.add(Code::LedgerInconsistent, *Place::root(), problem);
            }
        }
        let log_end = match log.filter(|_| board.log(task).is_empty()) {
            Some(bytes) => Some(read_file(bytes, result, found)?),
            None => None,
        };
        Some(Report {
            task_id: task.clone(),
            status,
            note: result.notes.first().cloned(),
            log_end,
            result: result.render(),
        })
    })
}

/// The last entry of a log that the worker kept in a file.
fn read_file(bytes: &[u8], result: &TaskResult, found: &mut Findings) -> Option<LogLine> {
    let place = Place::root().key("worklog_path");
    let lines = read_lines(bytes, &[], place, found)?;
    let own = |entry: &Entry| entry.run_id == result.run_id && entry.task_id == result.task_id;
    if !lines.iter().all(|(_, entry)| own(entry)) {
        let problem = "names a log that is about another task";
        found.add(Code::NonCompliant, place, problem);
    }
    let last = lines.last();
    let end = last.map(|(_, entry)| LastEntry {
        code: entry.code,
        next_step: &entry.next_step,
    });
    if let Err(why) = worklog::end(result.status.status(), end) {
        found.add(why.code(), place, why);
    }
    last.map(|(line, entry)| log_line(line, entry))
}

fn log_line(line: &str, entry: &Entry) -> LogLine {
    LogLine {
        line: line.to_owned(),
        code: entry.code,
        next_step: entry.next_step.clone(),
    }
}

/// Reads the lines of a log that come after `before`.
fn read_lines<'t>(
    bytes: &'t [u8],
    before: &[&str],
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Vec<(&'t str, Entry)>> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        found.add(Code::SchemaInvalid, place, "is not UTF-8");
        return None;
    };
    let lines: Vec<&str> = text.lines().collect();
    // The request is repeated and its lines are stored already: there is no order to judge.
    let before = before.strip_suffix(&*lines).unwrap_or(before);
    let entries = super::worklog::read_added(before, &lines, place, found)?;
    let line = |(at, entry): (usize, Entry)| (lines[at - before.len()], entry);
    Some(entries.into_iter().map(line).collect())
}

/// Reads entries that are to follow the log that `board` has of `task`.
pub fn read_log(board: &Board, task: &TaskId, bytes: &[u8]) -> Result<Vec<LogLine>, Verdict> {
    let before = board.log(task).iter();
    let before: Vec<&str> = before.map(|line| &*line.line).collect();
    let place = Place::root().key("lines");
    judged(|found| {
        let lines = read_lines(bytes, &before, place, found)?;
        if lines.is_empty() {
            found.add(Code::MissingRequiredInput, place, "nothing is added");
        }
        for (at, (_, entry)) in lines.iter().enumerate() {
            if entry.run_id != board.run_id() || entry.task_id != *task {
                let problem = "is about another task or run";
                found.add(Code::NonCompliant, place.index(at), problem);
            }
        }
        let line = |(line, entry): &(&str, Entry)| log_line(line, entry);
        Some(lines.iter().map(line).collect())
    })
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The run, if the payload names it.
    pub run_id: Option<String>,
    /// The version that the deltas were built on.
    pub base_version: u64,
    pub deltas: Vec<Delta>,
    /// The reasons for blocked tasks.
    pub blockers: Vec<Blocker>,
}

pub fn read_stream(bytes: &[u8]) -> Result<Stream, Verdict> {
    let node = super::read(bytes).map_err(|why| super::unreadable(&why))?;
    judged(|found| {
        let payload = Object::payload(&node, found)?;
        let run_id = payload.optional("run_id");
        let run_id = run_id.and_then(|_| shape::run_id(payload, found));
        let base_version = payload.count("base_version", 0, found);
        let deltas = payload.all("deltas", envelope::read_delta, found);
        let blockers = payload.optional_all("blockers", shape::blocker, found);
        if deltas.as_ref().is_some_and(Vec::is_empty) {
            found.add(Code::MissingRequiredInput, payload.at("deltas"), "is empty");
        }
        payload.optional_text("stream_id", found);
        payload.close(
            &["run_id", "base_version", "deltas", "blockers", "stream_id"],
            found,
        );
        let blocker = |one: shape::Blocker| Blocker {
            task_id: one.task_id,
            code: one.code,
            reason: one.reason,
        };
        Some(Stream {
            run_id: run_id.map(str::to_owned),
            base_version: base_version?,
            deltas: deltas?,
            blockers: blockers?.into_iter().map(blocker).collect(),
        })
    })
}

pub fn read_places(names: &[String]) -> Result<Vec<Resource>, Verdict> {
    judged(|found| {
        let mut places = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let node = Node::from(Value::String(name.clone()));
            places.extend(shape::resource(&node, Place::root().index(at), found));
        }
        Some(places)
    })
}

pub fn read_run(name: &str) -> Result<String, Verdict> {
    judged(|found| {
        let node = Node::from(json!({ "run_id": name }));
        shape::run_id(Object::payload(&node, found)?, found).map(str::to_owned)
    })
}

pub fn read_task(name: &str) -> Result<TaskId, Verdict> {
    judged(|found| {
        let node = Node::from(Value::String(name.to_owned()));
        shape::task(&node, Place::root().key("task_id"), found)
    })
}

/// Whether everything on `board` fits together.
pub fn reconcile(board: &Board) -> Verdict {
    let locks: Vec<Value> = board.locks().iter().map(render_lock).collect();
    let payload = json!({ "ledger": board.rows(), "active_locks": locks });
    recheck(Kind::Reconcile, &payload)
}

/// Judges a payload of Provost as if it came from outside.
pub(super) fn recheck(kind: Kind, payload: &Value) -> Verdict {
    let surroundings = Surroundings {
        file_exists: &|_| false,
    };
    let bytes = payload.to_string();
    super::check(kind, bytes.as_bytes(), Strictness::Strict, surroundings)
}

/// The result of `read` if it found nothing wrong; else the verdict on its findings.
fn judged<T>(read: impl FnOnce(&mut Findings) -> Option<T>) -> Result<T, Verdict> {
    let mut found = Findings::new(Strictness::Strict);
    match read(&mut found) {
        Some(value) if found.is_empty() => Ok(value),
        _ if found.is_empty() => Err(super::unreadable("the payload cannot be read")),
        _ => Err(found.verdict(Answer::default())),
    }
}
