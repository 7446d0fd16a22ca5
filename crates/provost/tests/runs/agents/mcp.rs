//! Agents that are MCP servers: one that behaves, and ones that do not.

use std::time::{Duration, Instant};

use crate::stage::{Outcome, Stage, lacks};

/// A run whose agent is the server that behaves in this way.
fn served(stage: &Stage, way: &str, more: &[&str]) -> Outcome {
    let policy = format!(
        "[agents.it]\nadapter = \"mcp\"\ncommand = \"python3 server.py {way}\"\ntool = \"work\"\n\
         reply_tool = \"go-on\"\n"
    );
    stage.commit(&[
        ("provost.toml", &policy),
        ("server.py", include_str!("server.py")),
    ]);
    let words = [
        "run",
        "make it good",
        "--json",
        "--agent",
        "it",
        "--allow",
        "src",
    ];
    stage.ask(&[&words[..], &["--accept", "sh check.sh"], more].concat())
}

#[test]
fn a_server_that_keeps_to_the_protocol_is_judged_by_its_work() {
    if lacks("python3") {
        return;
    }
    for way in ["good", "stays"] {
        let stage = Stage::new();
        let outcome = served(&stage, way, &[]);
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("OK", 0),
            "{way} {outcome:?}"
        );
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0);
    }
}

#[test]
fn a_server_continues_its_thread_where_its_work_was_refused() {
    if lacks("python3") {
        return;
    }
    let stage = Stage::new();
    let outcome = served(&stage, "fixes", &["--retries", "1"]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    assert_eq!(outcome.json["attempts"], 2);
    let printed = stage.printed_in(outcome.text("run_id"));
    assert!(printed.contains("called go-on with t-1"), "{printed}");
}

#[test]
fn a_server_that_breaks_the_protocol_is_ended_and_refused() {
    if lacks("python3") {
        return;
    }
    for (way, patience, code, words) in [
        ("other", "60s", "AGENT_PROTOCOL", "was not sent"),
        ("long", "60s", "AGENT_PROTOCOL", "a line of more than 4 MiB"),
        ("flood", "60s", "AGENT_PROTOCOL", "not a JSON message"),
        ("silent", "3s", "NO_PROGRESS", "got nowhere"),
    ] {
        let stage = Stage::new();
        let since = Instant::now();
        let outcome = served(&stage, way, &["--no-progress", patience]);
        assert_eq!(
            (outcome.code(), outcome.exit),
            (code, 1),
            "{way} {outcome:?}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        assert!(reason.as_str().unwrap().contains(words), "{way}: {reason}");
        assert!(since.elapsed() < Duration::from_mins(1), "{way}");
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0);
    }
}
