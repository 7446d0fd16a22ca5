//! What a call left that its line did not name, and what may be written without a declaration.

use std::fs;

use provost_testkit::stage::Stage;
use serde_json::{Value, json};

use super::{event, hook};
use crate::{Changes as _, stage};

/// A stage with a change of `docs`.
fn declared() -> Stage {
    let stage = stage();
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let (code, answer) = stage.change("ada", &["start", "x", "--file", "docs"]);
    assert_eq!(code, 0, "{answer}");
    stage
}

fn bash(stage: &Stage, line: &str) -> (i32, String) {
    hook(
        stage,
        "claude",
        &event(stage, "Bash", &json!({ "command": line })),
    )
}

/// The answer after a call.
fn after(stage: &Stage) -> (i32, String) {
    let input = event(stage, "Bash", &json!({ "command": "make" }));
    let mut value: Value = serde_json::from_str(&input).unwrap();
    value["hook_event_name"] = json!("PostToolUse");
    hook(stage, "claude", &value.to_string())
}

#[test]
fn what_a_program_wrote_undeclared_denies_calls_until_it_is_undone() {
    let stage = declared();
    assert_eq!(bash(&stage, "make").0, 0);
    fs::write(stage.path("repo/docs/built.md"), "x").unwrap();
    assert_eq!(after(&stage).0, 0, "what was declared is fine");
    assert_eq!(bash(&stage, "make").0, 0);
    fs::write(stage.path("repo/built.txt"), "x").unwrap();
    let (code, words) = after(&stage);
    assert!(code == 2 && words.contains("`built.txt`"), "{words}");
    assert!(words.contains("--file 'built.txt'"), "{words}");
    for line in ["make", "touch docs/a", "touch docs/a built.txt"] {
        let (code, words) = bash(&stage, line);
        assert!(
            code == 2 && words.contains("`built.txt`"),
            "{line}: {words}"
        );
    }
    for line in [
        "git status",
        "provost change --agent ada analyze",
        "cat built.txt",
    ] {
        assert_eq!(bash(&stage, line).0, 0, "{line}");
    }
    assert_eq!(bash(&stage, "rm built.txt").0, 0, "it may be undone");
    assert!(
        stage.path("repo/built.txt").exists(),
        "the hook reverts nothing"
    );
    fs::remove_file(stage.path("repo/built.txt")).unwrap();
    assert_eq!(after(&stage).0, 0);
    assert_eq!(bash(&stage, "touch docs/a").0, 0);
    assert_eq!(bash(&stage, "make").0, 0);
}

#[test]
fn what_a_program_wrote_may_be_declared_afterwards() {
    let stage = declared();
    assert_eq!(bash(&stage, "make").0, 0);
    fs::write(stage.path("repo/built.txt"), "x").unwrap();
    // Also where the program that asks does not report the end of a call.
    assert_eq!(bash(&stage, "make").0, 2);
    assert_eq!(stage.change("bob", &["analyze"]).0, 0);
    let start = ["start", "y", "--file", "built.txt", "--continue-own-wip"];
    let (code, answer) = stage.change("bob", &start);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(bash(&stage, "make").0, 0);
    assert_eq!(after(&stage).0, 0);
}

#[test]
fn temporary_and_ignored_files_may_be_written_and_what_others_run_may_not() {
    let stage = declared();
    let rules = "build/\n.env*\nnode_modules/\n.venv/\n.claude/\n";
    fs::write(stage.path("repo/.gitignore"), rules).unwrap();
    let free = std::env::temp_dir().join("provost-hook-scratch");
    let free = free.display();
    for line in [
        format!("touch {free}"),
        format!("echo x > {free}/deep/a"),
        "touch build/a".to_owned(),
        "rm -rf build/deep".to_owned(),
    ] {
        let (code, words) = bash(&stage, &line);
        assert_eq!(code, 0, "{line}: {words}");
    }
    for line in [
        format!("touch {free}/.git/config"),
        "touch .env.local".to_owned(),
        "touch build/.env".to_owned(),
        "touch node_modules/.bin/x".to_owned(),
        "rm -r node_modules".to_owned(),
        "touch .venv/bin/x".to_owned(),
        "touch .claude/settings.json".to_owned(),
        "touch .provost/x".to_owned(),
        "touch other".to_owned(),
        "touch /etc/x".to_owned(),
    ] {
        assert_eq!(bash(&stage, &line).0, 2, "{line}");
    }
    let watch = event(&stage, "Monitor", &json!({ "command": "touch other" }));
    assert_eq!(hook(&stage, "claude", &watch).0, 2);
}

#[test]
fn a_line_that_seems_only_to_read_is_compared_too() {
    let stage = declared();
    // Each passes before the call; what it would do is done here in its place.
    for line in [
        "X=-i; sed $X s/a/b/ README.md",
        "sed --i s/a/b/ README.md",
        "sed -n '1wnew.txt' README.md",
        "hash -rp /usr/bin/touch ls; ls new.txt",
        "ls",
    ] {
        assert_eq!(bash(&stage, line).0, 0, "{line}");
        fs::write(stage.path("repo/new.txt"), "x").unwrap();
        let (code, words) = after(&stage);
        assert!(code == 2 && words.contains("`new.txt`"), "{line}: {words}");
        assert_eq!(bash(&stage, "make").0, 2, "{line}");
        fs::remove_file(stage.path("repo/new.txt")).unwrap();
        assert_eq!(after(&stage).0, 0, "{line}");
    }
}
