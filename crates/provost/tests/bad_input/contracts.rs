//! A contract in which every field is wrong in turn.

use std::fs;

use provost_core::code::Code;
use serde_json::{Value, json};

use provost_testkit::stage::{Outcome, Stage};

use crate::stage::{Refusal as _, Watched as _, assert_same};

/// A contract with every field, that can be run here.
fn whole() -> Value {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-full.json"
    ));
    let mut contract: Value = serde_json::from_str(text).unwrap();
    contract["allowed_paths"] = json!(["src/new"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "./check.sh", "must_pass": true }]);
    contract["required_outputs"] = json!([]);
    contract["x_provost"]["permit"] = json!({});
    contract["x_provost"]["forbid"] = json!(["src/old"]);
    contract["x_provost"]["shares"] = json!(["src/new"]);
    contract
}

fn stage() -> Stage {
    let stage = crate::stage::stage();
    let policy = "[commands]\nallow = [\"./check.sh\"]\n";
    stage.commit(&[("provost.toml", policy)]);
    stage
}

/// Lets an agent that does its work run under the contract.
fn run(stage: &Stage, contract: &Value, what: &str) -> Outcome {
    let file = stage.path("home/contract.json");
    fs::write(&file, contract.to_string()).unwrap();
    let agent = "sh -c 'echo new > src/new'";
    let words = ["--json", "run", "--agent-cmd", agent, "-f"];
    let words: Vec<&str> = words.into_iter().chain(file.to_str()).collect();
    stage.call(&words, what)
}

/// The same for a contract with which no run begins; nothing but the refusal is written.
fn refused(stage: &Stage, contract: &Value, what: &str) -> Outcome {
    let places = ["repo", "cache", "config/keys"];
    let before = places.map(|place| stage.listing_beside_refusals(place));
    let seen = run(stage, contract, what);
    for (place, before) in places.iter().zip(before) {
        assert_same(&before, &stage.listing_beside_refusals(place), what);
    }
    seen
}

/// Where every value of a document is, groups before what is in them.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = format!("{at}/{name}");
                found.push(place.clone());
                places(value, &place, found);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let place = format!("{at}/{number}");
                found.push(place.clone());
                places(item, &place, found);
            }
        }
        _ => {}
    }
}

/// A value of another kind.
fn another(value: &Value) -> Value {
    match value {
        Value::String(_) => json!(7),
        Value::Number(_) => json!("seven"),
        Value::Bool(_) => json!("yes"),
        Value::Array(_) => json!({ "a": 1 }),
        Value::Object(_) => json!(["a"]),
        Value::Null => json!([[]]),
    }
}

#[test]
fn a_field_of_another_kind_is_refused_by_its_name() {
    let stage = stage();
    let mut all = Vec::new();
    places(&whole(), "", &mut all);
    assert!(all.len() > 50, "{all:?}");
    for place in all {
        let mut contract = whole();
        let value = contract.pointer_mut(&place).unwrap();
        *value = another(value);
        let seen = refused(&stage, &contract, &place);
        assert_eq!(
            seen.verdict(&place),
            (1, Code::ContractInvalid),
            "{place}: {seen:?}"
        );
        let name = place.rsplit('/').find(|name| name.parse::<u8>().is_err());
        assert!(seen.out().contains(name.unwrap()), "{place}: {seen:?}");
    }
}

#[test]
fn a_missing_field_and_an_unknown_field_are_named() {
    let stage = stage();
    let required = [
        "task_id",
        "owner_agent",
        "assigned_agent",
        "inputs",
        "required_outputs",
        "allowed_paths",
        "forbidden_actions",
        "acceptance_tests",
        "tool_permissions",
        "mcp_tool_set",
        "timeout_retry",
        "rollback",
        "evidence_links",
        "log_refs",
    ];
    for name in required {
        let mut contract = whole();
        contract.as_object_mut().unwrap().remove(name);
        let seen = refused(&stage, &contract, name);
        assert_eq!(seen.verdict(name), (1, Code::ContractInvalid), "{name}");
        assert!(seen.out().contains(name), "{name}: {seen:?}");
    }
    for place in [
        "",
        "/x_provost",
        "/x_provost/limits",
        "/rollback",
        "/inputs",
    ] {
        let mut contract = whole();
        contract.pointer_mut(place).unwrap()["surprise"] = json!(1);
        let seen = refused(&stage, &contract, place);
        assert_eq!(seen.verdict(place), (1, Code::ContractInvalid), "{place}");
        assert!(seen.out().contains("surprise"), "{place}: {seen:?}");
    }
}

/// A file that is no contract.
const INVALID: (i32, &str) = (1, "CONTRACT_INVALID");
/// Something that is named and is not there.
const MISSING: (i32, &str) = (2, "NOT_FOUND");
/// A contract that breaks a rule; the code is that of the finding.
const fn breaks(code: &str) -> (i32, &str) {
    (1, code)
}

/// A place, what stands there, and how that is answered.
fn values() -> Vec<(&'static str, Value, (i32, &'static str))> {
    vec![
        ("/task_id", json!(""), INVALID),
        ("/task_id", json!("../up"), INVALID),
        ("/task_type", json!("SING"), INVALID),
        ("/owner_agent/role", json!("KING"), INVALID),
        ("/assigned_agent/role", json!("KING"), INVALID),
        (
            "/assigned_agent/role",
            json!("REVIEWER"),
            breaks("AGENT_UNKNOWN"),
        ),
        ("/inputs/spec", json!(""), breaks("INPUT_INVALID")),
        (
            "/inputs/artifacts",
            json!([]),
            breaks("OUTPUT_SCHEMA_UNBOUND"),
        ),
        (
            "/inputs/artifacts/0/sha256",
            json!("00"),
            breaks("INPUT_INVALID"),
        ),
        (
            "/inputs/artifacts/0/sha256",
            json!("0".repeat(64)),
            breaks("OUTPUT_SCHEMA_UNBOUND"),
        ),
        (
            "/inputs/artifacts/0/uri",
            json!("schemas/none.json"),
            breaks("OUTPUT_SCHEMA_UNBOUND"),
        ),
        ("/allowed_paths", json!([]), breaks("INPUT_INVALID")),
        ("/allowed_paths/0", json!(""), breaks("INPUT_INVALID")),
        ("/allowed_paths/0", json!("."), breaks("SCOPE_INVALID")),
        ("/allowed_paths/0", json!("/etc"), breaks("SCOPE_INVALID")),
        ("/allowed_paths/0", json!("../up"), breaks("SCOPE_INVALID")),
        (
            "/allowed_paths/0",
            json!(".git/hooks"),
            breaks("SCOPE_INVALID"),
        ),
        ("/allowed_paths/0", json!("src/*"), breaks("SCOPE_INVALID")),
        ("/acceptance_tests", json!([]), breaks("INPUT_INVALID")),
        (
            "/acceptance_tests/0/cmd",
            json!(""),
            breaks("COMMAND_REFUSED"),
        ),
        (
            "/acceptance_tests/0/cmd",
            json!("./check.sh; rm -r ."),
            breaks("COMMAND_REFUSED"),
        ),
        (
            "/acceptance_tests/0/cmd",
            json!("curl example.org"),
            breaks("COMMAND_REFUSED"),
        ),
        (
            "/acceptance_tests/0/cmd",
            json!("sh -c true"),
            breaks("COMMAND_REFUSED"),
        ),
        (
            "/acceptance_tests/0/must_pass",
            json!(false),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/tool_permissions/filesystem",
            json!("danger-full-access"),
            INVALID,
        ),
        (
            "/tool_permissions/filesystem",
            json!("read-only"),
            breaks("CONTRACT_INVALID"),
        ),
        ("/tool_permissions/filesystem", json!("all"), INVALID),
        (
            "/tool_permissions/shell",
            json!("on-request"),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/tool_permissions/network",
            json!("allow"),
            breaks("PRIVILEGE_EXCEEDED"),
        ),
        (
            "/tool_permissions/mcp_tools",
            json!(["search"]),
            breaks("TOOL_REFUSED"),
        ),
        ("/mcp_tool_set", json!([]), breaks("INPUT_INVALID")),
        ("/mcp_tool_set", json!(["search"]), breaks("TOOL_REFUSED")),
        (
            "/timeout_retry/timeout_sec",
            json!(0),
            breaks("INPUT_INVALID"),
        ),
        ("/timeout_retry/timeout_sec", json!(-1), INVALID),
        ("/timeout_retry/timeout_sec", json!(1e12), INVALID),
        (
            "/timeout_retry/max_retries",
            json!(11),
            breaks("INPUT_INVALID"),
        ),
        (
            "/timeout_retry/retry_backoff_sec",
            json!(1_000_000),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/rollback/strategy",
            json!("git_revert_commit"),
            breaks("CONTRACT_INVALID"),
        ),
        ("/rollback/strategy", json!("hope"), INVALID),
        ("/rollback/baseline_ref", json!(""), MISSING),
        ("/rollback/baseline_ref", json!("nowhere"), MISSING),
        ("/rollback/baseline_ref", json!("HEAD^{tree}"), MISSING),
        ("/rollback/baseline_ref", json!("HEAD:check.sh"), MISSING),
        ("/rollback/baseline_ref", json!("--all"), MISSING),
        ("/policy_pack", json!("none"), INVALID),
        (
            "/handoff_chain",
            json!({"enabled":true}),
            breaks("CONTRACT_INVALID"),
        ),
        ("/browser_policy", json!({}), breaks("CONTRACT_INVALID")),
        ("/x_provost/target", json!("nowhere"), MISSING),
        ("/x_provost/target", json!(""), MISSING),
        ("/x_provost/tier", json!("none"), breaks("CONTRACT_INVALID")),
        (
            "/x_provost/shares/0",
            json!("src/other"),
            breaks("SCOPE_INVALID"),
        ),
        (
            "/x_provost/forbid/0",
            json!("../up"),
            breaks("SCOPE_INVALID"),
        ),
        (
            "/x_provost/permit/oracle",
            json!(["/etc"]),
            breaks("SCOPE_INVALID"),
        ),
        (
            "/x_provost/net",
            json!(["example.org"]),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/net",
            json!(["example.org:443"]),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/memory_bytes",
            json!(1),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/processes",
            json!(0),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/disk_bytes",
            json!(0),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/inodes",
            json!(0),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/output_bytes",
            json!(0),
            breaks("CONTRACT_INVALID"),
        ),
        (
            "/x_provost/limits/no_progress_sec",
            json!(0),
            breaks("CONTRACT_INVALID"),
        ),
    ]
}

/// Shows that the answer is `want`, and that its words name `place`.
fn check(seen: &Outcome, place: &str, want: (i32, &str), what: &str) {
    let answer = &seen.json;
    let code = match want {
        (1, _) if answer["verdict"].is_object() => {
            assert_eq!(answer["verdict"]["code"], "CONTRACT_INVALID", "{what}");
            let findings = answer["verdict"]["details"]["findings"].as_array();
            let about = |row: &&Value| row["path"].as_str().unwrap().starts_with(place);
            let found = findings.unwrap().iter().find(about);
            let found = found.or_else(|| findings.unwrap().first());
            found.unwrap()["code"].clone()
        }
        _ => answer["code"].clone(),
    };
    let got = (seen.exit, code.as_str().unwrap());
    assert_eq!(got, want, "{what}: {answer}");
}

#[test]
fn a_value_that_breaks_a_rule_is_refused_before_an_agent_begins() {
    let stage = stage();
    for (place, value, want) in values() {
        let mut contract = whole();
        let (parent, name) = place.rsplit_once('/').unwrap();
        let parent = contract.pointer_mut(parent).unwrap();
        match name.parse::<usize>() {
            Ok(number) => parent[number] = value.clone(),
            Err(_) => parent[name] = value.clone(),
        }
        let what = format!("{place} = {value}");
        let before = stage.checkout("repo");
        // What breaks a rule is a refusal with a bundle of its own; the rest begins nothing.
        let seen = match want {
            (1, _) => run(&stage, &contract, &what),
            _ => refused(&stage, &contract, &what),
        };
        check(&seen, place, want, &what);
        assert_same(&before, &stage.checkout("repo"), &what);
        stage.assert_nothing_is_held("repo", &what);
    }
    let refs = stage.git(&["for-each-ref", "refs/provost/runs", "refs/heads/provost"]);
    assert_eq!(refs, "", "an agent has worked");
    if stage.has_sandbox() {
        let seen = run(&stage, &whole(), "the whole one");
        assert_eq!(seen.exit, 0, "{seen:?}");
    }
}
