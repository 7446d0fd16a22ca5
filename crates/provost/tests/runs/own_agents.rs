//! Agents and result schemas that a repository brings itself, from file to sealed bundle.

use std::fs;

use serde_json::{Value, json};

use crate::roles::{contract, result, run, stage};
use crate::stage::Stage;

const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["status", "risk"],
  "properties": { "status": { "type": "string" }, "risk": { "enum": ["low", "high"] } }
}
"#;

fn registry() -> String {
    json!({
        "version": "v1",
        "agents": [{ "agent_id": "team-front", "role": "FRONTEND", "codex_home": "",
            "defaults": { "sandbox": "danger-full-access", "approval_policy": "never",
                "network": "allow" } }],
        "role_contracts": { "FRONTEND": { "purpose": "builds the pages" } },
    })
    .to_string()
}

fn own_contract(stage: &Stage) -> Value {
    let mut it = contract(stage, "WORKER", "agent_task_result");
    it["assigned_agent"] = json!({ "role": "FRONTEND", "agent_id": "team-front" });
    it["inputs"]["artifacts"] = json!([{
        "name": "output_schema.frontend", "uri": "schemas/page.json",
        "sha256": provost_core::object::sha256(SCHEMA.as_bytes()),
    }]);
    it
}

#[test]
fn a_repository_brings_its_own_agent_and_schema() {
    let stage = stage();
    let mut it = own_contract(&stage);
    let fits = json!({ "status": "SUCCESS", "risk": "low" });
    // What is only in the checkout counts for nothing.
    stage.write("repo/policies/agent_registry.json", &registry());
    stage.write("repo/schemas/page.json", SCHEMA);
    let early = run(&stage, &it, &fits);
    assert_eq!(early.code(), "CONTRACT_INVALID", "{early:?}");
    let shown = format!("{early:?}");
    assert!(
        shown.contains("AGENT_UNKNOWN") && shown.contains("OUTPUT_SCHEMA_UNBOUND"),
        "{shown}"
    );

    stage.commit(&[]);
    let file = stage.path("contract.json").display().to_string();
    let checked = stage.ask(&["check", "contract", &file, "--json"]);
    assert_eq!(checked.exit, 0, "{checked:?}");
    let summary = &checked.json["role_contract_summary"];
    assert_eq!(summary["identity"]["agent_id"], "team-front", "{checked:?}");
    assert_eq!(summary["purpose"], "builds the pages");
    assert_eq!(summary["execution_authority"], "task_contract");
    assert_eq!(summary["output_schema"]["own"], true);
    // The registry names full access, and the agent has what its role has.
    assert_eq!(summary["tool_permissions"]["filesystem"], "workspace-write");

    let ran = run(&stage, &it, &fits);
    assert_eq!(ran.code(), "OK", "{ran:?}");
    let run_id = ran.text("run_id");
    assert_eq!(stage.verify(run_id).exit, 0);
    assert_eq!(ran.json["role_contract_summary"], *summary);
    let text = |name: &str| fs::read_to_string(stage.evidence(run_id, name)).unwrap();
    assert_eq!(text("artifacts/output_schema.json"), SCHEMA);
    let left: Value = serde_json::from_str(&text("artifacts/agent_result.json")).unwrap();
    assert_eq!(left, fits);
    let replayed = stage.ask(&["replay", run_id, "--json"]);
    assert_eq!(replayed.exit, 0, "{replayed:?}");

    for (left, code) in [
        (result("WORKER"), "OUTPUT_INVALID"),
        (
            json!({ "status": "FAILED", "risk": "low" }),
            "AGENT_REPORTED_FAILURE",
        ),
        (
            json!({ "status": "SUCCESS", "risk": "low", "task_id": "another" }),
            "OUTPUT_INVALID",
        ),
    ] {
        let refused = run(&stage, &it, &left);
        assert_eq!(refused.code(), code, "{left}: {refused:?}");
    }
    it["tool_permissions"]["network"] = json!("allow");
    let refused = run(&stage, &it, &fits);
    assert_eq!(refused.code(), "CONTRACT_INVALID", "{refused:?}");
    assert!(format!("{refused:?}").contains("PRIVILEGE_EXCEEDED"));
}

#[test]
fn a_required_file_has_to_be_in_the_change() {
    let stage = stage();
    let mut it = contract(&stage, "WORKER", "agent_task_result");
    let require = |it: &mut Value, name: &str| {
        it["required_outputs"] = json!([{ "name": name, "type": "file", "acceptance": "there" }]);
    };
    let done = result("WORKER");
    require(&mut it, "src/a.txt");
    assert_eq!(run(&stage, &it, &done).code(), "OK");
    it["allowed_paths"] = json!(["src/a.txt", "src/new.txt"]);
    require(&mut it, "src/new.txt");
    let missing = run(&stage, &it, &done);
    assert_eq!(missing.code(), "OUTPUT_INVALID", "{missing:?}");
    assert_eq!(
        missing.findings(),
        [(String::new(), "src/new.txt".to_owned())]
    );
    // A run could never leave it.
    require(&mut it, "docs/elsewhere.md");
    let refused = run(&stage, &it, &done);
    assert_eq!(refused.code(), "CONTRACT_INVALID", "{refused:?}");
}

#[test]
fn roles_that_have_to_follow_are_there_or_the_contract_is_refused() {
    let stage = stage();
    let mut it = contract(&stage, "WORKER", "agent_task_result");
    it["role_contract"] = json!({
        "identity": { "role": "WORKER", "agent_id": "agent-worker" }, "purpose": "work",
        "system_prompt_ref": null, "skills_bundle_ref": null, "mcp_bundle_ref": null,
        "runtime_binding": { "runner": null, "provider": null, "model": null },
        "tool_permissions": { "filesystem": "workspace-write", "shell": "never",
            "network": "deny" },
        "resolved_mcp_tool_set": ["none"],
        "handoff": { "eligible": true, "required_downstream_roles": ["TEST_RUNNER"],
            "chain_roles": [], "max_handoffs": null },
        "fail_closed_conditions": ["drift"],
    });
    assert_eq!(run(&stage, &it, &result("WORKER")).code(), "OK");
    for role in ["REVIEWER", "OPS"] {
        it["role_contract"]["handoff"]["required_downstream_roles"] = json!([role]);
        let refused = run(&stage, &it, &result("WORKER"));
        assert_eq!(refused.code(), "CONTRACT_INVALID", "{refused:?}");
        assert!(
            format!("{refused:?}").contains("ROLE_CONTRACT_DRIFT"),
            "{refused:?}"
        );
    }
}
