//! Commits and pushes that are held to a contract, with the git of this machine.

mod bound;
mod hidden;
mod speed;
mod way_on;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::scene::{Outcome, Scene};

/// A contract that opens `src/greet`.
fn contract(scene: &Scene) -> String {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract.yaml"
    ));
    scene.write("home/contract.yaml", text);
    scene.path("home/contract.yaml").display().to_string()
}

fn git(scene: &Scene, words: &[&str]) -> Outcome {
    let mut command = scene.command("git");
    command.args(words);
    scene.spawn(command).wait()
}

/// Stages `path` and commits; the answer is git's.
fn commit(scene: &Scene, path: &str) -> Outcome {
    scene.write(&format!("repo/{path}"), "work\n");
    scene.git(&["add", path]);
    git(scene, &["commit", "-q", "-m", "work"])
}

#[test]
fn a_bound_checkout_takes_only_what_its_contract_covers() {
    let scene = Scene::new();
    let file = contract(&scene);
    let bound = scene.ask(&["hook", "bind", &file, "--json"]);
    assert_eq!(bound.exit, 0, "{bound:?}");
    assert_eq!(scene.ask(&["hook", "install"]).exit, 0);
    let inside = commit(&scene, "src/greet/a.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");
    let outside = commit(&scene, "docs/a.txt");
    assert_ne!(outside.exit, 0);
    assert!(outside.stderr.contains("DIFF_REFUSED"), "{outside:?}");
    scene.git(&["reset", "-q", "--hard"]);
    let governing = commit(&scene, "src/greet/CLAUDE.md");
    assert_ne!(governing.exit, 0, "{governing:?}");
    scene.git(&["reset", "-q", "--hard"]);

    // What is committed although nobody was asked is seen when it is pushed.
    scene.git(&[
        "init",
        "-q",
        "--bare",
        &scene.path("remote").display().to_string(),
    ]);
    let remote = scene.path("remote").display().to_string();
    let pushed = git(&scene, &["push", "-q", &remote, "main"]);
    assert_eq!(pushed.exit, 0, "{pushed:?}");
    scene.write("repo/docs/a.txt", "work\n");
    scene.git(&["add", "docs/a.txt"]);
    let around = git(&scene, &["commit", "-q", "--no-verify", "-m", "work"]);
    assert_ne!(around.exit, 0, "{around:?}");
    let none = "core.hooksPath=/dev/null";
    scene.git(&["-c", none, "commit", "-q", "-m", "work"]);
    let pushed = git(&scene, &["push", "-q", &remote, "main"]);
    assert_ne!(pushed.exit, 0);
    assert!(pushed.stderr.contains("DIFF_REFUSED"), "{pushed:?}");
    assert!(scene.workspaces().is_empty(), "{:?}", scene.workspaces());
}

#[test]
fn a_contract_that_is_missing_changed_or_broken_refuses() {
    let scene = Scene::new();
    let file = contract(&scene);
    let text = fs::read_to_string(&file).unwrap();
    for words in [
        &["hook", "bind", &file, "--branch", "main"][..],
        &["hook", "install"],
    ] {
        assert_eq!(scene.ask(words).exit, 0);
    }
    fs::write(&file, text.replace("src/greet", "docs")).unwrap();
    let changed = commit(&scene, "src/greet/a.txt");
    assert!(
        changed.exit != 0 && changed.stderr.contains("was changed"),
        "{changed:?}"
    );
    fs::remove_file(&file).unwrap();
    let missing = commit(&scene, "src/greet/b.txt");
    assert!(
        missing.exit != 0 && missing.stderr.contains("is missing"),
        "{missing:?}"
    );
    let status = scene.ask(&["hook", "status", "--json"]);
    let problem = status.json.pointer("/bindings/0/problem").unwrap();
    assert!(problem.to_string().contains("is missing"), "{status:?}");
    fs::write(&file, &text).unwrap();
    let inside = commit(&scene, "src/greet/a.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");

    scene.write("repo/.provost/hooks.json", "{");
    let broken = commit(&scene, "src/greet/c.txt");
    assert!(
        broken.exit != 0 && broken.stderr.contains("HOOK_BROKEN"),
        "{broken:?}"
    );

    fs::write(&file, "task_id: nothing\n").unwrap();
    let refused = scene.ask(&["hook", "bind", &file, "--json"]);
    assert_eq!(
        (refused.code(), refused.exit),
        ("INPUT_INVALID", 2),
        "{refused:?}"
    );
}

#[test]
fn without_a_binding_everything_passes_unless_one_is_required() {
    let scene = Scene::new();
    assert_eq!(scene.ask(&["hook", "install"]).exit, 0);
    assert_eq!(commit(&scene, "docs/a.txt").exit, 0);
    assert_eq!(scene.ask(&["hook", "install", "--require"]).exit, 0);
    let refused = commit(&scene, "docs/b.txt");
    assert!(
        refused.exit != 0 && refused.stderr.contains("HOOK_UNBOUND"),
        "{refused:?}"
    );
    let file = contract(&scene);
    scene.git(&["reset", "-q", "--hard"]);
    assert_eq!(scene.ask(&["hook", "bind", &file]).exit, 0);
    assert_eq!(commit(&scene, "src/greet/a.txt").exit, 0);
    assert_eq!(scene.ask(&["hook", "unbind"]).exit, 0);
    assert_ne!(commit(&scene, "src/greet/b.txt").exit, 0);
    let none = scene.ask(&["hook", "unbind", "--json"]);
    assert_eq!((none.code(), none.exit), ("NOT_FOUND", 2));
}

#[test]
fn hooks_that_were_there_are_called_and_come_back_and_a_lost_binary_refuses() {
    let scene = Scene::new();
    scene.copy_binary();
    scene.git(&["config", "core.hooksPath", "hooks"]);
    let own = "#!/bin/sh\necho ran >> ../own\n";
    scene.write("repo/hooks/pre-commit", own);
    let place = scene.path("repo/hooks/pre-commit");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let installed = scene.ask(&["hook", "install", "--json"]);
    assert_eq!(installed.exit, 0, "{installed:?}");
    assert_eq!(commit(&scene, "docs/a.txt").exit, 0);
    assert_eq!(fs::read_to_string(scene.path("own")).unwrap(), "ran\n");

    fs::rename(scene.path("provost"), scene.path("away")).unwrap();
    let lost = commit(&scene, "docs/b.txt");
    assert!(
        lost.exit != 0 && lost.stderr.contains("HOOK_BROKEN"),
        "{lost:?}"
    );
    fs::rename(scene.path("away"), scene.path("provost")).unwrap();

    let gone = scene.ask(&["hook", "uninstall", "--json"]);
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
    assert!(!scene.path("repo/hooks/pre-push").exists());
}
