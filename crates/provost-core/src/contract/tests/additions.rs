//! Agents and schemas of a repository: they name and shape, and never give a right.

use std::collections::BTreeMap;

use super::*;
use crate::contract::additions::{Additions, AdditionsFrom};
use crate::path::RepoPath;

type Files = BTreeMap<&'static str, String>;

const SCHEMA: &str =
    r#"{"type":"object","required":["risk"],"properties":{"risk":{"type":"string"}}}"#;

fn registry(agents: &Value) -> String {
    json!({ "version": "v1", "agents": agents }).to_string()
}

fn agent(id: &str, role: &str, sandbox: &str) -> Value {
    json!({ "agent_id": id, "role": role, "codex_home": "", "defaults":
        { "sandbox": sandbox, "approval_policy": "never", "network": "allow" } })
}

/// The codes and places of what is wrong with `value` at a base with `files`.
fn found(value: &Value, files: &Files) -> Vec<(Code, String)> {
    let policy = CommandPolicy::shipped().unwrap();
    let read = |path: &RepoPath| {
        files
            .get(path.as_str())
            .map(|text| text.clone().into_bytes())
    };
    let rules = check::Rules {
        policy: &policy,
        trust: Trust::FromFile,
        purpose: check::Purpose::Run,
        additions: AdditionsFrom::Base(&read),
    };
    let document = from_value(value).unwrap();
    let recorded = Additions::of(&document, &read);
    let found = resolve_by(document.clone(), &rules)
        .err()
        .unwrap_or_default();
    // A run judges by what its first event holds, and comes to the same.
    let text = serde_json::to_string(&recorded).unwrap();
    let again: Additions = serde_json::from_str(&text).unwrap();
    assert_eq!(again, recorded);
    let of_run = check::Rules {
        additions: AdditionsFrom::Record(&again),
        ..rules
    };
    assert_eq!(
        resolve_by(document, &of_run).err().unwrap_or_default(),
        found
    );
    found.into_iter().map(|it| (it.code, it.path)).collect()
}

fn assigned(id: &str, role: &str) -> Value {
    let mut value = good();
    value["assigned_agent"] = json!({ "role": role, "agent_id": id });
    value
}

#[test]
fn a_registry_names_agents_and_gives_them_no_right() {
    let at = |place: &str| place.to_owned();
    let own = |agents: Value| Files::from([("policies/agent_registry.json", registry(&agents))]);
    let unknown = vec![(Code::AgentUnknown, at("/assigned_agent"))];
    let filesystem = (Code::PrivilegeExceeded, at("/tool_permissions/filesystem"));
    let none = Files::new();
    let mine = || assigned("team-front", "FRONTEND");
    assert_eq!(found(&mine(), &none), unknown);
    let entry = agent("team-front", "FRONTEND", "workspace-write");
    assert_eq!(found(&mine(), &own(json!([entry]))), []);
    // The pair of name and role counts.
    assert_eq!(
        found(&assigned("team-front", "BACKEND"), &own(json!([entry]))),
        unknown
    );
    // An entry takes rights away, from agents that are shipped as well.
    let narrow = own(json!([agent("agent-worker", "WORKER", "read-only")]));
    assert_eq!(found(&good(), &narrow), std::slice::from_ref(&filesystem));
    // It gives none: neither full access nor the network, and no file to a role that only reads.
    let full = own(json!([agent(
        "team-front",
        "FRONTEND",
        "danger-full-access"
    )]));
    assert_eq!(found(&mine(), &full), []);
    let mut reaching = mine();
    reaching["tool_permissions"]["network"] = json!("allow");
    let network = (Code::PrivilegeExceeded, at("/tool_permissions/network"));
    assert_eq!(found(&reaching, &full), [network]);
    let wide = own(json!([agent("team-pm", "PM", "danger-full-access")]));
    let found_at = found(&assigned("team-pm", "PM"), &wide);
    assert!(found_at.contains(&filesystem), "{found_at:?}");
    // A registry that cannot be used refuses every contract.
    for text in ["{", "{}", &registry(&json!([])), &"x".repeat(300 * 1024)] {
        let files = Files::from([("policies/agent_registry.json", text.to_owned())]);
        assert_eq!(found(&good(), &files), unknown, "{text:.40}");
    }
}

#[test]
fn an_agent_of_the_repository_is_an_agent_as_an_author() {
    let mut value = good();
    value["allowed_paths"] = json!(["src"]);
    value["x_provost"] = json!({ "author": "team-front" });
    assert_eq!(found(&value, &Files::new()), []);
    let entry = agent("team-front", "FRONTEND", "workspace-write");
    let files = Files::from([("policies/agent_registry.json", registry(&json!([entry])))]);
    let broad = (Code::PrivilegeExceeded, "/allowed_paths/0".to_owned());
    assert_eq!(found(&value, &files), [broad]);
}

#[test]
fn a_schema_of_the_base_is_bound_by_its_digest() {
    let bound = |uri: &str, text: &str| {
        let mut value = good();
        value["inputs"]["artifacts"] = json!([{
            "name": "output_schema", "uri": uri, "sha256": sha256(text.as_bytes()),
        }]);
        value
    };
    let files = |text: &str| Files::from([("schemas/own.json", text.to_owned())]);
    let refused = |field: &str| {
        let place = format!("/inputs/artifacts/0/{field}");
        vec![(Code::OutputSchemaUnbound, place)]
    };
    let uri = "schemas/own.json";
    assert_eq!(found(&bound(uri, SCHEMA), &files(SCHEMA)), []);
    assert_eq!(found(&bound(uri, SCHEMA), &Files::new()), refused("uri"));
    assert_eq!(found(&bound(uri, "{}"), &files(SCHEMA)), refused("sha256"));
    let loose = r#"{"type":"object","if":{}}"#;
    assert_eq!(found(&bound(uri, loose), &files(loose)), refused("uri"));
    // A file elsewhere is no schema, whatever it holds.
    let elsewhere = Files::from([("docs/own.json", SCHEMA.to_owned())]);
    assert_eq!(
        found(&bound("docs/own.json", SCHEMA), &elsewhere),
        refused("uri")
    );
}

#[test]
fn a_role_view_agrees_with_the_registry_and_with_itself() {
    let view = |eligible: bool, follows: &[&str], purpose: &str| {
        json!({
            "identity": { "role": "WORKER", "agent_id": "agent-worker" }, "purpose": purpose,
            "system_prompt_ref": null, "skills_bundle_ref": null, "mcp_bundle_ref": null,
            "runtime_binding": { "runner": null, "provider": null, "model": null },
            "tool_permissions": { "filesystem": "workspace-write", "shell": "never",
                "network": "deny" },
            "resolved_mcp_tool_set": ["none"],
            "handoff": { "eligible": eligible, "required_downstream_roles": follows,
                "chain_roles": [], "max_handoffs": null },
            "fail_closed_conditions": ["drift"],
        })
    };
    let terms = json!({ "version": "v1", "agents": [agent("a", "WORKER", "read-only")],
        "role_contracts": { "WORKER": { "purpose": "work", "handoff_eligible": true,
            "required_downstream_roles": ["REVIEWER"] } } });
    let files = Files::from([("policies/agent_registry.json", terms.to_string())]);
    let places = |view: &Value, files: &Files| -> Vec<String> {
        let mut value = good();
        value["role_contract"] = view.clone();
        let found = found(&value, files).into_iter();
        found.map(|(code, path)| format!("{code} {path}")).collect()
    };
    let place = |field: &str| format!("ROLE_CONTRACT_DRIFT /role_contract/{field}");
    assert_eq!(places(&view(true, &["REVIEWER"], "work"), &files), [""; 0]);
    assert_eq!(
        places(&view(true, &["REVIEWER"], "play"), &files),
        [place("purpose")]
    );
    let follows = place("handoff/required_downstream_roles");
    assert_eq!(
        places(&view(true, &[], "work"), &files),
        std::slice::from_ref(&follows)
    );
    let eligible = place("handoff/eligible");
    assert_eq!(
        places(&view(false, &[], "work"), &files),
        [eligible, follows.clone()]
    );
    assert_eq!(
        places(&view(false, &["REVIEWER"], "any"), &Files::new()),
        [follows]
    );
}
