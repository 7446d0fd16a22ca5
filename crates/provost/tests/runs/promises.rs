//! Promises of a contract file, kept by whole runs.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Outcome, Scene};

/// Runs `script` under the minimal contract with `change`.
fn run(scene: &Scene, script: &str, change: impl FnOnce(&mut Value)) -> Outcome {
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
    scene.commit(&[("provost.toml", policy), ("sound.sh", "exit 0\n")]);
    scene.write("contract.json", &contract.to_string());
    let file = scene.path("contract.json").display().to_string();
    let agent = scene.agent(script);
    scene.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

fn manifest(scene: &Scene, run: &str) -> Value {
    let bytes = fs::read(scene.evidence(run, "manifest.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn audit(contract: &mut Value) {
    contract["audit_only"] = json!(true);
    contract["tool_permissions"]["filesystem"] = json!("read-only");
}

#[test]
fn an_audit_reads_and_leaves_no_branch() {
    let scene = Scene::new();
    let script = "cat src/a.txt; echo x > src/a.txt; echo x > new; echo wrote";
    let outcome = run(&scene, script, audit);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["branch"], Value::Null);
    assert_eq!(outcome.json["changed_files"], json!([]));
    assert_eq!(scene.git(&["branch", "--list", "provost/*"]), "");
    let run = outcome.text("run_id");
    assert_eq!(scene.verify(run).exit, 0);
    let landed = scene.ask(&["land", run, "--json"]);
    assert_ne!(landed.exit, 0, "{landed:?}");
}

#[test]
fn an_audit_that_changes_something_is_refused() {
    let scene = Scene::new();
    let outcome = run(&scene, "echo good > src/a.txt", |contract| {
        contract["audit_only"] = json!(true);
    });
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("DIFF_REFUSED", 1),
        "{outcome:?}"
    );
    assert_eq!(scene.git(&["branch", "--list", "provost/*"]), "");
}

#[test]
fn a_manifest_says_how_the_role_was_bound_and_what_was_declared() {
    let scene = Scene::new();
    let outcome = run(&scene, "echo good > src/a.txt", |_| {});
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let manifest = manifest(&scene, outcome.text("run_id"));
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
        let scene = Scene::new();
        let outcome = run(&scene, "echo good > src/a.txt", |contract| {
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
