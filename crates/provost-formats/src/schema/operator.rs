//! The payloads between a planner and its workers.

use provost_core::board::row::{Priority, Status};
use provost_core::board::watchdog::SHORTEST_TIMEOUT;
use provost_core::code::Code;
use serde_json::{Value, json};

use super::build::{Field, closed, count, filled, flag, list, may, must, only, some, text};
use super::build::{time, up_to, word};
use crate::operator::limit;

/// The header of every payload.
fn header() -> Vec<Field> {
    vec![
        must(
            "schema_version",
            json!({ "type": "string", "pattern": r"^1\.[0-9]+\.[0-9]+$" }),
        ),
        must("run_id", run_id()),
        may("generated_at", time()),
    ]
}

fn with_header(fields: Vec<Field>) -> Value {
    let mut all = header();
    all.extend(fields);
    closed(all)
}

fn run_id() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-fA-F-]{36}$" })
}

fn task_id() -> Value {
    json!({ "type": "string", "pattern": "^(T-[0-9]+|[0-9a-fA-F-]{36})$" })
}

fn lock() -> Value {
    closed(vec![
        must("task_id", task_id()),
        must("resource", filled()),
        must("active", flag()),
    ])
}

fn code() -> Value {
    word(Code::OF_BOARD.iter().map(|code| code.name()))
}

fn blocker() -> Value {
    closed(vec![
        must("task_id", task_id()),
        must("code", code()),
        must("reason", filled()),
        may("details", json!({ "type": "object" })),
    ])
}

fn status() -> Value {
    word(Status::ALL.map(Status::name))
}

fn priority() -> Value {
    word(Priority::ALL.map(Priority::name))
}

fn rhythm() -> [Field; 2] {
    [
        must("timeout_seconds", count(SHORTEST_TIMEOUT)),
        must(
            "heartbeat_interval_seconds",
            count(limit::SHORTEST_HEARTBEAT),
        ),
    ]
}

pub(super) fn assignment() -> Value {
    let context = closed(vec![
        must("kind", word(["file", "note", "command", "constraint"])),
        must("value", filled()),
    ]);
    with_header(vec![
        must("packet_type", only("assignment")),
        must("global_objective", up_to(limit::LONGEST_OBJECTIVE)),
        must("task", task()),
        must("active_locks", list(&lock())),
        must("context_package", list(&context)),
        must("required_output_schema", only("subagent_result_v1")),
    ])
}

fn task() -> Value {
    let mut fields = vec![
        must("task_id", task_id()),
        must("title", up_to(limit::LONGEST_TITLE)),
        must("type", word(["parallelizable", "serial"])),
        must("dependencies", list(&task_id())),
        must("lock_scope", some(&filled())),
        must("forbidden_scope", list(&filled())),
        must("acceptance_criteria", some(&filled())),
        must("worklog_path", up_to(limit::LONGEST_WORKLOG_PATH)),
        may("priority", priority()),
        // Other programs write it here; no reader uses it.
        may("report_path", json!({})),
    ];
    fields.extend(rhythm());
    closed(fields)
}

pub(super) fn result() -> Value {
    let change = closed(vec![
        must("resource", filled()),
        must("action", filled()),
        may("evidence", text()),
    ]);
    let check = closed(vec![
        must("criterion", filled()),
        must("status", word(["pass", "fail"])),
        must("evidence", filled()),
    ]);
    let notes = json!({ "type": "array", "items": filled(), "maxItems": limit::MOST_NOTES });
    with_header(vec![
        must("task_id", task_id()),
        must("status", word(["done", "blocked", "failed"])),
        must("changes", list(&change)),
        must("acceptance_check", list(&check)),
        must("worklog_path", up_to(limit::LONGEST_WORKLOG_PATH)),
        must("notes_for_orchestrator", notes),
    ])
}

pub(super) fn output() -> Value {
    let delta = closed(vec![
        must("task_id", task_id()),
        must("status", status()),
        must("owner", text()),
        must("reason", filled()),
        must("delta_id", filled()),
        may("last_heartbeat_at", time()),
        may("timed_out", flag()),
        may("retry_after_ms", count(0)),
        may("x_create", flag()),
    ]);
    with_header(vec![
        must("ledger_delta", list(&delta)),
        must("assignments", list(&assignment())),
        must("active_locks", list(&lock())),
        must("blockers", list(&blocker())),
        must("next_actions", list(&text())),
    ])
}

pub(super) fn worklog_entry() -> Value {
    closed(vec![
        must("timestamp", time()),
        must("run_id", run_id()),
        must("task_id", task_id()),
        must("actor", filled()),
        must("action", filled()),
        must("files_touched", list(&filled())),
        must("decision", text()),
        must("result", text()),
        must("next_step", text()),
        may("code", code()),
        may("evidence", text()),
    ])
}

pub(super) fn handoff() -> Value {
    let mut row = vec![
        must("task_id", task_id()),
        must("title", up_to(limit::LONGEST_TITLE)),
        must("status", status()),
        must("owner", text()),
        must("lock_scope", list(&filled())),
        must("priority", priority()),
        may(
            "last_heartbeat_at",
            json!({ "oneOf": [time(), { "type": "null" }] }),
        ),
    ];
    row.extend(rhythm());
    let dependency = closed(vec![
        must("task_id", task_id()),
        must("depends_on_task_id", task_id()),
    ]);
    let target = closed(vec![
        must("task_id", task_id()),
        must("criteria", list(&filled())),
    ]);
    with_header(vec![
        must("objective", filled()),
        must("constraints", json!({ "type": ["object", "array"] })),
        must("ledger", list(&closed(row))),
        must("active_locks", list(&lock())),
        must("dependencies", list(&dependency)),
        must("open_blockers", list(&blocker())),
        must("acceptance_targets", list(&target)),
    ])
}
