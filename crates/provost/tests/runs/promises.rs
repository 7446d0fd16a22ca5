//! Promises of a contract file, kept by whole runs.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

/// Runs `script` under the minimal contract with `change`.
fn run(stage: &Stage, script: &str, change: impl FnOnce(&mut Value)) -> Outcome {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    ));
    let mut contract: Value = serde_json::from_str(text).unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh sound.sh", "must_pass": true }]);
    contract["forbidden_actions"] = json!(["git push"]);
    change(&mut contract);
    let policy = "[commands]\nallow = [\"sh sound.sh\"]\n";
    stage.commit(&[("provost.toml", policy), ("sound.sh", "exit 0\n")]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent(script);
    stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

fn manifest(stage: &Stage, run: &str) -> Value {
    let bytes = fs::read(stage.evidence(run, "manifest.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn audit(contract: &mut Value) {
    contract["audit_only"] = json!(true);
    contract["tool_permissions"]["filesystem"] = json!("read-only");
}

#[test]
fn an_audit_reads_and_leaves_no_branch() {
    let stage = Stage::new();
    let script = "cat src/a.txt; echo x > src/a.txt; echo x > new; echo wrote";
    let outcome = run(&stage, script, audit);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["branch"], Value::Null);
    assert_eq!(outcome.json["changed_files"], json!([]));
    assert_eq!(stage.git(&["branch", "--list", "provost/*"]), "");
    let run = outcome.text("run_id");
    assert_eq!(stage.verify(run).exit, 0);
    let landed = stage.ask(&["land", run, "--json"]);
    assert_ne!(landed.exit, 0, "{landed:?}");
}

#[test]
fn an_audit_that_changes_something_is_refused() {
    let stage = Stage::new();
    let outcome = run(&stage, "echo good > src/a.txt", |contract| {
        contract["audit_only"] = json!(true);
    });
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("DIFF_REFUSED", 1),
        "{outcome:?}"
    );
    assert_eq!(stage.git(&["branch", "--list", "provost/*"]), "");
}

#[test]
fn a_manifest_says_how_the_role_was_bound_and_what_was_declared() {
    let stage = Stage::new();
    let outcome = run(&stage, "echo good > src/a.txt", |_| {});
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let manifest = manifest(&stage, outcome.text("run_id"));
    let summary = &manifest["role_binding_summary"];
    assert_eq!(summary["execution_authority"], "task_contract");
    assert_eq!(summary["runtime_binding"]["summary"]["runner"], "exec");
    let facts = &manifest["x_provost"]["facts"];
    let want = json!({ "declared": ["git push"], "observed": false, "seen": {} });
    assert_eq!(facts["forbidden_actions"], want);
    let digest = facts["schemas"]["agent_task_result.v1"].as_str();
    assert_eq!(digest.map(str::len), Some(64));
}

#[test]
fn a_schema_that_drifted_and_a_file_that_changed_stop_a_run_before_its_agent() {
    for (change, place) in [
        (
            json!({ "name": "output_schema", "uri": "schemas/agent_task_result.v1.json",
                    "sha256": "0".repeat(64) }),
            "/inputs/artifacts/0/sha256",
        ),
        (
            json!({ "name": "notes", "uri": "docs/readme.md", "sha256": "0".repeat(64) }),
            "/inputs/artifacts/1/sha256",
        ),
    ] {
        let stage = Stage::new();
        let outcome = run(&stage, "echo good > src/a.txt", |contract| {
            let artifacts = contract["inputs"]["artifacts"].as_array_mut().unwrap();
            match change["name"].as_str() {
                Some("notes") => artifacts.push(change.clone()),
                _ => artifacts[0] = change.clone(),
            }
        });
        assert_eq!(outcome.code(), "CONTRACT_INVALID", "{outcome:?}");
        let places: Vec<String> = outcome.findings().into_iter().map(|it| it.1).collect();
        assert_eq!(places, [place], "{outcome:?}");
        assert_eq!(outcome.json["agent_ms"], Value::Null);
    }
}

/// The contract has two commands, one of which need not pass, and each has its own time.
#[test]
fn an_optional_command_that_fails_does_not_head_an_accepted_run() {
    let stage = Stage::new();
    stage.commit(&[("slow.sh", "sleep 0.2; echo done; exit 3\n")]);
    let outcome = run(&stage, "sleep 0.4; echo good > src/a.txt", |contract| {
        let commands = contract["acceptance_tests"].as_array_mut().unwrap();
        let slow = json!({ "name": "slow", "cmd": "bash slow.sh", "must_pass": false });
        commands.push(slow);
    });
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let tests = &outcome.json["tests"];
    assert_eq!(tests["compared_with_base"], "green→green");
    assert_eq!(tests["optional_red"], json!(1));
    let id = outcome.text("run_id");
    let shown = stage.ask(&["show", id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("tests    green→green; 1 optional command red"),
        "{shown}"
    );
    assert!(!shown.contains("still red"), "{shown}");

    let report = fs::read(stage.evidence(id, "reports/test_report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let times = report["x_provost"]["facts"]["times"].as_array().unwrap();
    assert_eq!(report["started_at"], times[0]["started_at"]);
    assert_eq!(report["finished_at"], times[1]["finished_at"]);
    let at = |value: &Value| value.as_str().unwrap().to_owned();
    assert!(
        at(&times[0]["finished_at"]) <= at(&times[1]["started_at"]),
        "{times:?}"
    );
    assert!(
        at(&outcome.json["began"]) < at(&report["started_at"]),
        "{report}"
    );
    let file = stage.path("home/junit.xml").display().to_string();
    let export = ["export", "last", "--as", "junit", "--out", &file];
    assert_eq!(stage.ask(&export).exit, 0);
    let xml = fs::read_to_string(&file).unwrap();
    for row in times {
        let timestamp = format!("timestamp=\"{}\"", at(&row["started_at"]));
        assert!(xml.contains(&timestamp), "{xml}");
    }
    assert_eq!(stage.verify(id).exit, 0);
}

#[test]
fn a_command_that_tests_nothing_waits_for_a_person() {
    let stage = Stage::new();
    let outcome = run(&stage, "echo good > src/a.txt", |contract| {
        contract["acceptance_tests"][0]["cmd"] = json!("pytest --version");
    });
    let (code, exit) = (outcome.code(), outcome.exit);
    assert_eq!((code, exit), ("APPROVAL_NEEDED", 3), "{outcome:?}");
    let outcome = run(&Stage::new(), "echo good > src/a.txt", |contract| {
        contract["acceptance_tests"][0]["cmd"] = json!("git status");
        contract["runtime_options"] = json!({ "strict_acceptance": true });
    });
    assert_eq!(outcome.code(), "CONTRACT_INVALID", "{outcome:?}");
}

#[test]
fn a_command_that_tests_nothing_is_said_to_and_missing_tests_are_not_green() {
    let stage = Stage::new();
    let ask = Ask {
        accept: "git status",
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let shown = stage.ask(&["show", outcome.text("run_id")]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in [
        "nothing was tested",
        "git status passed in ",
        ", and tests nothing",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("green→green"), "{shown}");

    stage.commit(&[("check.sh", "cat src/tests.txt\n"), ("src/tests.txt", "")]);
    let none = stage.run(
        "echo 'Ran 0 tests in 0.1s' > src/tests.txt",
        &Ask::default(),
    );
    assert_eq!(none.code(), "TESTS_FEWER", "{none:?}");
    let shown = stage.ask(&["show", none.text("run_id")]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("tests are missing"), "{shown}");
    assert!(!shown.contains("green→green"), "{shown}");
}
