//! What a check finds, and that a run finds the same.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;
use crate::path::RepoPath;

/// The resolved view of the role of a good contract.
fn view() -> Value {
    json!({
        "identity": { "role": "WORKER", "agent_id": "agent-worker" },
        "purpose": "work",
        "system_prompt_ref": "policies/worker.md",
        "skills_bundle_ref": "policies/skills.json#worker",
        "mcp_bundle_ref": null,
        "runtime_binding": { "runner": null, "provider": null, "model": null },
        "tool_permissions": {
            "filesystem": "workspace-write", "shell": "never", "network": "deny",
        },
        "resolved_mcp_tool_set": ["none"],
        "handoff": {
            "eligible": false, "required_downstream_roles": [], "chain_roles": [],
            "max_handoffs": null,
        },
        "fail_closed_conditions": ["anything is missing"],
    })
}

static POLICY: LazyLock<CommandPolicy> = LazyLock::new(|| CommandPolicy::shipped().unwrap());

fn findings(document: &Value, purpose: Purpose) -> Vec<Problem> {
    let rules = Rules {
        policy: &POLICY,
        trust: Trust::FromFile,
        purpose,
        additions: AdditionsFrom::Nowhere,
    };
    check::check(document, &rules)
}

/// The findings about a good contract in which `place` is something else.
fn found(place: &str, value: Value) -> Vec<String> {
    let mut document = good();
    document["role_contract"] = view();
    match document.pointer_mut(place) {
        Some(here) => *here = value,
        None => document[place.trim_start_matches('/')] = value,
    }
    findings(&document, Purpose::Format)
        .into_iter()
        .map(|finding| format!("{} {}", finding.code, finding.path))
        .collect()
}

/// Place, what is put there, and the findings about it.
const FINDINGS: &str = r#"
    /parent_task_id | "task-0000" |
    /task_id | "short" | INPUT_INVALID /task_id
    /task_id | "../../escape" | CONTRACT_INVALID /task_id
    /color | "red" | INPUT_INVALID /color
    /owner_agent/role | 7 | INPUT_INVALID /owner_agent/role
    /assigned_agent/role | "NO_SUCH" | INPUT_INVALID /assigned_agent/role
    /handoff_chain | {"roles": ["PM", "TECH_LEAD", "WORKER"]} | ROLE_CONTRACT_DRIFT /role_contract/handoff/chain_roles
    /policy_pack | null | INPUT_INVALID /policy_pack
    /allowed_paths | [] | INPUT_INVALID /allowed_paths
    /allowed_paths | ["a", "*", "/c"] | SCOPE_INVALID /allowed_paths/1, SCOPE_INVALID /allowed_paths/2
    /owner_agent/agent_id | "unknown" | AGENT_UNKNOWN /owner_agent
    /acceptance_tests/0/cmd | "sh -c id" | COMMAND_REFUSED /acceptance_tests/0/cmd
    /acceptance_tests/0/must_pass | false | CONTRACT_INVALID /acceptance_tests
    /timeout_retry/timeout_sec | 99999999 | CONTRACT_INVALID /timeout_retry/timeout_sec
    /timeout_retry/max_retries | 11 | INPUT_INVALID /timeout_retry/max_retries
    /inputs/artifacts | [] | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts
    /inputs/artifacts/0/name | "output_schema.pm" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/name
    /inputs/artifacts/0/uri | "other/x.json" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/uri
    /inputs/artifacts/0/sha256 | "SHA" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/sha256
    /tool_permissions/filesystem | "danger-full-access" | PRIVILEGE_EXCEEDED /tool_permissions/filesystem
    /tool_permissions/shell | "untrusted" | ROLE_CONTRACT_DRIFT /role_contract/tool_permissions/shell
    /role_contract/identity/agent_id | "x" | ROLE_CONTRACT_DRIFT /role_contract/identity/agent_id
    /role_contract/resolved_mcp_tool_set | [] | ROLE_CONTRACT_DRIFT /role_contract/resolved_mcp_tool_set
    /role_contract/handoff/chain_roles | ["PM"] | ROLE_CONTRACT_DRIFT /role_contract/handoff/chain_roles
    /role_contract/system_prompt_ref | "../x" | ROLE_CONTRACT_DRIFT /role_contract/system_prompt_ref
    /role_contract/purpose | 1 | INPUT_INVALID /role_contract/purpose
"#;

#[test]
fn a_finding_about_a_contract_has_a_code_and_a_place() {
    for row in FINDINGS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let value = cells[1].replace("SHA", &"ab".repeat(32));
        let value = serde_json::from_str(&value).unwrap();
        assert_eq!(found(cells[0], value).join(", "), cells[2], "{row}");
    }
}

#[test]
fn a_chain_of_roles_goes_forward_from_owner_to_worker() {
    let cases = [
        (json!(["PM", "TECH_LEAD", "WORKER"]), ""),
        (json!(["PM", "TECH_LEAD", "BACKEND", "WORKER"]), ""),
        (
            json!(["TECH_LEAD", "WORKER"]),
            "/handoff_chain/roles/0 is not PM, the owner",
        ),
        (
            json!(["PM", "WORKER"]),
            "/handoff_chain/roles/1 skips TECH_LEAD",
        ),
        (
            json!(["PM", "TECH_LEAD", "WORKER", "REVIEWER"]),
            "/handoff_chain/roles/3 is not WORKER, who is assigned",
        ),
        (
            json!(["PM", "TECH_LEAD", "BACKEND", "SEARCHER", "WORKER"]),
            "/handoff_chain/roles/3 does not come after BACKEND",
        ),
        (
            json!(["PM", "TECH_LEAD", "TECH_LEAD", "WORKER"]),
            "/handoff_chain/roles/2 does not come after TECH_LEAD",
        ),
    ];
    for (roles, want) in cases {
        let mut document = good();
        document["handoff_chain"] = json!({ "roles": roles });
        let found = findings(&document, Purpose::Format);
        let lines: Vec<String> = found
            .iter()
            .map(|one| format!("{} {}", one.path, one.problem))
            .collect();
        assert_eq!(lines.join("\n"), want);
    }
    let mut document = good();
    document["handoff_chain"] = json!({ "enabled": true });
    let found = findings(&document, Purpose::Format);
    assert_eq!(found[0].problem, "names no role");
}

#[test]
fn a_broad_path_is_advice_for_a_person_and_a_refusal_for_an_agent() {
    let mut document = good();
    document["allowed_paths"] = json!(["app", "./src/"]);
    let read = |_: &RepoPath| None;
    let rules = Rules {
        policy: &POLICY,
        trust: Trust::FromFile,
        purpose: Purpose::Run,
        additions: AdditionsFrom::Nowhere,
    };
    let verdict = check::judge(&document, &rules, &read);
    assert!(verdict.allow);
    let details = verdict.details.unwrap();
    assert_eq!(details["advice"][0]["path"], "/allowed_paths/1");
    for author in ["agent", "agent-worker"] {
        document["x_provost"] = json!({ "author": author });
        let found = findings(&document, Purpose::Format);
        assert_eq!(found[0].code, Code::PrivilegeExceeded);
        assert_eq!(found[0].path, "/allowed_paths/1");
    }
    document["allowed_paths"] = json!(["src/app"]);
    assert!(findings(&document, Purpose::Format).is_empty());
}

/// The bytes of a file, if it is there.
type File = Option<&'static [u8]>;

const HUGE: &[u8] = &[b' '; check::LARGEST_REFERENCE + 1];

#[test]
fn what_a_role_refers_to_has_to_be_there() {
    let mut document = good();
    document["role_contract"] = view();
    let document: Document = crate::json::from_value(document).unwrap();
    let look = |prompt: File, skills: File| {
        let read = |path: &RepoPath| match path.as_str() {
            "policies/worker.md" => prompt.map(<[u8]>::to_vec),
            "policies/skills.json" => skills.map(<[u8]>::to_vec),
            other => panic!("{other} was not asked for"),
        };
        let found = check::references(&document, &read);
        let line = |one: &Problem| format!("{} {}", one.path, one.problem);
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let skills: File = Some(br#"{"worker": ["read"]}"#);
    assert_eq!(look(Some(b"be good"), skills), "");
    let cases: [(File, File, &str); 6] = [
        (None, skills, "system_prompt_ref there is no file"),
        (
            Some(HUGE),
            skills,
            "system_prompt_ref `policies/worker.md` has more than",
        ),
        (Some(b""), None, "skills_bundle_ref there is no file"),
        (
            Some(b""),
            Some(b"{}"),
            "skills_bundle_ref `policies/skills.json` has no list",
        ),
        (
            Some(b""),
            Some(br#"{"worker": []}"#),
            "has no list `worker`",
        ),
        (Some(b""), Some(b"nothing"), "line 1"),
    ];
    for (prompt, skills, want) in cases {
        let got = look(prompt, skills);
        assert!(got.contains(want), "{got}: {want}");
    }
}

/// The pointers of every leaf and branch of a contract that has everything.
fn whole() -> (Value, Vec<String>) {
    let mut document: Value = serde_json::from_str(FULL).unwrap();
    document["role_contract"] = view();
    let mut found = Vec::new();
    places(&document, "", &mut found);
    (document, found)
}

#[test]
fn a_part_that_cannot_be_read_does_not_hide_the_others() {
    let (mut document, found) = whole();
    document["allowed_paths"] = json!(["src", "*"]);
    document["acceptance_tests"][1]["cmd"] = json!("sh -c id");
    let wanted = ["/allowed_paths/1", "/acceptance_tests/1/cmd"];
    for place in found {
        if place.is_empty() || document.pointer(&place).is_none() {
            continue;
        }
        let mut broken = document.clone();
        *broken.pointer_mut(&place).unwrap() = json!({ "surprise": 1 });
        let reported: Vec<String> = findings(&broken, Purpose::Format)
            .into_iter()
            .map(|one| one.path)
            .collect();
        for want in wanted {
            let rests = want.starts_with(&place) || place.starts_with(want);
            assert!(
                rests || reported.iter().any(|it| it == want),
                "{place}: {reported:?}"
            );
        }
        // There are no findings about parts that cannot be known.
        let about = |path: &String| {
            path.starts_with(&place)
                || place.starts_with(path.as_str())
                || wanted.contains(&path.as_str())
                || path.starts_with("/role_contract")
        };
        let needless: Vec<&String> = reported.iter().filter(|path| !about(path)).collect();
        assert!(needless.is_empty(), "{place}: {needless:?}");
    }
}

#[test]
fn a_check_and_a_run_never_disagree() {
    let (document, found) = whole();
    let others = [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!("allow"),
        json!("deny"),
        json!(true),
        json!(["src"]),
        json!("read-only"),
        json!("REVIEWER"),
    ];
    for place in found {
        for other in &others {
            let mut changed = document.clone();
            *changed.pointer_mut(&place).unwrap() = other.clone();
            let checked = findings(&changed, Purpose::Run).is_empty();
            let run = from_value(&changed)
                .is_ok_and(|document| resolve(document, &POLICY, Trust::FromFile).is_ok());
            assert_eq!(checked, run, "{place} = {other}");
        }
    }
}

#[test]
fn a_reviewer_gets_what_reviewers_get() {
    let mut document = good();
    document["assigned_agent"] = json!({ "role": "REVIEWER", "agent_id": "agent-reviewer" });
    let codes = |document: &Value| -> Vec<String> {
        findings(document, Purpose::Format)
            .iter()
            .map(|one| format!("{} {}", one.code, one.path))
            .collect()
    };
    let want = [
        "OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/uri",
        "PRIVILEGE_EXCEEDED /tool_permissions/filesystem",
    ];
    assert_eq!(codes(&document), want);
    document["tool_permissions"]["filesystem"] = json!("read-only");
    let schema = crate::schema::find("review_report").unwrap().text();
    document["inputs"]["artifacts"][0] = json!({
        "name": "output_schema.reviewer",
        "uri": "schemas/review_report.v1.json",
        "sha256": sha256(schema.as_bytes()),
    });
    assert_eq!(codes(&document), Vec::<String>::new());
}

#[test]
fn a_document_that_is_no_contract_has_findings_and_a_verdict() {
    for document in [json!(null), json!([]), json!("x"), json!({})] {
        let verdict = judge(&findings(&document, Purpose::Run));
        assert!(!verdict.allow, "{document}");
        assert_eq!(verdict.code, Code::ContractInvalid);
    }
}
