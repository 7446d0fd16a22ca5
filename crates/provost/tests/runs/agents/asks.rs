//! Claude Code and Codex ask before they run a command, and a person answers.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stage::{AgentStage, KEY, Program, Way};
use crate::stage::Running;

/// Starts the program under a contract with this `shell`.
pub(super) fn start(stage: &AgentStage, shell: &str) -> Running {
    start_under(stage, shell, stage.contract())
}

/// The same, under this contract.
pub(super) fn start_under(stage: &AgentStage, shell: &str, mut contract: Value) -> Running {
    contract["tool_permissions"]["shell"] = json!(shell);
    contract["required_outputs"] = json!([]);
    stage.inner.write("contract.json", &contract.to_string());
    let file = stage.inner.path("contract.json").display().to_string();
    let credential = stage.credential();
    let words = ["run", "--json", "--agent", "it", "-f", &file];
    let mut command = stage.command(&[&words[..], &["--credential", &credential]].concat());
    command.env(stage.program.variable(), KEY);
    stage.inner.spawn(command)
}

/// The run and the digest of the question about `command`.
pub(super) fn question(stage: &AgentStage, command: &str) -> (String, String) {
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let status = stage.inner.ask(&["status", "--json"]).json;
        let asked = &status["open"][0]["questions"][0];
        if asked["content"] == command {
            assert_eq!(asked["kind"], "command", "{status}");
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            return (text(&status["open"][0]["run_id"]), text(&asked["digest"]));
        }
        assert!(Instant::now() < until, "no question: {status}");
        sleep(Duration::from_millis(100));
    }
}

/// The answers in the ledger: how they were given, and whether they are a yes.
pub(super) fn answers(stage: &AgentStage, run: &str) -> Vec<Value> {
    let ledger = fs::read_to_string(stage.inner.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let found = events.filter(|event| event["event_type"] == "QUESTION_ANSWERED");
    found
        .map(|event| json!([event["payload"]["how"], event["payload"]["allow"]]))
        .collect()
}

#[test]
fn a_program_asks_for_every_command_and_runs_what_is_permitted() {
    for program in [Program::Claude, Program::Codex] {
        asks_for_every_command(program);
    }
}

fn asks_for_every_command(program: Program) {
    let turns = json!([{ "shell": "echo good > src/a.txt" }, { "shell": "sh check.sh" },
                       { "shell": "echo bad > src/a.txt" }, { "text": "done" }]);
    let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
        return;
    };
    let running = start(&stage, "untrusted");
    let (run, digest) = question(&stage, "echo good > src/a.txt");
    for wrong in ["0123456789abcdef", "01"] {
        let refused = stage.inner.ask(&["approve", &run, wrong, "--json"]);
        let want = ("NOTHING_TO_APPROVE", 1);
        assert_eq!((refused.code(), refused.exit), want, "{refused:?}");
    }
    let yes = stage.inner.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    let (_, other) = question(&stage, "echo bad > src/a.txt");
    let twice = stage.inner.ask(&["reject", &run, &digest, "--json"]);
    assert_eq!(twice.code(), "NOTHING_TO_APPROVE", "{twice:?}");
    let no = stage
        .inner
        .ask(&["reject", &run, &other, "--reason", "it is good", "--json"]);
    assert_eq!(no.exit, 0, "{no:?}");
    let outcome = running.wait();
    let seen = (outcome.code(), outcome.exit);
    assert_eq!(seen, ("OK", 0), "{program:?} {outcome:?}");
    let want = [
        json!(["terminal", true]),
        json!(["allow-list", true]),
        json!(["terminal", false]),
    ];
    assert_eq!(answers(&stage, &run), want, "{program:?}");
    let said = serde_json::to_string(&stage.events(&run)).unwrap();
    let model = serde_json::to_string(&stage.requests()).unwrap();
    for text in [said, model] {
        let reason = "a person said no: it is good";
        assert!(text.contains(reason), "{program:?}: {text}");
    }
    assert_eq!(stage.inner.verify(&run).exit, 0);
}

#[test]
fn claude_without_a_shell_is_offered_none() {
    let turns = json!([
        { "tool": "Write", "input": { "file_path": "src/a.txt", "content": "good\n" } },
        { "text": "done" }
    ]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    let outcome = start(&stage, "deny").wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let requests = serde_json::to_string(&stage.requests()).unwrap();
    assert!(!requests.contains("\"Bash\""), "{requests}");
}
