use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;
use crate::path::RepoPath;

fn good() -> Value {
    json!({
        "task_id": "task-0001",
        "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
        "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
        "inputs": {
            "spec": "say hello",
            "artifacts": [{
                "name": "output_schema",
                "uri": RESULT_SCHEMA,
                "sha256": sha256(RESULT_SCHEMA_TEXT.as_bytes()),
            }],
        },
        "required_outputs": [{ "name": "patch", "type": "patch", "acceptance": "applies" }],
        "allowed_paths": ["app"],
        "forbidden_actions": [],
        "acceptance_tests": [{ "name": "tests", "cmd": "pytest -q", "must_pass": true }],
        "tool_permissions": {
            "filesystem": "workspace-write", "shell": "never", "network": "deny", "mcp_tools": [],
        },
        "mcp_tool_set": ["none"],
        "timeout_retry": { "timeout_sec": 60, "max_retries": 0, "retry_backoff_sec": 0 },
        "rollback": { "strategy": "worktree_drop", "baseline_ref": "HEAD" },
        "evidence_links": [],
        "log_refs": { "run_id": "run-0001", "paths": {} },
    })
}

fn check(document: &Value) -> String {
    let document = match parse(document.to_string().as_bytes()) {
        Ok(document) => document,
        Err(error) => return error.to_string(),
    };
    match resolve(
        document,
        &CommandPolicy::shipped().unwrap(),
        Trust::FromFile,
    ) {
        Ok(contract) => format!("ok {}", contract.tests.len()),
        Err(problems) => problems
            .iter()
            .map(|problem| format!("{} {}", problem.path, problem.problem))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[test]
fn a_plain_contract_can_be_run() {
    assert_eq!(check(&good()), "ok 1");
}

const PAGE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/contract.md"
));
const MINIMAL: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/examples/contract-minimal.json"
));
const FULL: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/examples/contract-full.json"
));

#[test]
fn the_examples_of_the_page_can_be_run() {
    for (example, tests) in [(MINIMAL, 1), (FULL, 2)] {
        assert!(
            PAGE.contains(&format!("```json\n{example}```")),
            "{example}"
        );
        let document: Value = serde_json::from_str(example).unwrap();
        assert_eq!(check(&document), format!("ok {tests}"));
    }
}

#[test]
fn nothing_of_the_minimal_example_can_be_left_out() {
    let document: Value = serde_json::from_str(MINIMAL).unwrap();
    for field in document.as_object().unwrap().keys() {
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove(field);
        let want = format!("the document: missing field `{field}`");
        assert_eq!(check(&without), want);
    }
}

/// The pointers of all values inside `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_is_on_the_page() {
    let mut found = Vec::new();
    places(&serde_json::from_str(FULL).unwrap(), "", &mut found);
    let prose = PAGE.split("```").step_by(2).collect::<String>();
    for place in found {
        let field = place.rsplit('/').next().unwrap();
        let is_index = field.parse::<usize>().is_ok();
        // Where an author expects logs, and how artifacts are bound, is shown by the example.
        let shown = ["/log_refs/paths/", "/inputs/artifacts/"]
            .iter()
            .any(|it| place.contains(it));
        assert!(is_index || shown || prose.contains(field), "{place}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_in_words_of_the_format() {
    let full: Value = serde_json::from_str(FULL).unwrap();
    let mut found = Vec::new();
    places(&full, "", &mut found);
    let wrong = [
        json!(null),
        json!(-1),
        json!(1.5),
        json!("x"),
        json!([3]),
        json!({"y": 1}),
    ];
    for place in found {
        for value in &wrong {
            let mut document = full.clone();
            *document.pointer_mut(&place).unwrap() = value.clone();
            let got = check(&document);
            let alien = [
                "struct",
                "enum ",
                "expected",
                "invalid type",
                "u64",
                "u32",
                "`.`",
            ];
            let strange = alien.iter().find(|word| got.contains(**word));
            assert_eq!(strange, None, "{place} = {value}: {got}");
        }
    }
}

#[test]
fn each_broken_rule_is_named_with_its_place() {
    let cases: [(&str, Value, &str); 16] = [
        ("/task_id", json!("short"), "/task_id has fewer"),
        ("/task_id", json!("../../escape"), "`task_id`: may hold"),
        ("/inputs/spec", json!("  "), "/inputs/spec is empty"),
        (
            "/assigned_agent/agent_id",
            json!("nobody"),
            "/assigned_agent `nobody`",
        ),
        ("/allowed_paths", json!([]), "/allowed_paths is an empty"),
        (
            "/allowed_paths",
            json!(["app", "**"]),
            "/allowed_paths/1 (`**`)",
        ),
        (
            "/acceptance_tests/0/cmd",
            json!("sh -c id"),
            "/acceptance_tests/0/cmd",
        ),
        (
            "/acceptance_tests/0/must_pass",
            json!(false),
            "/acceptance_tests holds no",
        ),
        (
            "/acceptance_tests",
            json!([]),
            "/acceptance_tests is an empty",
        ),
        (
            "/tool_permissions/filesystem",
            json!("danger-full-access"),
            "must be `read-only` or `workspace-write`",
        ),
        (
            "/tool_permissions/network",
            json!("allow"),
            "/tool_permissions/network `allow` names no hosts",
        ),
        (
            "/tool_permissions/network",
            json!("on-request"),
            "/tool_permissions/network asks for approvals",
        ),
        (
            "/tool_permissions/shell",
            json!("on-request"),
            "/tool_permissions/shell",
        ),
        ("/inputs/artifacts", json!([]), "/inputs/artifacts binds no"),
        (
            "/inputs/artifacts/0/sha256",
            json!("00"),
            "/inputs/artifacts/0/sha256",
        ),
        (
            "/timeout_retry/timeout_sec",
            json!(0),
            "/timeout_retry/timeout_sec",
        ),
    ];
    for (place, value, want) in cases {
        let mut document = good();
        *document.pointer_mut(place).unwrap() = value;
        let got = check(&document);
        assert!(got.contains(want), "{place}: {got}");
    }
}

#[test]
fn the_network_is_what_both_fields_say() {
    let many: Vec<String> = (1..100).map(|port| format!("a:{port}")).collect();
    let cases = [
        (
            "allow",
            json!(["api.example.com:443", "127.0.0.1:8080"]),
            "ok 1",
        ),
        ("deny", json!([]), "ok 1"),
        (
            "allow",
            json!([]),
            "/tool_permissions/network `allow` names no hosts",
        ),
        ("deny", json!(["a.example:1"]), "/x_provost/net names hosts"),
        (
            "allow",
            json!(["*.example:1"]),
            "/x_provost/net/0 (`*.example:1`) holds a wildcard",
        ),
        (
            "allow",
            json!(["a.example:1", "a.example"]),
            "/x_provost/net/1 (`a.example`) names no",
        ),
        ("allow", json!(many), "/x_provost/net names more than 64"),
    ];
    for (network, net, want) in cases {
        let mut document = good();
        document["tool_permissions"]["network"] = json!(network);
        document["x_provost"] = json!({ "net": net });
        let got = check(&document);
        assert!(got.starts_with(want), "{network} {net}: {got}");
        assert!(!got.contains('\n'), "{got}");
    }
}

#[test]
fn what_we_cannot_keep_is_refused() {
    for field in ["handoff_chain", "browser_policy", "runtime_options"] {
        let mut document = good();
        document[field] = json!({});
        assert!(check(&document).contains(field), "{field}");
    }
    let mut document = good();
    document["surprise"] = json!(1);
    let words = check(&document);
    assert!(
        words.starts_with("the document: unknown field `surprise`; `provost schema"),
        "{words}"
    );
    document = good();
    document["rollback"]["surprise"] = json!(1);
    let words = check(&document);
    assert!(
        words.starts_with("`rollback`: unknown field `surprise`; "),
        "{words}"
    );
    document = good();
    document["tool_permissions"]
        .as_object_mut()
        .unwrap()
        .remove("shell");
    assert!(
        check(&document).contains("/tool_permissions/shell"),
        "left out means deny"
    );
}

#[test]
fn the_digest_does_not_depend_on_the_spelling() {
    let document = good();
    let pretty = serde_json::to_vec_pretty(&document).unwrap();
    let one = digest(&parse(&pretty).unwrap());
    assert_eq!(
        one,
        digest(&parse(document.to_string().as_bytes()).unwrap())
    );
}

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
    /assigned_agent/role | "NOBODY" | INPUT_INVALID /assigned_agent/role
    /handoff_chain | {"roles": ["PM", "TECH_LEAD", "WORKER"]} | ROLE_CONTRACT_DRIFT /role_contract/handoff/chain_roles
    /policy_pack | null | INPUT_INVALID /policy_pack
    /allowed_paths | [] | INPUT_INVALID /allowed_paths
    /allowed_paths | ["a", "*", "/c"] | SCOPE_INVALID /allowed_paths/1, SCOPE_INVALID /allowed_paths/2
    /owner_agent/agent_id | "nobody" | AGENT_UNKNOWN /owner_agent
    /acceptance_tests/0/cmd | "sh -c id" | COMMAND_REFUSED /acceptance_tests/0/cmd
    /acceptance_tests/0/must_pass | false | CONTRACT_INVALID /acceptance_tests
    /timeout_retry/timeout_sec | 99999999 | CONTRACT_INVALID /timeout_retry/timeout_sec
    /timeout_retry/max_retries | 11 | INPUT_INVALID /timeout_retry/max_retries
    /inputs/artifacts | [] | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts
    /inputs/artifacts/0/name | "output_schema.pm" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/name
    /inputs/artifacts/0/uri | "other/x.json" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/uri
    /inputs/artifacts/0/sha256 | "SHA" | OUTPUT_SCHEMA_UNBOUND /inputs/artifacts/0/sha256
    /tool_permissions/filesystem | "danger-full-access" | PRIVILEGE_EXCEEDED /tool_permissions/filesystem
    /tool_permissions/shell | "untrusted" | PRIVILEGE_EXCEEDED /tool_permissions/shell, ROLE_CONTRACT_DRIFT /role_contract/tool_permissions/shell
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
    assert_eq!(found[0].problem, "names nobody");
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
        let told: Vec<String> = findings(&broken, Purpose::Format)
            .into_iter()
            .map(|one| one.path)
            .collect();
        for want in wanted {
            let rests = want.starts_with(&place) || place.starts_with(want);
            assert!(
                rests || told.iter().any(|it| it == want),
                "{place}: {told:?}"
            );
        }
        // Nothing is said of what cannot be known.
        let about = |path: &String| {
            path.starts_with(&place)
                || place.starts_with(path.as_str())
                || wanted.contains(&path.as_str())
                || path.starts_with("/role_contract")
        };
        let needless: Vec<&String> = told.iter().filter(|path| !about(path)).collect();
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
