//! Documents that agents write, and the gates that accept them.

use proptest::prelude::*;
use provost_testkit::broken_documents::{change, spelled};
use serde_json::Value;

use super::review::{review, reviewed_opening};
use super::*;
use crate::contract::output::Output;
use crate::gate::command::{CommandPolicy, Trust};
use crate::schema::validate::validate;
use crate::{json as text, review as asked, schema};

/// A gate for a document of an agent: its name, the schema that decides first, a valid document,
/// and the gate itself.
struct Taken {
    name: &'static str,
    schema: Value,
    valid: Value,
    takes: fn(&str) -> bool,
}

fn result_gate(text: &str) -> bool {
    let result = ResultFile::Text(text.to_owned());
    state(&agent(Ending::Exited(0), result))
        .judge(Gate::Output)
        .allow
}

/// The verdict of the output gate on `text` as the result of an agent in this role.
fn role_gate(role: &str, agent_id: &str, text: &str) -> Verdict {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact")
    };
    let mut value = serde_json::to_value(&opened.contract).unwrap();
    value["assigned_agent"] = json!({ "role": role, "agent_id": agent_id });
    value["audit_only"] = json!(true);
    value["tool_permissions"]["filesystem"] = json!("read-only");
    let role = serde_json::from_value(json!(role)).unwrap();
    let output = Output::of(role);
    value["inputs"]["artifacts"][0]["uri"] = json!(output.place());
    value["inputs"]["artifacts"][0]["sha256"] = json!(output.digest());
    opened.contract = contract::from_value(&value).unwrap();
    let mut facts = vec![Fact::Opened(opened)];
    facts.extend(agent(Ending::Exited(0), ResultFile::Text(text.to_owned())));
    State::fold(&ledger(&facts)).unwrap().judge(Gate::Output)
}

fn reviewer_gate(text: &str) -> bool {
    role_gate("REVIEWER", "agent-reviewer", text).allow
}

fn runner_gate(text: &str) -> bool {
    role_gate("TEST_RUNNER", "agent-test-runner", text).allow
}

fn reviewed() -> Value {
    json!({ "run_id": "run_00000001", "verdict": "PASS", "summary": "fine",
        "reviewer": { "role": "REVIEWER", "agent_id": "agent-reviewer" },
        "reviewed_at": "2026-01-01T00:00:00Z", "evidence": [], "task_id": "task-0001",
        "scope_check": { "passed": true, "violations": [] } })
}

fn ran() -> Value {
    let file = json!({ "name": "o", "path": "o", "sha256": sha256(b"") });
    json!({ "run_id": "run-0001", "task_id": "task-0001", "status": "PASS", "artifacts": [],
        "runner": { "role": "TEST_RUNNER", "agent_id": "agent-test-runner" },
        "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:20Z",
        "commands": [{ "name": "one", "cmd_argv": ["pytest"], "must_pass": true, "exit_code": 0,
            "timeout_sec": 20.0, "duration_sec": 1.0, "stdout": file, "stderr": file }] })
}

fn review_gate(text: &str) -> bool {
    let mut facts = vec![reviewed_opening()];
    facts.extend(captured(&["app/a"]));
    let result = ResultFile::Text(text.to_owned());
    facts.extend(review("tree", Ending::Exited(0), result, &[]));
    let state = State::fold(&ledger(&facts)).unwrap();
    state.judge(Gate::Review).allow
}

/// A contract with more of its optional fields.
fn full() -> Value {
    let text = include_str!("../../../../../docs/examples/contract-full.json");
    serde_json::from_str(text).unwrap()
}

fn contract_gate(text: &str) -> bool {
    let policy = CommandPolicy::shipped().unwrap();
    let read = contract::parse(text.as_bytes()).ok();
    read.is_some_and(|read| contract::resolve(read, &policy, Trust::FromFile).is_ok())
}

fn all() -> Vec<Taken> {
    vec![
        Taken {
            name: "result",
            schema: schema::find("agent_task_result").unwrap().schema(),
            valid: json!({ "task_id": "task-0001", "status": "SUCCESS", "summary": "s",
                "evidence_refs": { "a": [1] }, "failure": null, "contracts": [{}],
                "handoff_payload": {} }),
            takes: result_gate,
        },
        Taken {
            name: "review",
            schema: asked::schema().clone(),
            valid: json!({ "verdict": "PASS", "summary": "fine", "violations": [],
                "findings": [{ "path": "a", "problem": "b" }] }),
            takes: review_gate,
        },
        Taken {
            name: "review report",
            schema: Output::ReviewReport.schema(),
            valid: reviewed(),
            takes: reviewer_gate,
        },
        Taken {
            name: "test report",
            schema: Output::TestReport.schema(),
            valid: ran(),
            takes: runner_gate,
        },
        Taken {
            name: "contract",
            schema: schema::TASK_CONTRACT.schema(),
            valid: full(),
            takes: contract_gate,
        },
    ]
}

#[test]
fn every_gate_takes_its_valid_document() {
    for taken in all() {
        assert_eq!(validate(&taken.schema, &taken.valid), [], "{}", taken.name);
        assert!((taken.takes)(&taken.valid.to_string()), "{}", taken.name);
    }
}

#[test]
fn no_gate_takes_a_list_for_an_object_or_an_object_without_a_required_field() {
    for taken in all() {
        let fields = taken.valid.as_object().unwrap();
        let list = Value::Array(fields.values().cloned().collect());
        assert!(!(taken.takes)(&list.to_string()), "{}", taken.name);
        for name in taken.schema["required"].as_array().unwrap() {
            let mut lacking = fields.clone();
            lacking.remove(name.as_str().unwrap());
            let text = Value::Object(lacking).to_string();
            assert!(!(taken.takes)(&text), "{} without {name}", taken.name);
        }
    }
    // In the order in which a struct declares its fields.
    assert!(!result_gate(r#"["task-0001","SUCCESS","s",{},null]"#));
    assert!(!review_gate(r#"["PASS","fine",[],[]]"#));
}

fn said(change: impl FnOnce(&mut Value)) -> Verdict {
    let mut result = all().swap_remove(0).valid;
    change(&mut result);
    let result = ResultFile::Text(result.to_string());
    state(&agent(Ending::Exited(0), result)).judge(Gate::Output)
}

#[test]
fn a_bad_word_of_an_agent_about_its_own_work_is_a_refusal() {
    assert_eq!(said(|_| ()).code, Code::Ok);
    for status in ["FAILED", "BLOCKED", "SKIPPED"] {
        let verdict = said(|it| it["status"] = json!(status));
        assert_eq!(verdict.code, Code::AgentReportedFailure, "{status}");
        assert_eq!(verdict.reason, format!("the agent reports {status}: s"));
    }
    let verdict = said(|it| {
        it["status"] = json!("FAILED");
        let message = "\u{1b}[2Jno key\u{202e}\nok: accepted";
        it["failure"] = json!({ "message": message, "hint": "buy one" });
    });
    let want = "the agent reports FAILED: \\u{1b}[2Jno key\\u{202e}";
    assert_eq!(verdict.reason, want);
    let details = verdict.details.unwrap();
    assert_eq!(details["said"]["hint"], "buy one");
    assert!(details["hint"].as_str().unwrap().contains("salvage"));
    let silent = said(|it| {
        it["status"] = json!("BLOCKED");
        it["summary"] = json!(" ");
    });
    assert!(
        silent.reason.ends_with("it does not say why"),
        "{}",
        silent.reason
    );
}

#[test]
fn a_success_that_names_a_failure_is_no_result() {
    for failure in [json!({ "message": "no key" }), json!({ "hint": "buy one" })] {
        let verdict = said(|it| it["failure"] = failure.clone());
        assert_eq!(verdict.code, Code::OutputInvalid, "{verdict:?}");
        assert!(verdict.reason.contains("failure"), "{verdict:?}");
    }
    // Providers that require every property fill it with empty values.
    for empty in [json!({}), json!({ "message": " ", "hint": "" })] {
        assert_eq!(said(|it| it["failure"] = empty.clone()).code, Code::Ok);
    }
}

#[test]
fn a_report_of_a_role_is_about_this_run_and_does_not_contradict_itself() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, Code); 12] = [
        ("REVIEWER", |_| (), Code::Ok),
        (
            "REVIEWER",
            |it| it["scope_check"]["violations"] = json!(["writes elsewhere"]),
            Code::OutputInvalid,
        ),
        (
            "TEST",
            |it| it["failure"] = json!({ "message": "one test is red" }),
            Code::OutputInvalid,
        ),
        (
            "REVIEWER",
            |it| it["verdict"] = json!("FAIL"),
            Code::AgentReportedFailure,
        ),
        (
            "REVIEWER",
            |it| it["verdict"] = json!("BLOCKED"),
            Code::AgentReportedFailure,
        ),
        (
            "REVIEWER",
            |it| it["run_id"] = json!("run_00000002"),
            Code::OutputInvalid,
        ),
        (
            "REVIEWER",
            |it| it["task_id"] = json!("task-0002"),
            Code::OutputInvalid,
        ),
        (
            "REVIEWER",
            |it| it["scope_check"]["passed"] = json!(false),
            Code::OutputInvalid,
        ),
        ("TEST", |_| (), Code::Ok),
        (
            "TEST",
            |it| it["status"] = json!("ERROR"),
            Code::AgentReportedFailure,
        ),
        (
            "TEST",
            |it| it["commands"][0]["exit_code"] = json!(1),
            Code::OutputInvalid,
        ),
        (
            "TEST",
            |it| it["task_id"] = json!("task-0002"),
            Code::OutputInvalid,
        ),
    ];
    for (at, (role, change, want)) in cases.into_iter().enumerate() {
        let (agent_id, mut report) = match role {
            "TEST" => ("agent-test", ran()),
            _ => ("agent-reviewer", reviewed()),
        };
        change(&mut report);
        let verdict = role_gate(role, agent_id, &report.to_string());
        assert_eq!(verdict.code, want, "{at} {verdict:?}");
    }
    let verdict = role_gate("REVIEWER", "agent-reviewer", &all()[0].valid.to_string());
    assert_eq!(
        verdict.code,
        Code::OutputInvalid,
        "the result of another role"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_a_gate_takes_from_an_agent_fits_the_shipped_schema(
        which in 0..5_usize, how in 0..24_u8,
        changes in prop::collection::vec(change(), 0..3),
    ) {
        let taken = &all()[which];
        let mut document = taken.valid.clone();
        for change in &changes {
            change.apply(&mut document);
        }
        let text = spelled(&document, how);
        if (taken.takes)(&text) {
            let read = text::parse(text.as_bytes());
            prop_assert!(read.is_ok(), "{} takes {text}", taken.name);
            let misfits = validate(&taken.schema, &read.unwrap());
            prop_assert!(misfits.is_empty(), "{} takes {text}: {misfits:?}", taken.name);
        }
    }
}
