//! What agents spend is kept by day for the user, and bounds the next agent.

use std::fs;
use std::time::{Duration, Instant};

use provost_host::proxy::gateway::budget::Amount;
use provost_host::proxy::gateway::request_log::{RequestRow, replay};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::{AgentStage, PROGRAMS, Program, Way};

fn stage(program: Program, more: &str) -> Option<AgentStage> {
    let turns = json!([
        { "shell": "echo good > src/a.txt", "tokens": 1000 },
        { "text": "done" },
    ]);
    AgentStage::new(program, Way::Plain, &turns, more)
}

#[test]
fn the_day_of_a_user_is_added_up_and_its_limit_refuses_the_next_run() {
    let Some(stage) = stage(Program::Claude, "") else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let tokens = |by: &str| {
        let spent = stage.inner.ask(&["spend", "--by", by, "--json"]);
        let rows = spent.json.as_array().unwrap().clone();
        assert_eq!(rows.len(), 1, "{spent:?}");
        assert_eq!(rows[0]["estimated"], 0, "{rows:?}");
        rows[0]["tokens"].as_u64().unwrap()
    };
    let [read, cached, written] = stage.served();
    for by in ["day", "agent", "model"] {
        assert_eq!(tokens(by), read - cached + written, "{by}");
    }
    // More than was spent, and less than one request may cost.
    let limit = "[budget]\nday_tokens = 2000\n";
    stage.inner.write("config/provost/config.toml", limit);
    let before = stage.requests().len();
    let refused = stage.run();
    assert_eq!(refused.code(), "TOKEN_LIMIT", "{refused:?}");
    assert_eq!(stage.requests().len(), before, "no request was forwarded");
    stage
        .inner
        .write("config/provost/config.toml", "[budget]\nweek = 1\n");
    let wrong = stage.run();
    assert!(wrong.code() != "OK", "{wrong:?}");
    assert!(format!("{wrong:?}").contains("config.toml"), "{wrong:?}");
}

#[test]
fn a_model_that_is_not_listed_is_refused_and_the_line_that_grants_it_is_shown() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "models = [\"none-of-these\"]") else {
            return;
        };
        let outcome = stage.run();
        assert!(outcome.code() != "OK", "{program:?} {outcome:?}");
        assert!(stage.requests().is_empty(), "{program:?}");
        let shown = stage.inner.ask(&["show", outcome.text("run_id")]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains("MODEL_REQUEST_REFUSED"),
            "{program:?} {shown}"
        );
        assert!(shown.contains("models = ["), "{program:?} {shown}");
    }
}

#[test]
fn the_known_tools_of_every_program_are_all_that_it_offers() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "model_tools = [\"known\"]") else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
    }
}

/// The first value of this name, at any depth.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let inner = value.as_object()?;
    let found = inner.get(name).filter(|found| found["file"].is_string());
    found.or_else(|| inner.values().find_map(|value| find(value, name)))
}

/// The rows about requests to models in the bundle of `run`, and what its ledger says of the file.
fn rows(stage: &AgentStage, run: &str) -> (Vec<RequestRow>, Value) {
    let ledger = fs::read_to_string(stage.inner.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut named = events.filter_map(|event: Value| find(&event, "rows").cloned());
    let file = named.next_back().unwrap_or_else(|| panic!("{ledger}"));
    let name = file["file"].as_str().unwrap();
    let text = fs::read_to_string(stage.inner.evidence(run, name)).unwrap();
    let row = |line| serde_json::from_str(line).unwrap();
    (text.lines().map(row).collect(), file)
}

#[test]
fn a_bundle_shows_that_no_request_of_a_program_exceeded_its_budget() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "max_tokens = 900000") else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        let run = outcome.text("run_id");
        let (rows, _) = rows(&stage, run);
        let sum = replay(&rows).unwrap_or_else(|error| panic!("{program:?} {error}: {rows:?}"));
        assert!(sum.forwarded > 0, "{program:?}");
        assert_eq!(sum.open, Amount::default(), "{program:?}");
        let [read, cached, written] = stage.served();
        assert_eq!(sum.settled.tokens, read - cached + written, "{program:?}");
        let verified = stage.inner.ask(&["verify", run]);
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
}

#[test]
fn a_driver_killed_before_settlement_leaves_its_reservation_to_the_day_and_the_run() {
    let turns = json!([{ "text": "late", "wait": 600 }]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    let limit = "[budget]\nday_tokens = 100000\n";
    stage.inner.write("config/provost/config.toml", limit);
    let credential = stage.credential();
    let words = ["run", "--json", "--agent", "it", "x", "--allow", "src"];
    let more = ["--accept", "sh check.sh", "--credential", &credential];
    let mut command = stage.command(&[&words[..], &more].concat());
    command.env(Program::Claude.variable(), "xyzzy-key");
    let running = stage.inner.spawn(command);
    let began = Instant::now();
    while stage.requests().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(40), "no request came");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The model has the request, and what it costs is reserved and not settled.
    running.signal(Signal::KILL);
    running.wait();
    stage.inner.await_silence("killed");
    let spent = stage.inner.ask(&["spend", "--json"]);
    assert_eq!(spent.json[0]["tokens"], 100_000, "{spent:?}");
    assert_eq!(spent.json[0]["estimated"], 1, "{spent:?}");
    let before = stage.requests().len();
    let refused = stage.run();
    assert_eq!(refused.code(), "TOKEN_LIMIT", "{refused:?}");
    assert_eq!(stage.requests().len(), before, "no request was forwarded");
}

#[test]
fn an_unknown_tool_is_refused_by_default_and_why_names_the_line() {
    let turns = json!([{ "text": "done" }]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    // Any process of the sandbox may ask; this one offers a tool that no list has.
    let body = json!({ "model": "m-1", "max_tokens": 16, "tools": [{ "name": "Agent" }],
                       "messages": [] });
    let ask = format!(
        "curl -sS http://{}/v1/messages -H 'content-type: application/json' -d '{body}'",
        stage.place
    );
    let turns = json!([{ "shell": format!("{ask}; echo good > src/a.txt") }, { "text": "done" }]);
    stage.inner.write("turns.json", &turns.to_string());
    let outcome = stage.run();
    let run = outcome.text("run_id");
    let why = stage.inner.ask(&["why", run]);
    let text = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(
        text.contains("model: asked for and not granted"),
        "{outcome:?} {text}"
    );
    assert!(text.contains("the tool `Agent` is not granted"), "{text}");
    let line = "`model_tools = [\"known\", \"Agent\"]`";
    assert!(text.contains(line), "{text}");
    let (rows, _) = rows(&stage, run);
    let refused = |row: &&RequestRow| matches!(row, RequestRow::Refused { .. });
    assert_eq!(rows.iter().filter(refused).count(), 1, "{rows:?}");
}
