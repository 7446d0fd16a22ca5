//! Controlled changes with the real program: the server against bad input, the command line, and a
//! repository that wants to be executed.

#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests are tests as well"
)]

mod evidence;
mod hooks;
mod submodules;
mod words;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use provost_testkit::stage::Stage;
use serde_json::{Value, json};

fn stage() -> Stage {
    Stage::with(&[("docs/guide.md", "# guide\n")])
}

/// An agent that makes controlled changes.
trait Changes {
    /// `provost change` as the agent `name`: how it ended, and what it said.
    fn change(&self, name: &str, arguments: &[&str]) -> (i32, Value);
}

impl Changes for Stage {
    fn change(&self, name: &str, arguments: &[&str]) -> (i32, Value) {
        let words = ["change", "--json", "--agent", name];
        let outcome = self.ask(&[&words, arguments].concat());
        (outcome.exit, outcome.json)
    }
}

#[test]
fn another_name_for_a_file_is_not_declared() {
    let stage = stage();
    std::os::unix::fs::symlink("docs", stage.path("repo/pages")).unwrap();
    std::os::unix::fs::symlink("docs/guide.md", stage.path("repo/guide")).unwrap();
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    for path in ["pages/guide.md", "pages", "guide"] {
        let (code, answer) = stage.change("ada", &["start", "say more", "--file", path]);
        assert_eq!(code, 2, "{path} {answer}");
    }
    let start = ["start", "say more", "--file", "docs/guide.md"];
    assert_eq!(stage.change("ada", &start).0, 0);
}

#[test]
fn the_command_line_distinguishes_agents_by_name() {
    let stage = stage();
    let start = ["start", "say more", "--file", "docs/guide.md"];
    let (code, answer) = stage.change("ada", &start);
    assert_eq!(
        (code, &answer["status"]),
        (3, &json!("needs_analysis")),
        "{answer}"
    );
    for name in ["ada", "bob"] {
        assert_eq!(stage.change(name, &["analyze"]).0, 0);
    }
    let (code, answer) = stage.change("ada", &start);
    assert_eq!((code, &answer["status"]), (0, &json!("active")), "{answer}");
    let id = answer["intent_id"].as_str().unwrap().to_owned();
    let (code, answer) = stage.change("bob", &start);
    assert_eq!(
        (code, &answer["status"]),
        (3, &json!("blocked")),
        "{answer}"
    );
    let queue = ["queue", "say more", "--file", "docs"];
    let (code, answer) = stage.change("bob", &queue);
    assert_eq!(
        (code, &answer["queue_position"]),
        (3, &json!(1)),
        "{answer}"
    );
    stage.write("repo/docs/guide.md", "# more\n");
    let finish = ["finish", id.as_str(), "--file", "docs/guide.md"];
    let (code, answer) = stage.change("bob", &finish);
    assert_eq!(
        (code, answer["allow"] == json!(false)),
        (2, true),
        "{answer}"
    );
    let (code, answer) = stage.change("ada", &finish);
    assert_eq!(
        (code, &answer["status"]),
        (0, &json!("accepted")),
        "{answer}"
    );
    let digest = answer["receipt"]["receipt_digest"]["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, receipt) = stage.change("bob", &["receipt", &digest]);
    assert_eq!(code, 0);
    let changed = &receipt["structured_receipt"]["scope"]["changed_files"];
    assert_eq!(*changed, json!(["docs/guide.md"]));
    let place = stage.path("repo/.provost/changes").join(&id);
    for name in [
        "intent.json",
        "events.jsonl",
        "before.json",
        "receipt.json",
        "trail.json",
    ] {
        assert!(place.join(name).is_file(), "{name}");
    }
    let envelope = std::fs::read(place.join("attestation.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    assert_eq!(envelope["signatures"].as_array().unwrap().len(), 1);
    // A receipt that was changed is not handed out.
    let altered = std::fs::read_to_string(place.join("receipt.json")).unwrap();
    let altered = altered.replace("docs/guide.md", "docs/other.md");
    std::fs::write(place.join("receipt.json"), altered).unwrap();
    assert_eq!(stage.change("bob", &["receipt", &digest]).0, 5);
}

#[test]
fn a_repository_gets_nothing_executed_and_hides_nothing() {
    let stage = stage();
    let trap = stage.path("home/trap");
    let sprung = stage.path("home/sprung");
    let script = format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display());
    stage.script("home/trap", &script);
    stage.commit(&[(".gitattributes", "*.md filter=trap\n")]);
    let trap = trap.to_str().unwrap();
    for setting in [
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "core.fsmonitor",
    ] {
        stage.git(&["config", setting, trap]);
    }
    std::fs::create_dir_all(stage.path("repo/.git/hooks")).unwrap();
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman"] {
        std::fs::copy(trap, stage.path("repo/.git/hooks").join(hook)).unwrap();
    }
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    stage.write("repo/docs/guide.md", "# other\n");
    let start = ["start", "x", "--file", "docs/guide.md"];
    let (code, answer) = stage.change("ada", &start);
    assert_eq!(
        (code, &answer["workspace_hygiene"]["blocks_edit"]),
        (1, &json!(true)),
        "{answer}"
    );
    assert!(!sprung.exists(), "something of the repository was started");
}

#[test]
fn bad_messages_are_answered_and_the_next_one_is_served() {
    let stage = stage();
    let mut child = stage
        .provost(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for (line, code) in bad_messages() {
        writeln!(input, "{line}").unwrap();
        let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            answer["error"]["code"],
            json!(code),
            "{}",
            &line[..line.len().min(80)]
        );
    }
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled"}}"#
    )
    .unwrap();
    for (parameters, words) in bad_arguments() {
        writeln!(input, "{}", call(&parameters.to_string())).unwrap();
        let line = output.next().unwrap().unwrap();
        assert!(
            line.len() < 2000,
            "an answer repeats what was asked: {}",
            line.len()
        );
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
        assert!(line.contains(words), "{words}: {answer}");
    }
    writeln!(input, r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list"}}"#).unwrap();
    let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
    assert!(answer["result"]["tools"].as_array().unwrap().len() > 10);
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Calls that cannot be served, and the codes that answer them.
fn bad_arguments() -> Vec<(Value, &'static str)> {
    let many: Vec<String> = (0..10_001).map(|number| format!("f{number}")).collect();
    let scope = json!({ "allowed_files": ["docs"] });
    let start = |more: Value| {
        let mut given = json!({ "root": ".", "intent": "x", "scope": scope });
        given
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "name": "start_controlled_change", "arguments": given })
    };
    let of = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    vec![
        (start(json!({ "root": 5 })), "`root` is a number"),
        (
            start(json!({ "scope": { "allowed_files": many } })),
            "more than 10000 items",
        ),
        (
            start(json!({ "scope": { "allowed_files": ["x".repeat(100_000)] } })),
            "in `allowed_files`",
        ),
        (
            start(json!({ "expected_effects": ["e".repeat(30_000)] })),
            "`expected_effects` have more than 20000 characters",
        ),
        (
            of("clear_session_runs", json!({ "root": 5 })),
            "`root` is a number",
        ),
        (
            of(
                "validate_review_claims",
                json!({ "text": "a", "patch_health_delta": "x" }),
            ),
            "`patch_health_delta` is a string",
        ),
        (
            of(
                "get_review_receipt",
                json!({ "root": ".", "receipt_digest": "x", "format": "pdf" }),
            ),
            "`format` is none of structured, markdown",
        ),
        (
            of(
                "finish_controlled_change",
                json!({ "intent_id": "i", "diff_ref": "H".repeat(2000) }),
            ),
            "`diff_ref` has more than 1000 bytes",
        ),
        (
            of("evaluate_gates", json!({ "fail_cycles": "yes" })),
            "`fail_cycles` is a string",
        ),
    ]
}

/// A call of a tool as its line.
fn call(parameters: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{parameters}}}"#)
}

/// Lines that are no request, and the code of the answer.
fn bad_messages() -> Vec<(String, i32)> {
    let long = format!("[{}]", "1,".repeat(5 << 20));
    vec![
        ("nonsense".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), -32600),
        (r#"{"id":1,"method":"ping"}"#.to_owned(), -32600),
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
                "i".repeat(300)
            ),
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_owned(),
            -32700,
        ),
        ("[".repeat(100_000), -32700),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(),
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"nothing"}"#.to_owned(),
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#.to_owned(),
            -32602,
        ),
        (call(r#"{"name":"rm_rf"}"#), -32602),
        (
            call(r#"{"name":"get_blast_radius","arguments":[]}"#),
            -32602,
        ),
        (long, -32600),
    ]
}
