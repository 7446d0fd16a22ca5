//! Compares the types with the tables: full documents round-trip, invalid ones name their field.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::json;

fn artifact(path: &str) -> Value {
    json!({
        "name": "a file", "path": path, "sha256": "ab".repeat(32),
        "media_type": "text/plain", "size_bytes": 3,
    })
}

fn role_binding() -> Value {
    json!({
        "authority": "contract-derived-read-model", "source": "contract.json",
        "execution_authority": "task_contract",
        "skills_bundle_ref": {
            "status": "registry-backed", "ref": "policies/skills.json#worker", "bundle_id": null,
            "resolved_skill_set": ["edit"], "validation": "fail-closed",
        },
        "mcp_bundle_ref": {
            "status": "unresolved", "ref": null, "resolved_mcp_tool_set": [],
            "validation": "fail-closed",
        },
        "runtime_binding": {
            "status": "partially-resolved", "authority_scope": "contract-derived-read-model",
            "source": { "runner": "a", "provider": "b", "model": "c" },
            "summary": { "runner": "codex", "provider": null, "model": null },
            "capability": {
                "status": "previewable", "lane": "x", "compat_api_mode": "y",
                "provider_status": "z", "provider_inventory_id": null, "tool_execution": "t",
                "notes": [],
            },
        },
    })
}

fn manifest() -> Value {
    let hashes: serde_json::Map<_, _> = REQUIRED_HASHES
        .iter()
        .map(|key| ((*key).to_owned(), json!("cd".repeat(32))))
        .collect();
    json!({
        "run_id": "run_00000001", "created_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:01.5+02:00", "status": "SUCCESS", "task_id": "task_001",
        "failure_reason": "", "notes": "n", "user_request": "do it", "trace_id": "trace_01",
        "diagnostic": false,
        "runner": { "name": "exec", "mcp_only": false, "profile": "p" },
        "policy_pack": "medium",
        "repo": {
            "root": "r", "baseline_ref": "a", "final_ref": "b", "remote_url": "u", "branch": "m",
        },
        "versions": {
            "contracts_schema": "v1", "orchestrator": "0.1.0", "codex_cli": "1",
            "agents_sdk": "2", "python": "3", "node": "4",
        },
        "model": { "id": "m", "temperature": 0.5, "top_p": 1.0, "seed": -1, "notes": "" },
        "role_binding_summary": role_binding(),
        "tasks": [{
            "task_id": "task_001", "role": "UI_UX", "contract": artifact("contract.json"),
            "status": "SUCCESS", "assigned_agent_id": "a", "thread_id": "t",
            "result": artifact("reports/task_result.json"),
            "review_report": artifact("reports/review_report.json"),
            "test_report": artifact("reports/test_report.json"),
        }],
        "artifacts": [artifact("artifacts/a")],
        "evidence_hashes": hashes,
        "integrity": {
            "contract_sha256": "ab".repeat(32), "contract_signature_path": "contract.sig",
            "contract_signature_sha256": "ab".repeat(32), "events_hashchain_path": "x",
            "manifest_sha256": "ab".repeat(32),
        },
        "trace": { "trace_id": "t", "trace_url": "u" },
        "workflow": {
            "workflow_id": "w", "task_queue": "q", "namespace": "n", "status": "RUNNING",
        },
        "observability": {
            "enabled": true, "has_otel": false, "otlp_endpoint": "e", "otlp_protocol": "p",
            "console_enabled": true, "required": false,
        },
        "x_provost": {
            "object_format": "sha1", "base_commit": "a".repeat(40), "base_tree": "b".repeat(40),
            "tree": "c".repeat(40), "directories": { "codex": "agent" }, "facts": { "any": 1 },
        },
    })
}

fn task_result() -> Value {
    let gate = json!({ "passed": false, "violations": ["v"] });
    json!({
        "run_id": "r", "task_id": "t",
        "producer": { "role": "ORCHESTRATOR", "agent_id": "a", "codex_thread_id": "c" },
        "status": "BLOCKED", "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:00Z", "summary": "s", "artifacts": [artifact("a")],
        "git": {
            "baseline_ref": "b", "head_ref": "h", "changed_files": artifact("c"),
            "patch": artifact("p"),
        },
        "gates": {
            "diff_gate": gate, "policy_gate": gate, "review_gate": gate, "tests_gate": gate,
        },
        "next_steps": { "suggested_action": "s", "notes": "n" }, "attempt": 0,
        "failure": { "message": "m", "hint": "h" },
    })
}

fn work_report() -> Value {
    json!({
        "task_id": "t", "status": "aborted", "patch_ref": "patch.diff", "diff_summary": "",
        "evidence_refs": { "anything": [1] }, "failure_reason": "", "run_id": "r", "attempt": 1,
        "role": "TECH_LEAD", "baseline_ref": "b", "head_ref": "h",
        "patch": { "path": "p", "sha256": "ab".repeat(32), "bytes": 1, "mime": "m" },
        "changed_files": { "path": "c", "sha256": "ab".repeat(32) },
        "gates": {
            "diff_gate": { "passed": true }, "tool_gate": { "violations": ["v"] },
        },
        "evidence": {
            "codex_events_jsonl": "a", "transcript_md": "b", "thread_id_txt": "c",
            "trace_id_txt": "d", "orchestrator_events_jsonl": "e",
        },
        "next_actions": { "recommended": "r", "suggested_allowed_paths_delta": ["p"] },
        "timestamps": {
            "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z",
        },
        "metrics": { "tokens": 1 }, "notes": "n",
    })
}

fn review_report() -> Value {
    json!({
        "run_id": "r",
        "reviewer": { "role": "REVIEWER", "agent_id": "a", "codex_thread_id": "c" },
        "reviewed_at": "2026-01-01T00:00:00Z", "verdict": "BLOCKED", "summary": "not reviewed",
        "scope_check": { "passed": true, "violations": [] }, "evidence": [artifact("a")],
        "task_id": "t", "attempt": 1, "produced_diff": false, "notes": "n",
        "x_provost": { "tree": "c".repeat(40), "facts": { "any": 1 } },
    })
}

fn test_report() -> Value {
    json!({
        "run_id": "r", "task_id": "t",
        "runner": { "role": "TEST_RUNNER", "agent_id": "a" },
        "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z",
        "status": "ERROR",
        "commands": [{
            "name": "unit", "cmd_argv": ["cargo", "test"], "must_pass": true, "timeout_sec": 0.5,
            "exit_code": -9, "duration_sec": 1.5, "stdout": artifact("o"), "stderr": artifact("e"),
            "cwd": ".",
        }],
        "artifacts": [], "attempt": 1, "summary": { "passed": 1, "failed": 0, "skipped": 2 },
        "failure": { "message": "m" }, "x_provost": { "tree": "c".repeat(40) },
    })
}

fn evidence_report() -> Value {
    json!({ "status": "fail", "missing": ["patch.diff"] })
}

fn comes_back<T: Serialize + DeserializeOwned>(document: &Value) {
    let report: T = json::parse_as(document.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), *document);
}

#[test]
fn a_document_with_every_field_comes_back() {
    comes_back::<RunManifest>(&manifest());
    comes_back::<TaskResult>(&task_result());
    comes_back::<WorkReport>(&work_report());
    comes_back::<ReviewReport>(&review_report());
    comes_back::<TestReport>(&test_report());
    comes_back::<EvidenceReport>(&evidence_report());
}

/// The optional top-level fields of each table.
const OPTIONAL: [&str; 6] = [
    "finished_at task_id failure_reason notes diagnostic runner policy_pack model \
     role_binding_summary integrity trace workflow observability x_provost",
    "attempt failure",
    "run_id attempt role baseline_ref head_ref patch changed_files gates evidence next_actions \
     timestamps metrics notes",
    "task_id attempt produced_diff notes x_provost",
    "attempt summary failure x_provost",
    "",
];

/// Every document, with its parser.
fn documents() -> [(Value, Refuse); 6] {
    [
        (manifest(), refuse::<RunManifest>),
        (task_result(), refuse::<TaskResult>),
        (work_report(), refuse::<WorkReport>),
        (review_report(), refuse::<ReviewReport>),
        (test_report(), refuse::<TestReport>),
        (evidence_report(), refuse::<EvidenceReport>),
    ]
}

#[test]
fn a_document_needs_exactly_its_required_fields() {
    for ((document, read), optional) in documents().into_iter().zip(OPTIONAL) {
        let fields: Vec<_> = document.as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut without = document.clone();
            without.as_object_mut().unwrap().remove(&field);
            let refused = read(&without);
            let may_go = optional.split_whitespace().any(|name| name == field);
            assert_eq!(refused.is_none(), may_go, "{field}");
            if let Some(words) = refused {
                assert!(words.contains(&field), "{field}: {words}");
            }
            let mut null = document.clone();
            null[&field] = Value::Null;
            assert_eq!(read(&null).is_none(), field == "failure", "{field}: null");
        }
        let mut more = document.clone();
        more["extra"] = json!(1);
        assert!(read(&more).unwrap().contains("unknown field `extra`"));
    }
}

type Refuse = fn(&Value) -> Option<String>;

fn refuse<T: DeserializeOwned>(document: &Value) -> Option<String> {
    let read = json::parse_as::<T>(document.to_string().as_bytes());
    read.err().map(|error| error.to_string())
}

/// Which document, where, the value to put there, and the expected message.
const WRONG: &str = r#"
    0 | /run_id | "short" | `run_id`: has fewer than 8
    0 | /trace_id | "é" | `trace_id`: has fewer than 8
    0 | /user_request | "" | `user_request`: is empty
    0 | /status | "success" | `status`: must be one of
    0 | /created_at | "2026-01-01" | `created_at`:
    0 | /policy_pack | "LOW" | `policy_pack`:
    0 | /model/temperature | 2.1 | `model.temperature`: is not between 0 and 2
    0 | /model/top_p | -0.1 | `model.top_p`: is not between 0 and 1
    0 | /model/seed | 0.5 | `model.seed`:
    0 | /tasks | [] | `tasks`: is an empty list
    0 | /tasks/0/role | "BOSS" | `tasks[0].role`:
    0 | /tasks/0/contract/sha256 | "ab" | `tasks[0].contract.sha256`:
    0 | /tasks/0/contract/size_bytes | -1 | `tasks[0].contract.size_bytes`:
    0 | /evidence_hashes/patch.diff | "zz" | `evidence_hashes.patch.diff`:
    0 | /evidence_hashes | {} | `evidence_hashes`: the key `contract.json` is missing
    0 | /x_provost/tree | "C" | `x_provost.tree`:
    0 | /role_binding_summary/authority | "me" | `role_binding_summary.authority`:
    1 | /gates/diff_gate/passed | 1 | `gates.diff_gate.passed`:
    1 | /producer/role | "ORACLE" | `producer.role`:
    1 | /attempt | -1 | `attempt`:
    2 | /status | "SUCCESS" | `status`:
    2 | /role | "SEARCHER" | `role`:
    3 | /produced_diff | true | `produced_diff`: is true
    3 | /reviewer/role | "WORKER" | `reviewer.role`:
    3 | /verdict | "SKIPPED" | `verdict`:
    4 | /commands/0/cmd_argv | [] | `commands[0].cmd_argv`:
    4 | /commands/0/duration_sec | -1 | `commands[0].duration_sec`:
    4 | /status | "BLOCKED" | `status`:
    5 | /status | "OK" | `status`:
    5 | /missing | "none" | `missing`:
"#;

#[test]
fn a_field_that_is_wrong_is_named() {
    for row in WRONG.trim().lines() {
        let cells: Vec<_> = row.split(" | ").map(str::trim).collect();
        let [which, pointer, value, want] = cells[..] else {
            panic!("{row}");
        };
        let (mut document, read) = documents()[which.parse::<usize>().unwrap()].clone();
        *document.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
        let words = read(&document).unwrap_or_default();
        assert!(words.starts_with(want), "{row}: {words}");
    }
}

#[test]
fn a_time_is_what_rfc_3339_says() {
    for good in [
        "2026-01-01T00:00:00Z",
        "2026-12-31t23:59:60.123456789z",
        "2026-01-01T00:00:00-23:59",
        "2026-01-01T00:00:00.1+00:00",
    ] {
        assert!(Time::try_from(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00Zx",
        "2026-01-01T00:00:00+0000",
        "+026-01-01T00:00:00Z",
        "2026-01-01T00:00:00\u{e9}",
    ] {
        assert!(Time::try_from(bad).is_err(), "{bad}");
    }
}

#[test]
fn digits_of_either_case_are_one_digest() {
    let upper = Sha256::try_from("AB".repeat(32)).unwrap();
    assert_eq!(upper, Sha256::try_from("ab".repeat(32)).unwrap());
}
