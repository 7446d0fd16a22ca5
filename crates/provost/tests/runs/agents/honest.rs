//! Agents that do what the contract asks.

use std::process::Command;

use serde_json::json;

use super::stage::{AgentStage, KEY, PROGRAMS, Program, Way, traffic};
use crate::stage::Outcome;

/// Work, and a look around for what should not be there.
const WORK: &str = "env; cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n'; \
    ls -a ~ ~/.. ; cat ~/.codex/auth.json ~/.claude/CLAUDE.md; git status --short; \
    curl -s -m 5 http://tracker.example.com/; echo good > src/a.txt";

#[test]
fn honest_work_is_accepted_and_no_secret_was_there_to_see() {
    for program in PROGRAMS {
        let turns = json!([{ "shell": WORK }, { "text": "I made it good." }]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "max_tokens = 1000000")
        else {
            return;
        };
        let before = stage.inner.surroundings();
        let outcome = stage.run();
        assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
        assert_eq!(before.differences(&stage.inner.surroundings()), [""; 0]);
        the_model_was_asked_with_its_key(&stage);
        nothing_of_the_host_was_seen(&stage, outcome.text("run_id"));
        other_places_were_refused(&stage, &outcome);
        the_evidence_is_there(&stage, &outcome);
    }
}

fn the_model_was_asked_with_its_key(stage: &AgentStage) {
    let requests = stage.requests();
    assert_eq!(requests.len(), 2, "one for each turn");
    for request in &requests {
        let key = request["key"].as_str().unwrap();
        assert_eq!(key.trim_start_matches("Bearer "), KEY);
        let asked = request["request"].to_string();
        assert!(asked.contains("make it good"), "the objective is missing");
        assert!(asked.contains("sh check.sh"), "the check is missing");
        assert!(
            !asked.contains("be good"),
            "CLAUDE.md of the tree steers it"
        );
    }
}

fn nothing_of_the_host_was_seen(stage: &AgentStage, run: &str) {
    let printed = stage.inner.printed_in(run);
    let dummy = format!("{}=kept-outside-the-box", stage.program.variable());
    assert!(printed.contains(&dummy), "{printed}");
    let asked = stage.requests();
    assert!(!json!(asked).to_string().contains("xyzzy"), "{asked:?}");
    for name in ["repo/.provost", "cache"] {
        let found = Command::new("grep")
            .args(["-rlE", &format!("{KEY}|xyzzy-(login|host|model)")])
            .arg(stage.inner.path(name))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
}

fn other_places_were_refused(stage: &AgentStage, outcome: &Outcome) {
    let lines = traffic(outcome);
    let model = json!(["POST", stage.place, "OK"]);
    let tracker = json!(["GET", "tracker.example.com:80", "NETWORK_REFUSED"]);
    assert!(lines.contains(&model), "{lines:?}");
    assert!(lines.contains(&tracker), "{lines:?}");
    let others = lines.iter().filter(|line| line[1] != stage.place.as_str());
    for other in others {
        assert_eq!(other[2], "NETWORK_REFUSED", "{lines:?}");
    }
    if stage.program == Program::Codex {
        let makers = json!(["CONNECT", "chatgpt.com:443", "NETWORK_REFUSED"]);
        assert!(lines.contains(&makers), "{lines:?}");
    }
}

fn the_evidence_is_there(stage: &AgentStage, outcome: &Outcome) {
    let usage = &outcome.json["usage"];
    let spent = ["input_tokens", "cached_tokens", "output_tokens"].map(|it| usage[it].clone());
    let served = stage.served().map(|tokens| json!(tokens));
    assert_eq!(spent, served, "{outcome:?}");
    let run = outcome.text("run_id");
    let events = stage.events(run);
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str()).collect();
    for kind in ["session", "tool", "message", "usage", "final"] {
        assert!(kinds.contains(&Some(kind)), "{kind}: {events:?}");
    }
    only_the_work_is_proposed(stage, run);
    let verified = stage.inner.verify(run);
    assert_eq!(verified.exit, 0, "{verified:?}");
}

fn only_the_work_is_proposed(stage: &AgentStage, run: &str) {
    let why = stage.inner.ask(&["why", run, "--json"]);
    let rows = why.json["network"].as_array().unwrap();
    let open = |row: &&serde_json::Value| row["widening"] != json!([]);
    let open: Vec<_> = rows.iter().filter(open).map(|row| &row["about"]).collect();
    assert_eq!(open, [&json!("tracker.example.com:80")], "{why:?}");
    let listed = |row: &serde_json::Value| row["rule"] == "background";
    if stage.program == Program::Codex {
        assert!(rows.iter().any(listed), "{why:?}");
    }
    let shown = stage.inner.ask(&["why", run]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(!shown.contains("permit with: `chatgpt.com"), "{shown}");
}

#[test]
fn an_answer_is_bound_where_the_contract_asks_for_one() {
    for (program, answer, code) in [
        (
            Program::Codex,
            json!({ "status": "SUCCESS", "summary": "s", "failure": null }),
            "OK",
        ),
        (
            Program::Claude,
            json!({ "status": "SUCCESS", "summary": "s", "failure": null }),
            "OK",
        ),
        (
            Program::Codex,
            json!({ "status": "PERFECT" }),
            "OUTPUT_INVALID",
        ),
    ] {
        let turns = json!([{ "shell": "echo good > src/a.txt" }, { "answer": answer }]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
            return;
        };
        let contract = stage.contract();
        stage.inner.write("contract.json", &contract.to_string());
        let file = stage.inner.path("contract.json").display().to_string();
        let outcome = stage.run_with(&["-f", &file, "--credential", &stage.credential()]);
        assert_eq!(outcome.code(), code, "{program:?} {outcome:?}");
        let asked = &stage.requests()[0]["request"];
        assert!(
            asked.to_string().contains("SKIPPED"),
            "the schema is not asked for"
        );
    }
}

#[test]
fn the_objective_alone_is_enough_where_the_policy_has_defaults() {
    for program in [Program::Claude, Program::Codex] {
        let turns = json!([{ "shell": "echo good > src/a.txt" }, { "text": "I made it good." }]);
        let run = "[run]\nallow = [\"src\"]\naccept = [\"sh check.sh\"]\nagent = \"it\"";
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, run) else {
            return;
        };
        let credential = stage.credential();
        let words = ["run", "make it good", "--json", "--credential", &credential];
        let outcome = stage.ask(&words);
        assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
        let request = stage.requests()[0]["request"].to_string();
        assert!(request.contains("make it good") && request.contains("sh check.sh"));
    }
}
