//! Codex asks in a conversation: what it asks about, and what neither the tree nor an earlier
//! attempt can change in that.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::asks::{answers, question, start, start_under};
use super::offered::{LIST, listed, offered};
use super::stage::{APP_SERVER, AgentStage, Program, Way};

/// The first turn of the work.
const GOOD: &str = "echo good > src/a.txt";

fn codex(turns: &Value, more: &str) -> Option<AgentStage> {
    AgentStage::new(Program::Codex, Way::Plain, turns, more)
}

/// How many events of a kind the ledger has.
fn count(stage: &AgentStage, run: &str, kind: &str) -> usize {
    let ledger = fs::read_to_string(stage.inner.evidence(run, "events.jsonl")).unwrap();
    let kind = format!("\"event_type\":\"{kind}\"");
    ledger.lines().filter(|line| line.contains(&kind)).count()
}

fn approve(stage: &AgentStage, run: &str, digest: &str) {
    let yes = stage.inner.ask(&["approve", run, digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
}

#[test]
fn a_question_of_codex_that_no_person_answers_counts_as_no() {
    let turns = json!([{ "shell": GOOD }, { "text": "it was not permitted" }]);
    let Some(stage) = codex(&turns, "[ask]\nwait = \"2s\"\n") else {
        return;
    };
    let running = start(&stage, "untrusted");
    let (run, digest) = question(&stage, GOOD);
    let until = Instant::now() + Duration::from_secs(30);
    while count(&stage, &run, "QUESTION_EXPIRED") == 0 {
        assert!(Instant::now() < until, "the question does not expire");
        sleep(Duration::from_millis(50));
    }
    let outcome = running.wait();
    assert_eq!(outcome.code(), "EMPTY_DIFF", "{outcome:?}");
    let late = stage.inner.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(late.code(), "NOTHING_TO_APPROVE", "{late:?}");
    let model = serde_json::to_string(&stage.requests()).unwrap();
    assert!(model.contains("no person answered in time"), "{model}");
    assert_eq!(stage.inner.verify(&run).exit, 0);
}

#[test]
fn a_question_of_codex_outlives_its_driver_and_the_yes_serves_the_next_attempt() {
    // Both attempts take a turn of their own, so the model says the same twice.
    let turns = json!([{ "shell": GOOD }, { "shell": GOOD }, { "text": "done" }]);
    let Some(stage) = codex(&turns, "") else {
        return;
    };
    let running = start(&stage, "untrusted");
    let (run, digest) = question(&stage, GOOD);
    running.signal(Signal::KILL);
    let _ = running.wait();
    let (again, same) = question(&stage, GOOD);
    assert_eq!((&again, &same), (&run, &digest), "it is still open");
    approve(&stage, &run, &digest);
    let send = format!("OPENAI_API_KEY@{}", stage.place);
    let outcome = stage.ask(&["resume", &run, "--send", &send, "--json"]);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(count(&stage, &run, "QUESTION_ASKED"), 1);
    assert_eq!(count(&stage, &run, "ATTEMPT_LOST"), 1);
    assert_eq!(answers(&stage, &run), [json!(["terminal", true])]);
    assert_eq!(stage.inner.verify(&run).exit, 0);
}

#[test]
fn codex_on_request_asks_for_what_it_takes_for_dangerous() {
    let dangerous = "rm -rf src/none";
    let turns = json!([{ "shell": GOOD }, { "shell": dangerous }, { "text": "done" }]);
    let Some(stage) = codex(&turns, "") else {
        return;
    };
    let running = start(&stage, "on-request");
    let (run, digest) = question(&stage, dangerous);
    approve(&stage, &run, &digest);
    let outcome = running.wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(count(&stage, &run, "QUESTION_ASKED"), 1);
}

#[test]
fn codex_without_a_shell_is_offered_none_and_has_none() {
    let patch = "*** Begin Patch\n*** Update File: src/a.txt\n@@\n-base\n+good\n*** End Patch\n";
    let patch = format!("tools.apply_patch({})", json!(patch));
    let turns = json!([{ "program": LIST }, { "shell": "echo bad > src/b.txt" },
                       { "program": patch }, { "text": "done" }]);
    for more in ["", APP_SERVER] {
        let Some(stage) = codex(&turns, more) else {
            return;
        };
        let outcome = start(&stage, "deny").wait();
        assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
        assert_eq!(outcome.json["changed_files"], json!(["src/a.txt"]));
        let requests = stage.requests();
        let names = listed(&requests[1]);
        assert!(
            names.contains("apply_patch"),
            "it lists its tools: {names:?}"
        );
        let shells = ["exec_command", "write_stdin", "shell", "local_shell"];
        let all = names.into_iter().chain(requests.iter().flat_map(offered));
        for name in all {
            assert!(!shells.contains(&name.as_str()), "{more} {name}");
        }
    }
    // A model that gets its tools one by one.
    let turns = json!([{ "text": "done" }]);
    let Some(stage) = codex(&turns, "model = \"gpt-5.5\"\n") else {
        return;
    };
    let outcome = start(&stage, "deny").wait();
    assert_eq!(outcome.code(), "EMPTY_DIFF", "{outcome:?}");
    let names = offered(&stage.requests()[0]);
    assert!(names.contains("apply_patch"), "{names:?}");
    assert!(!names.contains("exec_command"), "{names:?}");
}

#[test]
fn neither_the_tree_nor_an_earlier_attempt_lets_codex_run_commands_unasked() {
    let rule = "prefix_rule(pattern=[\"cp\"], decision=\"allow\")\n";
    let leave = format!(
        "mkdir -p ~/.codex/rules; echo '{}' > ~/.codex/rules/a.rules",
        rule.trim()
    );
    let turns = json!([
        { "shell": leave }, { "shell": "cp docs/readme.md src/a.txt" }, { "text": "done" },
        { "shell": "cp -f docs/readme.md src/a.txt" }, { "shell": GOOD }, { "text": "done" },
    ]);
    let Some(stage) = codex(&turns, "") else {
        return;
    };
    let config = "model = \"xyzzy-model\"\ndeveloper_instructions = \"xyzzy\"\n\
                  [mcp_servers.xyzzy]\ncommand = \"touch\"\nargs = [\"src/xyzzy\"]\n";
    let skill = "---\nname: xyzzy\ndescription: xyzzy\n---\nxyzzy\n";
    stage.inner.commit(&[
        (".codex/config.toml", config),
        (".codex/rules/a.rules", rule),
        (".codex/skills/one/SKILL.md", skill),
        (".agents/skills/two/SKILL.md", skill),
        ("AGENTS.md", "xyzzy\n"),
    ]);
    let mut contract = stage.contract();
    contract["timeout_retry"]["max_retries"] = json!(1);
    let running = start_under(&stage, "untrusted", contract);
    let (mut run, mut asked) = (String::new(), 0);
    for command in [
        &leave,
        "cp docs/readme.md src/a.txt",
        "cp -f docs/readme.md src/a.txt",
        GOOD,
    ] {
        let (name, digest) = question(&stage, command);
        approve(&stage, &name, &digest);
        (run, asked) = (name, asked + 1);
    }
    let outcome = running.wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["attempts"], 2, "{outcome:?}");
    assert_eq!(count(&stage, &run, "QUESTION_ASKED"), asked);
    let requests = stage.requests();
    let model = serde_json::to_string(&requests).unwrap();
    assert!(!model.contains("xyzzy"), "{model}");
    // The second attempt continues the conversation.
    assert!(requests[3]["request"].to_string().contains("rules/a.rules"));
    let thread = stage.events(&run);
    assert!(thread.iter().any(|event| event["kind"] == "session"));
    assert_eq!(stage.inner.verify(&run).exit, 0);
}
