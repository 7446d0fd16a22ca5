//! Contracts of every main role, from file to sealed bundle, with an agent that is a command.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};

const POLICY: &str = "[commands]\nallow = [\"sh check.sh\"]\n\
    [approve]\nnet = [\"example.org:443\"]\n";

/// The contract of `role`, which binds the schema of its result and asks for one.
pub(crate) fn contract(stage: &Stage, role: &str, schema: &str) -> Value {
    let text = stage.ask(&["schema", schema]);
    let mut it: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    let agent_id = format!("agent-{}", role.to_lowercase().replace('_', "-"));
    it["assigned_agent"] = json!({ "role": role, "agent_id": agent_id });
    it["inputs"]["artifacts"] = json!([{
        "name": format!("output_schema.{}", role.to_lowercase()),
        "uri": format!("schemas/{schema}.v1.json"),
        "sha256": provost_core::object::sha256(&text.stdout),
    }]);
    it["required_outputs"] =
        json!([{ "name": "result", "type": "json", "acceptance": "fits the schema" }]);
    it["allowed_paths"] = json!(["src/a.txt"]);
    it["acceptance_tests"] = json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    if ["PM", "TECH_LEAD", "REVIEWER"].contains(&role) {
        it["audit_only"] = json!(true);
        it["tool_permissions"]["filesystem"] = json!("read-only");
    }
    if ["SEARCHER", "RESEARCHER"].contains(&role) {
        it["tool_permissions"]["network"] = json!("allow");
        it["x_provost"] = json!({ "net": ["example.org:443"] });
    }
    it
}

/// The result that an agent of `role` leaves.
pub(crate) fn result(role: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    match role {
        "REVIEWER" => json!({
            "run_id": "@RUN@", "task_id": "greeting-0001", "reviewed_at": time,
            "reviewer": { "role": "REVIEWER", "agent_id": "agent-reviewer" },
            "verdict": "PASS", "summary": "fine", "produced_diff": false,
            "scope_check": { "passed": true, "violations": [] }, "evidence": [],
        }),
        "TEST_RUNNER" => json!({
            "run_id": "@RUN@", "task_id": "greeting-0001", "started_at": time,
            "runner": { "role": "TEST_RUNNER", "agent_id": "agent-test-runner" },
            "finished_at": time, "status": "PASS", "commands": [], "artifacts": [],
        }),
        _ => json!({
            "task_id": "greeting-0001", "status": "SUCCESS", "summary": "done",
            "failure": null, "evidence_refs": {},
        }),
    }
}

pub(crate) fn run(stage: &Stage, contract: &Value, result: &Value) -> Outcome {
    stage.write("contract.json", &contract.to_string());
    stage.write("outside/result.json", &result.to_string());
    let reads = contract["audit_only"] == true;
    let work = if reads {
        "true"
    } else {
        "echo good > src/a.txt"
    };
    let script =
        format!("{work}\nsed \"s/@RUN@/$PROVOST_RUN/\" > $PROVOST_RESULT <<'END'\n{result}\nEND\n");
    let agent = stage.agent(&script);
    let file = stage.path("contract.json").display().to_string();
    let words = ["run", "-f", &file, "--agent-cmd", &agent, "--json"];
    let outcome = stage.ask(&words);
    let hint = outcome.json["details"]["hint"].as_str();
    match hint.and_then(|hint| hint.strip_prefix("provost init --trust ")) {
        // The user agrees once that contracts may name the place of the policy.
        Some(digest) => {
            assert_eq!(stage.ask(&["init", "--trust", digest]).exit, 0);
            stage.ask(&words)
        }
        None => outcome,
    }
}

pub(crate) fn stage() -> Stage {
    let stage = Stage::new();
    // Passes on the base as well, where a role that only reads leaves it.
    stage.commit(&[("check.sh", "true\n"), ("provost.toml", POLICY)]);
    stage
}

#[test]
fn every_main_role_runs_with_a_command() {
    let stage = stage();
    for (role, schema) in [
        ("PM", "agent_task_result"),
        ("TECH_LEAD", "agent_task_result"),
        ("WORKER", "agent_task_result"),
        ("REVIEWER", "review_report"),
        ("TEST_RUNNER", "test_report"),
        ("SEARCHER", "agent_task_result"),
        ("RESEARCHER", "agent_task_result"),
    ] {
        let contract = contract(&stage, role, schema);
        let outcome = run(&stage, &contract, &result(role));
        assert_eq!(outcome.code(), "OK", "{role}: {outcome:?}");
        let run_id = outcome.text("run_id");
        assert_eq!(stage.verify(run_id).exit, 0, "{role}");
        let shown = stage.ask(&["show", run_id, "--json"]);
        let model = &shown.json["role_binding_read_model"];
        assert_eq!(model["execution_authority"], "task_contract", "{shown:?}");
        assert_eq!(model["authority"], "contract-derived-read-model");
        let manifest = fs::read(stage.evidence(run_id, "manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(*model, manifest["role_binding_summary"], "{role}");
        assert_eq!(manifest["tasks"][0]["role"], role);
        let summary = &shown.json["role_contract_summary"];
        assert_eq!(summary["execution_authority"], "task_contract");
        assert_eq!(summary["identity"]["role"], role);
        let bound = &summary["output_schema"];
        assert_eq!(bound["uri"], format!("schemas/{schema}.v1.json"));
        assert_eq!(bound["own"], false);
        let kept = fs::read(stage.evidence(run_id, "artifacts/output_schema.json")).unwrap();
        assert_eq!(bound["sha256"], provost_core::object::sha256(&kept));
        // A result of another shape is refused.
        let outcome = run(&stage, &contract, &json!({ "status": "SUCCESS" }));
        assert_eq!(outcome.code(), "OUTPUT_INVALID", "{role}: {outcome:?}");
    }
}

/// Findings with one source and one claim, which its agent calls verified.
fn findings() -> Value {
    json!({
        "sources": [{
            "source_id": "s1", "kind": "webpage", "title": "A page",
            "retrieved_at": "2026-01-01T00:00:00Z", "url": "https://example.org/page",
        }],
        "claims": [{
            "claim_id": "c1", "text": "It is so", "status": "VERIFIED", "confidence": 0.9,
            "supporting_source_ids": ["s1"],
        }],
        "limitations": ["one page only"],
    })
}

#[test]
fn a_search_leaves_its_evidence_and_no_claim_is_verified_by_its_own_agent() {
    let stage = stage();
    let contract = contract(&stage, "SEARCHER", "agent_task_result");
    let mut found = result("SEARCHER");
    found["evidence_refs"] = json!({ "search": findings() });
    let outcome = run(&stage, &contract, &found);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run_id = outcome.text("run_id");
    let bytes = fs::read(stage.evidence(run_id, "reports/evidence_bundle.json")).unwrap();
    let bundle: Value = serde_json::from_slice(&bytes).unwrap();
    let schema = provost_core::schema::find("evidence_bundle")
        .unwrap()
        .schema();
    let misfits = provost_core::schema::validate::validate(&schema, &bundle);
    assert!(misfits.is_empty(), "{misfits:?}");
    assert_eq!(bundle["claims"][0]["status"], "UNVERIFIED", "{bundle}");
    let note = &bundle["sources"][0]["notes"];
    assert_eq!(*note, "the proxy saw no answer of its host");
    assert_eq!(stage.verify(run_id).exit, 0);

    // Without sources nothing was found, and what does not parse is no evidence.
    found["evidence_refs"]["search"]["sources"] = json!([]);
    let outcome = run(&stage, &contract, &found);
    assert_eq!(outcome.code(), "OUTPUT_INVALID", "{outcome:?}");
    let run_id = outcome.text("run_id");
    assert!(
        !stage
            .evidence(run_id, "reports/evidence_bundle.json")
            .exists()
    );
}

#[test]
fn a_search_without_a_place_to_look_is_refused() {
    let stage = stage();
    let mut contract = contract(&stage, "SEARCHER", "agent_task_result");
    contract["tool_permissions"]["network"] = json!("deny");
    contract["x_provost"] = json!({});
    let outcome = run(&stage, &contract, &result("SEARCHER"));
    assert_eq!(outcome.code(), "CONTRACT_INVALID", "{outcome:?}");
    assert!(format!("{outcome:?}").contains("SEARCH_UNAVAILABLE"));
}
