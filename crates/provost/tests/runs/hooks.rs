//! Commits and pushes that are held to a contract, with the git of this machine.

mod bound;
mod by_init;
mod hidden;
mod moved;
mod speed;
mod way_on;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::stage::{Outcome, Stage};

/// A contract that permits `src/greet`.
fn contract(stage: &Stage) -> String {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract.yaml"
    ));
    stage.write("home/contract.yaml", text);
    stage.path("home/contract.yaml").display().to_string()
}

fn git(stage: &Stage, words: &[&str]) -> Outcome {
    let mut command = stage.command("git");
    command.args(words);
    stage.spawn(command).wait()
}

/// Stages `path` and commits; the answer is git's.
fn commit(stage: &Stage, path: &str) -> Outcome {
    stage.write(&format!("repo/{path}"), "work\n");
    stage.git(&["add", path]);
    git(stage, &["commit", "-q", "-m", "work"])
}

#[test]
fn a_bound_checkout_takes_only_what_its_contract_covers() {
    let stage = Stage::new();
    let file = contract(&stage);
    let bound = stage.ask(&["hook", "bind", &file, "--json"]);
    assert_eq!(bound.exit, 0, "{bound:?}");
    assert_eq!(stage.ask(&["hook", "install"]).exit, 0);
    let inside = commit(&stage, "src/greet/a.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");
    let outside = commit(&stage, "docs/a.txt");
    assert_ne!(outside.exit, 0);
    assert!(outside.stderr.contains("DIFF_REFUSED"), "{outside:?}");
    stage.git(&["reset", "-q", "--hard"]);
    let governing = commit(&stage, "src/greet/CLAUDE.md");
    assert_ne!(governing.exit, 0, "{governing:?}");
    stage.git(&["reset", "-q", "--hard"]);

    // A commit that skipped the hook is judged when it is pushed.
    stage.git(&[
        "init",
        "-q",
        "--bare",
        &stage.path("remote").display().to_string(),
    ]);
    let remote = stage.path("remote").display().to_string();
    let pushed = git(&stage, &["push", "-q", &remote, "main"]);
    assert_eq!(pushed.exit, 0, "{pushed:?}");
    stage.write("repo/docs/a.txt", "work\n");
    stage.git(&["add", "docs/a.txt"]);
    let around = git(&stage, &["commit", "-q", "--no-verify", "-m", "work"]);
    assert_ne!(around.exit, 0, "{around:?}");
    let none = "core.hooksPath=/dev/null";
    stage.git(&["-c", none, "commit", "-q", "-m", "work"]);
    let pushed = git(&stage, &["push", "-q", &remote, "main"]);
    assert_ne!(pushed.exit, 0);
    assert!(pushed.stderr.contains("DIFF_REFUSED"), "{pushed:?}");
    assert!(stage.workspaces().is_empty(), "{:?}", stage.workspaces());
}

#[test]
fn a_contract_that_is_missing_changed_or_broken_refuses() {
    let stage = Stage::new();
    let file = contract(&stage);
    let text = fs::read_to_string(&file).unwrap();
    for words in [
        &["hook", "bind", &file, "--branch", "main"][..],
        &["hook", "install"],
    ] {
        assert_eq!(stage.ask(words).exit, 0);
    }
    fs::write(&file, text.replace("src/greet", "docs")).unwrap();
    let changed = commit(&stage, "src/greet/a.txt");
    assert!(
        changed.exit != 0 && changed.stderr.contains("was changed"),
        "{changed:?}"
    );
    fs::remove_file(&file).unwrap();
    let missing = commit(&stage, "src/greet/b.txt");
    assert!(
        missing.exit != 0 && missing.stderr.contains("is missing"),
        "{missing:?}"
    );
    let status = stage.ask(&["hook", "status", "--json"]);
    let problem = status.json.pointer("/bindings/0/problem").unwrap();
    assert!(problem.to_string().contains("is missing"), "{status:?}");
    fs::write(&file, &text).unwrap();
    let inside = commit(&stage, "src/greet/a.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");

    stage.write("repo/.provost/hooks.json", "{");
    let broken = commit(&stage, "src/greet/c.txt");
    assert!(
        broken.exit != 0 && broken.stderr.contains("HOOK_BROKEN"),
        "{broken:?}"
    );

    fs::write(&file, "task_id: nothing\n").unwrap();
    let refused = stage.ask(&["hook", "bind", &file, "--json"]);
    assert_eq!(
        (refused.code(), refused.exit),
        ("INPUT_INVALID", 2),
        "{refused:?}"
    );
}

#[test]
fn without_a_binding_everything_passes_unless_one_is_required() {
    let stage = Stage::new();
    assert_eq!(stage.ask(&["hook", "install"]).exit, 0);
    assert_eq!(commit(&stage, "docs/a.txt").exit, 0);
    assert_eq!(stage.ask(&["hook", "install", "--require"]).exit, 0);
    let refused = commit(&stage, "docs/b.txt");
    assert!(
        refused.exit != 0 && refused.stderr.contains("HOOK_UNBOUND"),
        "{refused:?}"
    );
    let file = contract(&stage);
    stage.git(&["reset", "-q", "--hard"]);
    assert_eq!(stage.ask(&["hook", "bind", &file]).exit, 0);
    assert_eq!(commit(&stage, "src/greet/a.txt").exit, 0);
    assert_eq!(stage.ask(&["hook", "unbind"]).exit, 0);
    assert_ne!(commit(&stage, "src/greet/b.txt").exit, 0);
    let none = stage.ask(&["hook", "unbind", "--json"]);
    assert_eq!((none.code(), none.exit), ("NOT_FOUND", 2));
}

#[test]
fn hooks_that_were_there_are_called_and_come_back_and_a_lost_binary_refuses() {
    let stage = Stage::new();
    stage.copy_binary();
    stage.git(&["config", "core.hooksPath", "hooks"]);
    let own = "#!/bin/sh\necho ran >> ../own\n";
    stage.write("repo/hooks/pre-commit", own);
    let place = stage.path("repo/hooks/pre-commit");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let installed = stage.ask(&["hook", "install", "--json"]);
    assert_eq!(installed.exit, 0, "{installed:?}");
    assert_eq!(commit(&stage, "docs/a.txt").exit, 0);
    assert_eq!(fs::read_to_string(stage.path("own")).unwrap(), "ran\n");

    fs::rename(stage.path("provost"), stage.path("away")).unwrap();
    let lost = commit(&stage, "docs/b.txt");
    assert!(
        lost.exit != 0 && lost.stderr.contains("HOOK_BROKEN"),
        "{lost:?}"
    );
    fs::rename(stage.path("away"), stage.path("provost")).unwrap();

    let gone = stage.ask(&["hook", "uninstall", "--json"]);
    assert_eq!(
        gone.json["removed"],
        json!([
            "pre-commit",
            "pre-merge-commit",
            "pre-applypatch",
            "pre-push",
            "reference-transaction"
        ]),
        "{gone:?}"
    );
    assert_eq!(fs::read_to_string(&place).unwrap(), own);
    assert!(!stage.path("repo/hooks/pre-push").exists());
}
