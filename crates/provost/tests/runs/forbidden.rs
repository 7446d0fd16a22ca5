//! Programs that may not run in the sandbox of an agent.

use serde_json::{Value, json};

use crate::stage::{Ask, Stage, is_root, lacks};

/// Starts a program by its name, its path, and a link to it, and from a copy.
const WORK: &str = "echo good > src/a.txt
    ssh -V; echo by-name $?
    /usr/bin/ssh -V; echo by-path $?
    ln -s /usr/bin/ssh /tmp/other; /tmp/other -V; echo by-link $?
    cp /usr/bin/ssh /tmp/copy; /tmp/copy -V; echo by-copy $?
    cat /run/provost/reports; chmod 600 /run/provost/reports; echo ssh > /usr/bin/ssh
    printf 'rm\\n' > /run/provost/reports
    git --version; true";

fn violation(stage: &Stage, run: &str) -> Value {
    let ledger = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<Value> = events
        .filter(|event| event["event_type"] == "policy_violation")
        .collect();
    assert_eq!(found.len(), 1, "{ledger}");
    found[0]["payload"].clone()
}

fn check(stage: &Stage) {
    let outcome = stage.run(WORK, &Ask::default());
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let printed = stage.printed();
    for way in ["by-name 126", "by-path 126", "by-link 126", "by-copy 126"] {
        assert!(printed.contains(way), "{printed}");
    }
    assert!(printed.contains("FORBIDDEN_ACTION: `ssh`"), "{printed}");
    assert!(printed.contains("git version"), "{printed}");
    let run = outcome.text("run_id");
    // A copy of the stub has a name of its own, so its call is no report.
    let payload = violation(stage, run);
    assert_eq!(payload["programs"], json!({ "ssh": 3 }), "{payload}");
    assert_eq!(payload["program"], "agent");
    assert_eq!(stage.verify(run).exit, 0);
    let shown = stage.ask(&["show", "--json", run]).json;
    assert_eq!(shown["forbidden"]["ssh"], 3, "{shown}");
}

#[test]
fn a_forbidden_program_is_stopped_by_name_path_and_link() {
    if lacks("ssh") {
        return;
    }
    check(&Stage::new());
    if is_root() && !lacks("setpriv") {
        let stage = Stage::of_nobody();
        stage.copy_binary();
        check(&stage);
    }
}

#[test]
fn a_program_that_only_the_contract_names_is_stopped_for_its_agent_and_not_for_its_commands() {
    let stage = Stage::new();
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    ));
    let mut contract: Value = serde_json::from_str(text).unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh sound.sh", "must_pass": true }]);
    contract["forbidden_actions"] = json!(["seq", "do not add a dependency"]);
    let policy = "[commands]\nallow = [\"sh sound.sh\"]\n";
    stage.commit(&[("provost.toml", policy), ("sound.sh", "seq 1\n")]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent("echo good > src/a.txt; seq 1 || echo refused $?");
    let outcome = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert!(stage.printed().contains("refused 126"), "{outcome:?}");
    let payload = violation(&stage, outcome.text("run_id"));
    assert_eq!(payload["programs"], json!({ "seq": 1 }), "{payload}");
}
