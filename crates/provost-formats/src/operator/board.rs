//! Reads requests to a stored board, always strictly.
//!
//! Every function returns the input of a board's decision, or the verdict on a payload that is
//! invalid. What only a board can know (rows, locks, versions) is decided there.

use crate::board::decide::Report;
use crate::board::delta::Delta;
use crate::board::fact::{Blocker, LogLine, Terms};
use crate::board::row::{Status, TaskId};
use crate::board::state::Board;
use crate::board::worklog;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::Resource;
use provost_core::schema::leaf::RunUuid;
use provost_core::schema::read::FormatReader;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::assignment::{Assignment, ContextKind};
use super::entry::Entry;
use super::envelope::{self, LedgerDelta, look_for_secrets};
use super::finding::Findings;
use super::gates::Bounds;
use super::header::{self, Header, take_header};
use super::result::TaskResult;
use super::{Answer, Kind, Strictness, Surroundings, assignment, field, result};

/// Reads an assignment: its run, and the terms of the task.
pub fn read_assignment(bytes: &[u8]) -> Result<(String, Terms), Verdict> {
    let node = super::read(bytes).map_err(|why| super::unreadable(&why))?;
    let packet = judged(|found| assignment::read(&node, "", found))?;
    Ok((packet.header.run_id.clone(), terms(packet)))
}

fn terms(mut packet: Assignment) -> Terms {
    packet.header = Header::of(&packet.header.run_id);
    let rendered = json!(packet);
    let constraints = packet.context_package.into_iter();
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
        Ok(node) => result::read(&node, "", found),
        Err(why) => {
            found.add(Code::SchemaInvalid, "", why);
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
            if let Some(bounds) = Bounds::read(&packet, "", &mut found.fresh()) {
                bounds.judge(result, "", found);
            } else {
                let problem = "the assignment of the task cannot be read";
                found.add(Code::LedgerInconsistent, "", problem);
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
            result: json!(TaskResult {
                header: Header::of(&result.header.run_id),
                ..result.clone()
            }),
        })
    })
}

/// The last entry of a log that the worker kept in a file.
fn read_file(bytes: &[u8], result: &TaskResult, found: &mut Findings) -> Option<LogLine> {
    const PATH: &str = "/worklog_path";
    let lines = read_lines(bytes, &[], PATH, found)?;
    let run_id = &result.header.run_id;
    let own = |entry: &Entry| entry.run_id == *run_id && entry.task_id == result.task_id;
    if !lines.iter().all(|(_, entry)| own(entry)) {
        let problem = "names a log that is about another task";
        found.add(Code::NonCompliant, PATH, problem);
    }
    let last = lines.last();
    let end = last.map(|(_, entry)| entry.end());
    if let Err(why) = worklog::end(result.status.status(), end) {
        found.add(why.code(), PATH, why);
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
    at: &str,
    found: &mut Findings,
) -> Option<Vec<(&'t str, Entry)>> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        found.add(Code::SchemaInvalid, at, "is not UTF-8");
        return None;
    };
    let lines: Vec<&str> = text.lines().collect();
    // The request is repeated and its lines are stored already: there is no order to judge.
    let before = before.strip_suffix(&*lines).unwrap_or(before);
    let entries = super::worklog::read_added(before, &lines, at, found)?;
    let line = |(at, entry): (usize, Entry)| (lines[at - before.len()], entry);
    Some(entries.into_iter().map(line).collect())
}

/// Reads entries that are to follow the log that `board` has of `task`.
pub fn read_log(board: &Board, task: &TaskId, bytes: &[u8]) -> Result<Vec<LogLine>, Verdict> {
    let before = board.log(task).iter();
    let before: Vec<&str> = before.map(|line| &*line.line).collect();
    judged(|found| {
        let lines = read_lines(bytes, &before, "/lines", found)?;
        if lines.is_empty() {
            found.add(Code::MissingRequiredInput, "/lines", "nothing is added");
        }
        for (at, (_, entry)) in lines.iter().enumerate() {
            if entry.run_id != board.run_id() || entry.task_id != *task {
                let problem = "is about another task or run";
                found.add(Code::NonCompliant, format_args!("/lines/{at}"), problem);
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
    /// The version that the deltas were built on; `None` for the present one.
    pub base_version: Option<u64>,
    pub deltas: Vec<Delta>,
    /// The reasons for blocked tasks.
    pub blockers: Vec<Blocker>,
    /// The assignments that deltas begin.
    pub terms: Vec<Terms>,
}

/// Deltas of one writer.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct DeltaStream {
    base_version: u64,
    #[schemars(length(min = 1))]
    deltas: Vec<LedgerDelta>,
    #[schemars(with = "Option<RunUuid>")]
    run_id: Option<String>,
    #[serde(default)]
    blockers: Vec<header::Blocker>,
    #[expect(dead_code, reason = "no rule uses it")]
    stream_id: Option<String>,
}

/// The parts of requests that are not payloads.
#[derive(Deserialize, JsonSchema)]
struct RunName {
    #[schemars(with = "RunUuid")]
    run_id: String,
}

static STREAM: FormatReader<DeltaStream> = FormatReader::new();
static RUN: FormatReader<RunName> = FormatReader::new();
static TASK: FormatReader<TaskId> = FormatReader::new();
static PLACES: FormatReader<Vec<Resource>> = FormatReader::new();

/// Reads a stream of deltas, or the output of a planner round.
pub fn read_stream(bytes: &[u8]) -> Result<Stream, Verdict> {
    let node = super::read(bytes).map_err(|why| super::unreadable(&why))?;
    judged(|found| {
        if field(&node, "ledger_delta").is_some() {
            return read_round(&node, found);
        }
        let stream = found.read(&STREAM, &node, "")?;
        look_for_secrets(&stream.deltas, "/deltas", found);
        Some(Stream {
            run_id: stream.run_id,
            base_version: Some(stream.base_version),
            deltas: stream.deltas.into_iter().map(Delta::from).collect(),
            blockers: stream.blockers.into_iter().map(blocker).collect(),
            terms: Vec::new(),
        })
    })
}

/// Reads the output of a planner round. Each of its assignments needs a delta that begins it,
/// because only the delta names the owner.
fn read_round(node: &Node<'_>, found: &mut Findings) -> Option<Stream> {
    let round = envelope::read(node, found)?;
    for (at, assignment) in round.assignments.iter().enumerate() {
        let task = &assignment.task.task_id;
        let begins =
            |delta: &LedgerDelta| delta.task_id == *task && delta.status == Status::InProgress;
        if !round.ledger_delta.iter().any(begins) {
            let problem = format!("has no delta in `ledger_delta` that begins {task}");
            let path = format_args!("/assignments/{at}");
            found.add(Code::MissingRequiredInput, path, problem);
        }
    }
    Some(Stream {
        run_id: Some(round.header.run_id),
        base_version: round.x_base_version,
        deltas: round.ledger_delta.into_iter().map(Delta::from).collect(),
        blockers: round.blockers.into_iter().map(blocker).collect(),
        terms: round.assignments.into_iter().map(terms).collect(),
    })
}

fn blocker(one: header::Blocker) -> Blocker {
    Blocker {
        task_id: one.task_id,
        code: one.code,
        reason: one.reason,
    }
}

pub fn read_places(names: &[String]) -> Result<Vec<Resource>, Verdict> {
    judged(|found| found.read(&PLACES, &Node::from(json!(names)), ""))
}

pub fn read_run(name: &str) -> Result<String, Verdict> {
    let node = Node::from(json!({ "run_id": name }));
    judged(|found| Some(found.read(&RUN, &node, "")?.run_id))
}

pub fn read_task(name: &str) -> Result<TaskId, Verdict> {
    judged(|found| found.read(&TASK, &Node::from(json!(name)), "/task_id"))
}

/// Whether everything on `board` fits together.
pub fn reconcile(board: &Board) -> Verdict {
    let payload = json!({ "ledger": board.rows(), "active_locks": board.locks() });
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
