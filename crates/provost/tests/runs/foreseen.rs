//! What a run refuses before its agent starts, `check contract` and `contract lint` refuse as well;
//! and what an agent, a reviewer and a report say of a run.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

const POLICY: &str = "[commands]\nallow = [\"sh check.sh\"]\n[mcp.search]\ncommand = \"search\"\n";

fn stage() -> Stage {
    let stage = Stage::new();
    let skills = r#"{"worker": ["read"]}"#;
    stage.commit(&[("provost.toml", POLICY), ("policies/skills.json", skills)]);
    stage
}

/// A contract that can be run here, written to a file.
fn contract(stage: &Stage, change: impl FnOnce(&mut Value)) -> String {
    let file = stage.path("home/base.json").display().to_string();
    let _ = fs::remove_file(&file);
    let words = [
        "contract",
        "new",
        &file,
        "make it good",
        "--allow",
        "src/a.txt",
    ];
    let made = stage.ask(&[&words[..], &["--accept", "sh check.sh", "--json"]].concat());
    assert_eq!(made.exit, 0, "{made:?}");
    let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut value);
    fs::write(&file, value.to_string()).unwrap();
    file
}

fn code(outcome: &Outcome) -> (i32, String) {
    (outcome.exit, outcome.code().to_owned())
}

fn role_contract(skills: &str) -> Value {
    json!({
        "identity": { "role": "WORKER", "agent_id": "agent-worker" }, "purpose": "work",
        "system_prompt_ref": null, "skills_bundle_ref": skills, "mcp_bundle_ref": null,
        "runtime_binding": { "runner": null, "provider": null, "model": null },
        "tool_permissions": { "filesystem": "workspace-write", "shell": "never", "network": "deny" },
        "resolved_mcp_tool_set": ["none"],
        "handoff": { "eligible": false, "required_downstream_roles": [], "chain_roles": [],
            "max_handoffs": null },
        "fail_closed_conditions": ["drift"],
    })
}

/// Checks that the gate of the case `at` is in the ledger: two have names of their own.
fn assert_gate(stage: &Stage, run: &str, at: usize) {
    let gate = match at {
        1 => "sampling",
        2..=4 => "integrated",
        _ => "policy",
    };
    let ledger = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let named = format!("\"gate\":\"{gate}\"");
    assert!(ledger.contains(&named), "{at}: {ledger}");
}

#[test]
fn what_a_run_refuses_at_its_opening_is_refused_by_check_and_lint_with_the_same_code() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 16] = [
        ("OK", |_| ()),
        ("CONTRACT_INVALID", |it| {
            it["mcp_tool_set"] = json!(["sampling"]);
            it["tool_permissions"]["mcp_tools"] = json!(["sampling"]);
        }),
        ("CONTRACT_INVALID", |it| {
            it["mcp_tool_set"] = json!(["unheard-of"]);
            it["tool_permissions"]["mcp_tools"] = json!(["unheard-of"]);
        }),
        ("CONTRACT_INVALID", |it| {
            it["tool_permissions"]["mcp_tools"] = json!(["search"]);
        }),
        ("CONTRACT_INVALID", |it| {
            it["mcp_tool_set"] = json!(["none", "none"]);
        }),
        ("CONTRACT_INVALID", |it| it["task_type"] = json!("SEARCH")),
        ("NOT_FOUND", |it| {
            it["rollback"]["baseline_ref"] = json!("not-here");
        }),
        ("NOT_FOUND", |it| {
            it["x_provost"]["target"] = json!("not-here");
        }),
        ("CONTRACT_INVALID", |it| it["inputs"]["spec"] = json!("")),
        ("CONTRACT_INVALID", |it| it["allowed_paths"] = json!(["**"])),
        ("CONTRACT_INVALID", |it| {
            let file = json!({ "name": "x", "uri": "not/here", "sha256": "0".repeat(64) });
            it["inputs"]["artifacts"].as_array_mut().unwrap().push(file);
        }),
        ("CONTRACT_INVALID", |it| {
            it["runtime_options"] = json!({ "runner": "agents" });
        }),
        ("CONTRACT_INVALID", |it| {
            it["runtime_options"] = json!({ "provider": "missing" });
        }),
        ("CONTRACT_INVALID", |it| {
            it["role_contract"] = role_contract("not/here.json");
        }),
        ("CONTRACT_INVALID", |it| {
            it["role_contract"] = role_contract("policies/skills.json");
        }),
        ("CONTRACT_INVALID", |it| {
            it["role_contract"] = role_contract("policies/skills.json#missing");
        }),
    ];
    let stage = stage();
    let agent = stage.agent("echo good > src/a.txt");
    for (at, (want, change)) in cases.into_iter().enumerate() {
        let file = contract(&stage, change);
        let ran = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
        let checked = stage.ask(&["check", "contract", &file, "--json"]);
        let linted = stage.ask(&["contract", "lint", &file, "--json"]);
        assert_eq!(ran.code(), want, "{at}: {ran:?}");
        assert_eq!(code(&checked), code(&ran), "{at}: {checked:?}");
        assert_eq!(code(&linted), code(&ran), "{at}: {linted:?}");
        if let Some(run) = Some(ran.text("run_id")).filter(|run| !run.is_empty()) {
            assert_gate(&stage, run, at);
            let verified = stage.verify(run);
            assert_eq!(verified.exit, 0, "{at}: {verified:?}");
        }
    }
}

#[test]
fn what_a_run_waits_for_is_foreseen_by_check_and_lint() {
    let stage = stage();
    let file = contract(&stage, |it| it["allowed_paths"] = json!(["src"]));
    let agent = stage.agent("echo good > src/a.txt");
    let ran = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(ran.code(), "APPROVAL_NEEDED", "{ran:?}");
    for words in [["check", "contract"], ["contract", "lint"]] {
        let answer = stage.ask(&[&words[..], &[&file, "--json"]].concat());
        assert_eq!(answer.code(), "OK", "{answer:?}");
        assert_eq!(answer.json["asks"][0]["path"], "/allowed_paths/0");
    }
}

/// Every role of the registry, and the schema of its result.
const ROLES: [(&str, &str); 15] = [
    ("PM", "agent_task_result"),
    ("TECH_LEAD", "agent_task_result"),
    ("WORKER", "agent_task_result"),
    ("REVIEWER", "review_report"),
    ("TEST_RUNNER", "test_report"),
    ("SEARCHER", "agent_task_result"),
    ("RESEARCHER", "agent_task_result"),
    ("UI_UX", "agent_task_result"),
    ("FRONTEND", "agent_task_result"),
    ("BACKEND", "agent_task_result"),
    ("AI", "agent_task_result"),
    ("SECURITY", "agent_task_result"),
    ("INFRA", "agent_task_result"),
    ("TEST", "test_report"),
    ("OPS", "agent_task_result"),
];

fn for_role(it: &mut Value, role: &str, schema: &str, sha256: &str) {
    let agent_id = format!("agent-{}", role.to_lowercase().replace('_', "-"));
    it["assigned_agent"] = json!({ "role": role, "agent_id": agent_id });
    let uri = format!("schemas/{schema}.v1.json");
    it["inputs"]["artifacts"] = json!([{ "name": "output_schema", "uri": uri, "sha256": sha256 }]);
    if ["PM", "TECH_LEAD", "REVIEWER"].contains(&role) {
        it["audit_only"] = json!(true);
        it["tool_permissions"]["filesystem"] = json!("read-only");
    }
    if ["SEARCHER", "RESEARCHER"].contains(&role) {
        it["mcp_tool_set"] = json!(["search"]);
        it["tool_permissions"]["mcp_tools"] = json!(["search"]);
    }
}

#[test]
fn every_role_of_the_registry_has_a_contract_that_check_and_run_take() {
    let stage = stage();
    // Passes on the base as well, where a role that only reads leaves it.
    stage.commit(&[("check.sh", "true\n")]);
    for (role, schema) in ROLES {
        let text = stage.ask(&["schema", schema]);
        let sha256 = provost_core::object::sha256(&text.stdout);
        let file = contract(&stage, |it| for_role(it, role, schema, &sha256));
        let checked = stage.ask(&["check", "contract", &file, "--json"]);
        assert_eq!(checked.code(), "OK", "{role}: {checked:?}");
        let searches = ["SEARCHER", "RESEARCHER"].contains(&role);
        if searches {
            // A search needs a program that is given servers; the gate of a run with it is asked.
            let words = ["check", "contract", &file, "--agent", "codex", "--json"];
            assert_eq!(stage.ask(&words).code(), "OK", "{role}");
            continue;
        }
        let reads = ["PM", "TECH_LEAD", "REVIEWER"].contains(&role);
        let agent = stage.agent(if reads {
            "true"
        } else {
            "echo good > src/a.txt"
        });
        let ran = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
        assert_eq!(ran.code(), "OK", "{role}: {ran:?}");
    }
}

/// An agent that works and leaves a result with this status.
fn reports(status: &str) -> String {
    format!(
        r#"echo good > src/a.txt; echo "I ran the tests"
        task=$(grep -o 'task-[0-9]*' $PROVOST_CONTRACT | head -n 1)
        printf '{{"task_id":"%s","status":"{status}","summary":"no key here",' $task > $PROVOST_RESULT
        printf '"evidence_refs":{{}},"failure":null}}' >> $PROVOST_RESULT"#
    )
}

fn report(stage: &Stage, run: &str, name: &str) -> Value {
    let path = stage.evidence(run, &format!("reports/{name}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_agent_that_reports_a_failure_is_refused_and_its_work_is_kept() {
    let stage = Stage::new();
    for status in ["FAILED", "BLOCKED"] {
        let outcome = stage.run(&reports(status), &Ask::default());
        assert_eq!(outcome.code(), "AGENT_REPORTED_FAILURE", "{outcome:?}");
        let reason = outcome.json["verdict"]["reason"].as_str().unwrap();
        assert_eq!(reason, format!("the agent reports {status}: no key here"));
        let run = outcome.text("run_id");
        assert_eq!(stage.verify(run).exit, 0);
        let kept = stage.ask(&["salvage", "list", "--json"]);
        assert!(kept.json.to_string().contains(run), "{kept:?}");
    }
    let outcome = stage.run(&reports("SUCCESS"), &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let result = report(&stage, outcome.text("run_id"), "task_result");
    let gate = &result["gates"]["review_gate"];
    assert_eq!(gate["passed"], Value::Null, "no reviewer was asked");
    assert_eq!(gate["note"], "not reviewed: the run has no reviewer");
    let paths = result["artifacts"].as_array().unwrap().iter();
    let paths: Vec<&str> = paths.filter_map(|row| row["path"].as_str()).collect();
    let tests = report(&stage, outcome.text("run_id"), "test_report");
    for stream in ["stdout", "stderr"] {
        let path = tests["commands"][0][stream]["path"].as_str().unwrap();
        assert!(paths.contains(&path), "{path} is not among {paths:?}");
    }
}

#[test]
fn a_reviewer_has_the_result_and_the_output_of_the_worker() {
    let stage = Stage::new();
    stage.write(
        "agent/reviewer.sh",
        r#"grep -q 'no key here' $PROVOST_WORKER || exit 11
        grep -q 'I ran the tests' $PROVOST_OUTPUT || exit 12
        printf '{"verdict":"PASS","summary":"s","violations":[],"findings":[]}' > $PROVOST_RESULT"#,
    );
    let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
    let more = ["--review-cmd", reviewer.as_str()];
    let ask = Ask {
        more: &more,
        ..Ask::default()
    };
    let outcome = stage.run(&reports("SUCCESS"), &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let gate = &report(&stage, outcome.text("run_id"), "task_result")["gates"]["review_gate"];
    assert_eq!(gate["passed"], true);
}

#[test]
fn skills_that_a_role_refers_to_are_resolved_at_the_base() {
    let stage = stage();
    let agent = stage.agent("echo good > src/a.txt");
    let file = contract(&stage, |it| {
        it["role_contract"] = role_contract("policies/skills.json#worker");
    });
    // Not from the checkout.
    stage.write("repo/policies/skills.json", "{}");
    let ran = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(ran.code(), "OK", "{ran:?}");
    let manifest = stage.evidence(ran.text("run_id"), "manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    let skills = &manifest["role_binding_summary"]["skills_bundle_ref"];
    assert_eq!(skills["status"], "resolved");
    assert_eq!(skills["resolved_skill_set"], json!(["read"]));
}

#[test]
fn a_refused_plan_is_reported_on_standard_error() {
    let stage = stage();
    let planner = stage.agent("echo '{}' > $PROVOST_RESULT");
    let file = contract(&stage, |_| ());
    for words in [vec!["plan", "make it good"], vec!["split", "-f", &file]] {
        let refused = stage.ask(&[&words[..], &["--agent-cmd", &planner]].concat());
        assert_eq!(refused.exit, 1, "{refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
        assert!(
            refused.stderr.contains("error[PLAN_INVALID]"),
            "{refused:?}"
        );
    }
    let empty = json!({ "verdict": "PLAN", "summary": "s", "children": [{ "id": "a",
        "objective": "o", "allow": [], "accept": ["sh check.sh"], "drops": [], "net": [],
        "minutes": 5, "needs": [], "shares": [], "tools": [] }] });
    let planner = stage.agent(&format!("cat > $PROVOST_RESULT <<'END'\n{empty}\nEND\n"));
    let refused = stage.ask(&["split", "-f", &file, "--agent-cmd", &planner, "--json"]);
    assert_eq!(
        code(&refused),
        (1, "PLAN_INVALID".to_owned()),
        "{refused:?}"
    );
}
