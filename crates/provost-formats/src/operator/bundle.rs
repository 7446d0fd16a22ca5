//! Composes the files that a planner with a fresh memory begins with.
//!
//! They are computed from the board alone and contain no time of their own, so the same board
//! always gives the same bytes.

use crate::board::fact::Blocker;
use crate::board::lock::Lock;
use crate::board::row::{Row, TaskId};
use crate::board::state::{Board, Card};
use crate::board::watchdog::SHORTEST_TIMEOUT;
use provost_core::object::sha256;
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use super::Kind;
use super::board::recheck;
use super::handoff::{AcceptanceTarget, Handoff, HandoffDependency, HandoffRow};
use super::header::{self, Header};
use super::limit::{LONGEST_TITLE, SHORTEST_HEARTBEAT};

/// How many of the last lines of each log are handed over.
const LINES_OF_A_LOG: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffBundle {
    /// The version of the board, and a part of the digest of all files.
    pub name: String,
    pub files: Vec<(String, Vec<u8>)>,
}

/// The hand-off of `board`, whose last record has the hash `head`; a verdict if the board has
/// nothing to hand over.
pub fn handoff(board: &Board, head: &str) -> Result<HandoffBundle, Verdict> {
    let mut payload = json!(compose(board));
    payload["x_board"] = json!({ "version": board.version(), "head": head });
    let actions = board.next();
    payload["x_next_actions"] = actions.iter().map(|one| json!(one.to_string())).collect();
    let verdict = recheck(Kind::Handoff, &payload);
    if !verdict.allow {
        return Err(verdict);
    }
    let mut files = vec![("handoff.json".to_owned(), pretty(&payload))];
    for row in board.rows() {
        let Some(card) = board.card(&row.task_id) else {
            continue;
        };
        files.extend(task_files(row, card));
    }
    let mut all = Vec::new();
    for (name, bytes) in &files {
        all.extend(format!("{name}\0{}\0", sha256(bytes)).into_bytes());
    }
    let digest = sha256(&all);
    let name = format!("{}-{}", board.version(), &digest[..16]);
    Ok(HandoffBundle { name, files })
}

/// The packet of an open task, its result, and the end of its log.
fn task_files(row: &Row, card: &Card) -> Vec<(String, Vec<u8>)> {
    let task = &row.task_id;
    let mut files = Vec::new();
    if let Some(terms) = card.terms.as_ref().filter(|_| !row.status.is_terminal()) {
        files.push((format!("assignments/{task}.json"), pretty(&terms.packet)));
    }
    if let Some(result) = &card.result {
        files.push((format!("results/{task}.json"), pretty(result)));
    }
    let tail = card.log.len().saturating_sub(LINES_OF_A_LOG);
    let lines = card.log[tail..].iter();
    let lines: Vec<u8> = lines
        .flat_map(|line| line.line.bytes().chain([b'\n']))
        .collect();
    if !lines.is_empty() {
        files.push((format!("worklogs/{task}.jsonl"), lines));
    }
    files
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

fn compose(board: &Board) -> Handoff {
    let cards = || {
        board
            .rows()
            .iter()
            .filter_map(|row| board.card(&row.task_id))
    };
    let open = |row: &&Row| !row.status.is_terminal();
    let mut constraints = Map::new();
    for row in board.rows().iter().filter(open) {
        let terms = board.terms(&row.task_id);
        if let Some(terms) = terms.filter(|terms| !terms.constraints.is_empty()) {
            constraints.insert(row.task_id.to_string(), json!(terms.constraints));
        }
    }
    let waits = |row: &Row| {
        let pair = |on: &TaskId| HandoffDependency {
            task_id: row.task_id.clone(),
            depends_on_task_id: on.clone(),
        };
        row.dependencies.iter().map(pair).collect::<Vec<_>>()
    };
    let blocker = |one: &Blocker| header::Blocker {
        task_id: one.task_id.clone(),
        code: one.code,
        reason: match one.reason.trim() {
            "" => "no reason was given".to_owned(),
            reason => reason.to_owned(),
        },
        details: None,
    };
    let is_active = |lock: &&Lock| lock.active;
    Handoff {
        header: Header::of(board.run_id()),
        objective: board.objective().to_owned(),
        constraints: Value::Object(constraints),
        ledger: board
            .rows()
            .iter()
            .map(|row| render_row(board, row))
            .collect(),
        active_locks: board.locks().iter().filter(is_active).cloned().collect(),
        dependencies: board.rows().iter().flat_map(waits).collect(),
        open_blockers: cards()
            .filter_map(|card| card.blocker.as_ref())
            .map(blocker)
            .collect(),
        acceptance_targets: cards()
            .filter_map(|card| card.terms.as_ref())
            .map(|terms| AcceptanceTarget {
                task_id: terms.task_id.clone(),
                criteria: terms.acceptance_criteria.clone(),
            })
            .collect(),
    }
}

/// A row of the hand-off. A task that was never assigned has no terms: its title is the reason it
/// was made for, and it gets the shortest times, which do not apply before it begins.
fn render_row(board: &Board, row: &Row) -> HandoffRow {
    let terms = board.terms(&row.task_id);
    let origin = board.card(&row.task_id).map_or("", |card| &card.origin);
    let title = match (terms, origin.trim()) {
        (Some(terms), _) => terms.title.clone(),
        (None, "") => row.task_id.to_string(),
        (None, origin) => origin.chars().take(LONGEST_TITLE).collect(),
    };
    HandoffRow {
        task_id: row.task_id.clone(),
        title,
        status: row.status,
        owner: row.owner.clone(),
        lock_scope: terms.map(|one| one.lock_scope.clone()).unwrap_or_default(),
        timeout_seconds: terms.map_or(SHORTEST_TIMEOUT, |one| one.timeout_seconds),
        heartbeat_interval_seconds: terms
            .map_or(SHORTEST_HEARTBEAT, |one| one.heartbeat_interval_seconds),
        priority: terms.map(|one| one.priority).unwrap_or_default(),
        last_heartbeat_at: row.pulse.last_heartbeat_at.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::board::decide::Request;
    use provost_core::code::Code;

    use super::*;
    use crate::operator::board::{read_assignment, read_stream};

    const RUN: &str = "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d";

    fn assignment(scope: &str) -> Vec<u8> {
        json!({
            "schema_version": "1.0.0", "run_id": RUN, "packet_type": "assignment",
            "global_objective": "objective",
            "task": {
                "task_id": "T-1", "title": "One", "type": "serial", "dependencies": [],
                "lock_scope": [scope], "forbidden_scope": [], "acceptance_criteria": ["c"],
                "worklog_path": "T-1.jsonl", "timeout_seconds": 60,
                "heartbeat_interval_seconds": 10,
            },
            "active_locks": [], "context_package": [{ "kind": "constraint", "value": "slowly" }],
            "required_output_schema": "subagent_result_v1",
        })
        .to_string()
        .into_bytes()
    }

    fn stream(base: u64, id: &str, task: &str) -> Vec<u8> {
        let delta = json!({ "task_id": task, "status": "todo", "owner": "", "delta_id": id,
            "reason": "Two, some day" });
        json!({ "base_version": base, "deltas": [delta] })
            .to_string()
            .into_bytes()
    }

    fn decide(board: &Board, request: Request) -> Board {
        board.decide(request, 0).unwrap().board
    }

    fn apply(board: &Board, bytes: &[u8]) -> Board {
        let stream = read_stream(bytes).unwrap();
        let request = Request::Apply {
            base: stream.base_version.unwrap(),
            deltas: stream.deltas,
            blockers: stream.blockers,
            terms: stream.terms,
        };
        decide(board, request)
    }

    #[test]
    fn a_board_is_handed_over_with_unassigned_tasks() {
        let (run_id, terms) = read_assignment(&assignment("src")).unwrap();
        let terms = Box::new(terms);
        let owner = "ada".to_owned();
        let board = decide(&Board::new(&run_id), Request::Assign { owner, terms });
        let board = apply(&board, &stream(1, "d1", "T-2"));
        let made = handoff(&board, "head").unwrap();
        assert_eq!(handoff(&board, "head").unwrap(), made);
        let names: Vec<&str> = made.files.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["handoff.json", "assignments/T-1.json"]);
        let payload = serde_json::from_slice::<Value>(&made.files[0].1).unwrap();
        assert_eq!(payload["ledger"][1]["title"], "Two, some day");
        assert_eq!(payload["constraints"], json!({ "T-1": ["slowly"] }));
        let actions = json!(["await the result of T-1 by ada", "assign T-2"]);
        assert_eq!(payload["x_next_actions"], actions);
        // The hand-off names the board that it was made from.
        assert_ne!(handoff(&board, "other").unwrap().name, made.name);
    }

    #[test]
    fn a_board_without_an_objective_is_not_handed_over() {
        let board = apply(&Board::new(RUN), &stream(0, "d1", "T-2"));
        let refused = handoff(&board, "head").unwrap_err();
        assert_eq!(refused.code, Code::MissingRequiredInput);
    }

    #[test]
    fn a_payload_for_a_board_is_read_strictly() {
        let empty = json!({ "base_version": 0, "deltas": [] }).to_string();
        let unknown = json!({ "base_version": 0, "deltas": [], "x": 1 }).to_string();
        let cases = [
            ("nothing", "", Code::SchemaInvalid),
            ("no object", "[]", Code::SchemaInvalid),
            ("no version", "{\"deltas\":[]}", Code::MissingRequiredInput),
            ("no delta", &empty, Code::MissingRequiredInput),
            ("unknown field", &unknown, Code::MissingRequiredInput),
        ];
        for (name, text, want) in cases {
            let refused = read_stream(text.as_bytes()).unwrap_err();
            assert_eq!(refused.code, want, "{name}: {refused:?}");
            assert!(!refused.allow, "{name}");
        }
        let pattern = read_assignment(&assignment("src/**")).unwrap_err();
        assert_eq!(pattern.code, Code::SchemaInvalid);
    }
}
