//! A program in place of Codex that speaks the protocol of its app server well, or badly.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use super::stage::KEY;
use crate::stage::{Outcome, Running, Stage, lacks};

/// Nothing listens there, and the program asks no model.
const PLACE: &str = "127.0.0.1:9";

fn start(stage: &Stage, way: &str, more: &[&str]) -> Running {
    let policy = format!(
        "[agents.it]\nadapter = \"codex\"\nplane = \"app-server\"\n\
         base_url = \"http://{PLACE}/v1\"\nmodel = \"{way}\"\n\
         [commands]\nallow = [\"sh check.sh\"]\n"
    );
    stage.commit(&[("provost.toml", &policy)]);
    stage.write("bin/codex", include_str!("app_server.py"));
    let program = stage.path("bin/codex");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let credential = format!("http://{PLACE} Authorization: Bearer $OPENAI_API_KEY");
    let words = [
        "run",
        "--json",
        "--agent",
        "it",
        "--credential",
        &credential,
    ];
    let mut command = stage.provost(&[&words[..], more].concat());
    let path = format!(
        "{}:/usr/local/bin:/usr/bin:/bin",
        stage.path("bin").display()
    );
    command.env("PATH", path).env("OPENAI_API_KEY", KEY);
    stage.spawn(command)
}

/// A run whose agent behaves in this way.
fn served(stage: &Stage, way: &str, more: &[&str]) -> Outcome {
    let words = ["make it good", "--allow", "src", "--accept", "sh check.sh"];
    start(stage, way, &[&words[..], more].concat()).wait()
}

#[test]
fn a_program_that_keeps_to_the_protocol_is_judged_by_its_work() {
    if lacks("python3") {
        return;
    }
    for way in ["good", "stays", "curious"] {
        let stage = Stage::new();
        let outcome = served(&stage, way, &[]);
        let seen = (outcome.code(), outcome.exit);
        assert_eq!(seen, ("OK", 0), "{way} {outcome:?}");
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0);
    }
}

#[test]
fn a_program_that_breaks_the_protocol_is_ended_and_refused() {
    if lacks("python3") {
        return;
    }
    for (way, code, words) in [
        ("other", "AGENT_PROTOCOL", "was not sent"),
        ("nameless", "AGENT_PROTOCOL", "without an id"),
        ("long", "AGENT_PROTOCOL", "a line of more than 4 MiB"),
        ("flood", "AGENT_PROTOCOL", "not a JSON message"),
        ("greedy", "AGENT_PROTOCOL", "256 things"),
        ("silent", "NO_PROGRESS", "got nowhere"),
        ("gone", "AGENT_FAILED", ""),
        ("interrupted", "AGENT_FAILED", "interrupted"),
    ] {
        let stage = Stage::new();
        let since = Instant::now();
        let patience = if way == "silent" { "3s" } else { "60s" };
        let outcome = served(&stage, way, &["--no-progress", patience]);
        let seen = (outcome.code(), outcome.exit);
        assert_eq!(seen, (code, 1), "{way} {outcome:?}");
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        assert!(reason.as_str().unwrap().contains(words), "{way}: {reason}");
        assert!(since.elapsed() < Duration::from_mins(1), "{way}");
    }
}
