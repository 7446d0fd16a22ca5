use crate::contract::document::Shell;
use serde_json::{Value, json};

use super::*;

mod additions;
mod checked;
mod roles;

pub(super) fn document() -> Document {
    parse(good().to_string().as_bytes()).unwrap()
}

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

/// The JSON pointers of all values inside `value`.
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
        // The example covers the paths of logs and the artifacts.
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
    let cases: [(&str, Value, &str); 14] = [
        ("/task_id", json!("short"), "/task_id has fewer"),
        ("/task_id", json!("../../escape"), "`task_id`: may hold"),
        ("/inputs/spec", json!("  "), "/inputs/spec is empty"),
        (
            "/assigned_agent/agent_id",
            json!("unknown"),
            "/assigned_agent `unknown`",
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
fn a_list_of_paths_has_an_end() {
    let paths: Vec<String> = (0..=crate::scope::MOST)
        .map(|at| format!("a/{at}"))
        .collect();
    let mut document = good();
    document["allowed_paths"] = json!(paths);
    assert_eq!(
        check(&document),
        "/allowed_paths names more than 10000 paths"
    );
    document["allowed_paths"] = json!(paths[1..]);
    assert!(check(&document).starts_with("ok"));
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
    let strict = json!({ "strict_acceptance": true });
    for (field, value, want) in [
        ("handoff_chain", json!({ "enabled": false }), "ok"),
        (
            "handoff_chain",
            json!({ "enabled": true, "roles": ["PM", "TECH_LEAD", "WORKER"], "max_handoffs": 1 }),
            "/handoff_chain/max_handoffs is 1, and the roles pass work on 2 times",
        ),
        (
            "handoff_chain",
            json!({ "enabled": true, "roles": ["PM", "TECH_LEAD", "WORKER"] }),
            "/handoff_chain/enabled passes work on",
        ),
        ("browser_policy", json!({}), "/browser_policy"),
        ("runtime_options", strict.clone(), "ok"),
        ("audit_only", json!(true), "ok"),
    ] {
        let mut document = good();
        document[field] = value;
        assert!(check(&document).contains(want), "{}", check(&document));
    }
    for idle in [
        "git status",
        "pytest --version",
        "pytest --collect-only",
        "mvn test -DskipTests",
        "cargo test --no-run",
    ] {
        let mut document = good();
        document["acceptance_tests"][0]["cmd"] = json!(idle);
        assert!(check(&document).starts_with("ok"), "{idle}");
        document["runtime_options"] = strict.clone();
        let words = check(&document);
        assert!(words.contains("/acceptance_tests/0/cmd"), "{idle}: {words}");
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
    let read = crate::contract::from_value(&document).unwrap();
    let shell = read.tool_permissions.shell;
    assert_eq!(shell, Shell::Deny, "left out means deny");
}

#[test]
fn the_digest_does_not_depend_on_the_spelling() {
    let document = good();
    let pretty = serde_json::to_vec_pretty(&document).unwrap();
    let one = digest(&parse(&pretty).unwrap()).unwrap();
    assert_eq!(
        one,
        digest(&parse(document.to_string().as_bytes()).unwrap()).unwrap()
    );
}
