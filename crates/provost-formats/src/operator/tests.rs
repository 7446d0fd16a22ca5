use crate::board::row::Status;
use serde_json::{Value, json};

use super::*;

const RUN: &str = "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d";

fn judge(kind: Kind, value: &Value, strictness: Strictness) -> Verdict {
    let surroundings = Surroundings {
        file_exists: &|path| path == "worklogs/T-4.jsonl",
    };
    check(kind, value.to_string().as_bytes(), strictness, surroundings)
}

fn an_assignment() -> Value {
    json!({
        "schema_version": "1.0.0",
        "run_id": RUN,
        "generated_at": "2026-03-01T00:00:00Z",
        "packet_type": "assignment",
        "global_objective": "Split the parser",
        "task": {
            "task_id": "T-4",
            "title": "Move the lexer",
            "type": "serial",
            "dependencies": ["T-2"],
            "lock_scope": ["crates/lexer", "tests/lexer.rs"],
            "forbidden_scope": ["crates/parser"],
            "acceptance_criteria": ["lexer tests pass"],
            "worklog_path": "worklogs/T-4.jsonl",
            "timeout_seconds": 900,
            "heartbeat_interval_seconds": 60,
            "priority": "high",
        },
        "active_locks": [{ "task_id": "T-3", "resource": "crates/ast", "active": true }],
        "context_package": [{ "kind": "file", "value": "crates/lexer/src/lib.rs" }],
        "required_output_schema": "subagent_result_v1",
    })
}

fn a_result() -> Value {
    json!({
        "schema_version": "1.0.0",
        "run_id": RUN,
        "task_id": "T-4",
        "status": "done",
        "changes": [{ "resource": "crates/lexer/a.rs", "action": "edit", "evidence": "moved" }],
        "acceptance_check": [
            { "criterion": "lexer tests pass", "status": "pass", "evidence": "41 passed" },
        ],
        "worklog_path": "worklogs/T-4.jsonl",
        "notes_for_orchestrator": ["ready"],
    })
}

fn a_delta(id: &str, status: Status) -> Value {
    json!({
        "task_id": "T-4",
        "status": status,
        "owner": "agent-1",
        "reason": "dispatched",
        "delta_id": id,
        "last_heartbeat_at": "2026-03-01T12:00:00Z",
        "timed_out": false,
        "retry_after_ms": 250,
    })
}

fn a_lock() -> Value {
    json!({ "task_id": "T-4", "resource": "crates/lexer", "active": true })
}

fn a_blocker() -> Value {
    json!({ "task_id": "T-4", "code": "TASK_TIMEOUT", "reason": "silent", "details": {} })
}

fn a_line() -> String {
    json!({
        "timestamp": "2026-03-01T10:00:00Z",
        "run_id": RUN,
        "task_id": "T-4",
        "actor": "agent-1",
        "action": "edit",
        "files_touched": ["a.rs"],
        "decision": "split",
        "result": "compiles",
        "next_step": "test",
    })
    .to_string()
}

fn a_handoff() -> Value {
    json!({
        "schema_version": "1.0.0",
        "run_id": RUN,
        "objective": "Split the parser",
        "constraints": { "quality_bar": "tests green" },
        "ledger": [{
            "task_id": "T-4",
            "title": "Move the lexer",
            "status": "todo",
            "owner": "",
            "lock_scope": ["crates/lexer"],
            "timeout_seconds": 900,
            "heartbeat_interval_seconds": 60,
            "priority": "normal",
            "last_heartbeat_at": "2026-03-01T10:00:00Z",
        }],
        "active_locks": [a_lock()],
        "dependencies": [],
        "open_blockers": [a_blocker()],
        "acceptance_targets": [{ "task_id": "T-4", "criteria": ["lexer tests pass"] }],
    })
}

fn a_board() -> Value {
    json!({
        "ledger": [
            { "task_id": "T-1", "status": "done", "owner": "a", "dependencies": [] },
            { "task_id": "T-4", "status": "in_progress", "owner": "a", "dependencies": ["T-1"] },
        ],
        "active_locks": [a_lock()],
        "events": [{ "task_id": "T-1", "event_type": "state_transition" }],
    })
}

fn a_step() -> Value {
    json!({
        "task": {
            "task_id": "T-4",
            "status": "todo",
            "version": 3,
            "owner": "a",
            "dependencies": [{ "task_id": "T-2", "status": "done" }],
        },
        "to": "in_progress",
        "expected_version": 3,
        "actor": "planner",
        "reason": "step",
        "lock_scope_active": true,
        "assignment_valid": true,
    })
}

fn a_tick() -> Value {
    json!({
        "now": "2026-03-01T12:00:00Z",
        "tasks": [{
            "task_id": "T-4",
            "status": "in_progress",
            "timeout_seconds": 1200,
            "last_heartbeat_at": "2026-03-01T11:50:00Z",
        }],
    })
}

/// A valid payload of each kind, for both strictness levels.
fn a_payload(kind: Kind) -> Value {
    let base = json!([{ "task_id": "T-4", "status": "todo", "owner": "" }]);
    match kind {
        Kind::Assignment => an_assignment(),
        Kind::Result => a_result(),
        Kind::OrchestratorOutput => json!({
            "schema_version": "1.0.0",
            "run_id": RUN,
            "ledger_delta": [a_delta("d-1", Status::InProgress), a_delta("d-2", Status::Blocked)],
            "assignments": [an_assignment()],
            "active_locks": [a_lock()],
            "blockers": [a_blocker()],
            "next_actions": ["wait"],
        }),
        Kind::Worklog => json!({ "lines": [a_line(), a_line()], "outcome": "done" }),
        Kind::WorklogAppend => json!({
            "before_lines": [a_line()],
            "after_lines": [a_line(), a_line()],
        }),
        Kind::Handoff => a_handoff(),
        Kind::LedgerDelta => json!({
            "base_ledger": base,
            "applied_delta_ids": ["d-0"],
            "deltas": [a_delta("d-0", Status::Done), a_delta("d-1", Status::InProgress)],
        }),
        Kind::LedgerDeltaStreams => json!({
            "base_ledger": base,
            "base_version": 5,
            "streams": [{ "base_version": 5, "deltas": [a_delta("d-1", Status::InProgress)] }],
        }),
        Kind::Locks => json!({ "locks": [a_lock()] }),
        Kind::LockLifecycle => json!({ "ops": [
            { "op": "acquire", "task_id": "T-1", "resources": ["a"] },
            { "op": "release", "task_id": "T-1", "resources": ["a"] },
            { "op": "set_status", "task_id": "T-1", "status": "done" },
            { "op": "acquire", "task_id": "T-2", "resources": ["a/b"] },
        ] }),
        Kind::Reconcile => a_board(),
        Kind::Transition => a_step(),
        Kind::Watchdog => a_tick(),
        Kind::PostExecution => json!({
            "task_id": "T-4",
            "result": a_result(),
            "assignment": an_assignment(),
        }),
        Kind::PreComplete => json!({
            "task_id": "T-4",
            "acceptance_check": a_result()["acceptance_check"],
            "required_criteria": ["lexer tests pass"],
        }),
    }
}

/// The pointers of everything below `value`.
fn pointers(value: &Value, above: &str, list: &mut Vec<String>) {
    list.push(above.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                pointers(field, &format!("{above}/{key}"), list);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                pointers(item, &format!("{above}/{at}"), list);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_good_payload_of_each_kind_is_allowed() {
    for kind in Kind::ALL {
        for strictness in [Strictness::Literal, Strictness::Strict] {
            let verdict = judge(kind, &a_payload(kind), strictness);
            assert!(verdict.allow, "{kind:?} {strictness:?}: {verdict:?}");
        }
    }
}

#[test]
fn any_type_in_any_place_gives_a_verdict() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("T-1\n"),
        json!("../.."),
        json!([]),
        json!([[null]]),
        json!({}),
        json!({ "task_id": 1 }),
    ];
    for kind in Kind::ALL {
        let good = a_payload(kind);
        let mut places = Vec::new();
        pointers(&good, "", &mut places);
        for place in &places {
            for other in &odd {
                let mut bad = good.clone();
                *bad.pointer_mut(place).unwrap() = other.clone();
                let verdict = judge(kind, &bad, Strictness::Strict);
                let known = verdict.allow || Code::OF_BOARD.contains(&verdict.code);
                assert!(known, "{kind:?} {place}: {verdict:?}");
            }
            // No field of any contract may be a number with a fraction.
            let mut bad = good.clone();
            *bad.pointer_mut(place).unwrap() = json!(1.5);
            let free = ["/constraints", "/event_type", "/details"];
            if !free.iter().any(|field| place.contains(field)) {
                assert!(
                    !judge(kind, &bad, Strictness::Literal).allow,
                    "{kind:?} {place}"
                );
            }
        }
    }
}

#[test]
fn unknown_fields_are_refused_only_where_that_is_asked_for() {
    for kind in Kind::ALL {
        for (name, strictly) in [("colour", false), ("x_colour", true)] {
            let mut payload = a_payload(kind);
            payload[name] = json!("blue");
            assert!(judge(kind, &payload, Strictness::Literal).allow, "{kind:?}");
            let strict = judge(kind, &payload, Strictness::Strict);
            assert_eq!(strict.allow, strictly, "{kind:?} {name}");
            if !strictly {
                let details = strict.details.unwrap_or_default();
                assert_eq!(details["findings"][0]["path"], "/colour", "{kind:?}");
            }
        }
    }
}

#[test]
fn every_kind_takes_a_version_and_refuses_an_unknown_one() {
    let both = [Strictness::Literal, Strictness::Strict];
    for kind in Kind::ALL {
        for (version, want) in [
            (json!("1.7.2"), Code::Ok),
            (json!("2.0.0"), Code::UnknownSchemaVersion),
            (json!("10.0.0"), Code::UnknownSchemaVersion),
        ] {
            let mut payload = a_payload(kind);
            payload["run_id"] = json!(RUN);
            payload["generated_at"] = json!("2026-03-01T00:00:00Z");
            payload["schema_version"] = version;
            for strictness in both {
                let verdict = judge(kind, &payload, strictness);
                assert_eq!(verdict.code, want, "{kind:?} {strictness:?}: {verdict:?}");
            }
        }
    }
    // Nothing else is said about a payload whose version is unknown.
    for version in [json!(9), json!("9"), json!("9.0.0")] {
        for strictness in both {
            let payload = json!({ "schema_version": version });
            let verdict = judge(Kind::Worklog, &payload, strictness);
            assert_eq!(verdict.code, Code::UnknownSchemaVersion, "{verdict:?}");
        }
    }
    let line = a_line().replacen('{', "{\"schema_version\":\"2.0.0\",", 1);
    let payload = json!({ "lines": [line], "outcome": "done" });
    let verdict = judge(Kind::Worklog, &payload, Strictness::Literal);
    assert_eq!(verdict.code, Code::UnknownSchemaVersion, "{verdict:?}");
}

#[test]
fn every_operation_has_its_step_however_many_are_refused() {
    let mut ops = vec![json!({ "op": "acquire", "task_id": "T-1", "resources": ["a"] })];
    ops.resize(
        301,
        json!({ "op": "acquire", "task_id": "T-2", "resources": ["b", "a"] }),
    );
    let verdict = judge(
        Kind::LockLifecycle,
        &json!({ "ops": ops }),
        Strictness::Literal,
    );
    assert!(
        verdict.reason.ends_with("(and 299 more)"),
        "{}",
        verdict.reason
    );
    let details = verdict.details.unwrap();
    let steps = details["steps"].as_array().unwrap();
    assert_eq!(steps[0], "ok");
    assert!(steps[1..].iter().all(|step| step == "LOCK_CONFLICT"));
    assert_eq!(details["findings"].as_array().unwrap().len(), 100);
}

#[test]
fn a_result_is_bound_to_its_assignment() {
    let cases = [
        ("/task_id", json!("T-5"), Code::SchemaInvalid),
        (
            "/result/run_id",
            json!(RUN.replace('7', "8")),
            Code::SchemaInvalid,
        ),
        (
            "/assignment/task/task_id",
            json!("T-5"),
            Code::SchemaInvalid,
        ),
        (
            "/assignment/task/lock_scope",
            json!(["crates/other"]),
            Code::ScopeViolation,
        ),
        (
            "/result/changes/0/resource",
            json!("crates/lexer/../x"),
            Code::ScopeViolation,
        ),
        (
            "/assignment/task/acceptance_criteria",
            json!(["docs"]),
            Code::AcceptanceFailed,
        ),
        (
            "/result/worklog_path",
            json!("elsewhere"),
            Code::MissingRequiredInput,
        ),
    ];
    for (place, other, want) in cases {
        let mut payload = a_payload(Kind::PostExecution);
        *payload.pointer_mut(place).unwrap() = other;
        let verdict = judge(Kind::PostExecution, &payload, Strictness::Literal);
        assert_eq!(verdict.code, want, "{place}: {verdict:?}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let deep = "[".repeat(100_000);
    let texts: [&[u8]; 9] = [
        b"",
        b" \n",
        b"nope",
        b"\xff",
        b"{\"a\":1,\"a\":2}",
        b"\"\\ud800\"",
        b"NaN",
        b"---\na: 1\n",
        deep.as_bytes(),
    ];
    for kind in Kind::ALL {
        for text in texts {
            let surroundings = Surroundings {
                file_exists: &|_| true,
            };
            let verdict = check(kind, text, Strictness::Literal, surroundings);
            assert_eq!(verdict.code, Code::SchemaInvalid, "{kind:?}: {text:?}");
        }
    }
}

#[test]
fn findings_name_their_places() {
    let mut payload = an_assignment();
    payload["task"]["title"] = json!("");
    payload["task"]["lock_scope"][1] = json!(" ");
    payload["active_locks"][0]["active"] = json!("yes");
    let verdict = judge(Kind::Assignment, &payload, Strictness::Literal);
    let details = verdict.details.unwrap();
    let rows = details["findings"].as_array().unwrap();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["code"], row["path"], row["problem"]))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    "MISSING_REQUIRED_INPUT" "/task/title" "is blank"
    "SCHEMA_INVALID" "/task/lock_scope/1" "is blank"
    "SCHEMA_INVALID" "/active_locks/0/active" "is a string; boolean is asked for"
    "#);
    insta::assert_snapshot!(verdict.reason, @"`/task/title`: is blank (and 2 more)");
}

#[test]
fn payloads_come_back_from_what_they_were_read_into() {
    let found = &mut Findings::new(Strictness::Strict);
    let assignment = assignment::read(&an_assignment().into(), "", found).unwrap();
    assert_eq!(json!(assignment), an_assignment());
    let result = result::read(&a_result().into(), "", found).unwrap();
    assert_eq!(json!(result), a_result());
    let handoff = handoff::read(&a_handoff().into(), found).unwrap();
    assert_eq!(json!(handoff), a_handoff());
    assert!(found.is_empty());
}

#[test]
fn a_report_in_markdown_is_read_like_a_result() {
    let page = |front: &str, body: &str| format!("---\n{front}\n---\n{body}");
    let front = a_result()
        .to_string()
        .replace("\"changes\"", "\"files_touched\"");
    let surroundings = Surroundings {
        file_exists: &|_| true,
    };
    let cases = [
        (page(&front, "Done."), Strictness::Strict, Code::Ok),
        (page(&front, "token=abcdef"), Strictness::Literal, Code::Ok),
        (
            page(&front, "token=abcdef"),
            Strictness::Strict,
            Code::UntrustedContextBlock,
        ),
        (page("[]", ""), Strictness::Literal, Code::SchemaInvalid),
        (page("", ""), Strictness::Literal, Code::SchemaInvalid),
    ];
    for (text, strictness, want) in cases {
        let verdict = check(Kind::Result, text.as_bytes(), strictness, surroundings);
        assert_eq!(verdict.code, want, "{text}: {verdict:?}");
    }
}
