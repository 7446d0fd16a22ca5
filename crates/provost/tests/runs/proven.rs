//! The self-test of the sandboxes: once for each start of the machine, and never believed blindly.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::stage::{Ask, Stage};

/// What the last run says about its two sandboxes: whether they were attacked before.
fn cached(stage: &Stage) -> [bool; 2] {
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    let run = stage.last_run().unwrap();
    let bytes = fs::read(stage.evidence(&run, "sandbox/selftest.json")).unwrap();
    let test: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(test["held"], true, "{test}");
    assert!(!test["boot"].as_str().unwrap().is_empty(), "{test}");
    ["agent", "acceptance"].map(|name| {
        let attempts = test[name]["attempts"].as_array().unwrap();
        for wanted in ["secret_read", "git_write", "resolve", "io_uring"] {
            let attempt = attempts.iter().find(|one| one["name"] == wanted);
            assert_eq!(attempt.unwrap()["held"], true, "{name} {wanted}");
        }
        test[name]["cached"].as_bool().unwrap()
    })
}

/// The files that remember self-tests.
fn memory(stage: &Stage) -> Vec<PathBuf> {
    let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten();
    below(stage.path("cache/provost"))
        .flat_map(|cache| below(cache.unwrap().path().join("sandboxes")))
        .flat_map(|start| below(start.unwrap().path()))
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn a_sandbox_is_attacked_once_and_again_when_its_record_cannot_be_trusted() {
    let stage = Stage::new();
    assert_eq!(cached(&stage), [false, false]);
    assert_eq!(cached(&stage), [true, true]);
    let files = memory(&stage);
    assert_eq!(files.len(), 2, "{files:?}");
    for file in &files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    assert_eq!(cached(&stage), [false, false]);
    for file in &files {
        fs::write(file, "{}").unwrap();
    }
    assert_eq!(cached(&stage), [false, false]);
    assert_eq!(cached(&stage), [true, true]);
}

#[test]
fn the_self_test_can_be_asked_for() {
    let stage = Stage::new();
    let outcome = stage.ask(&["sandbox", "selftest", "--json"]);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(outcome.json["held"], true, "{outcome:?}");
    for one in outcome.json["sandboxes"].as_array().unwrap() {
        for probe in one["report"]["probes"].as_array().unwrap() {
            assert_eq!(probe["held"], true, "{probe}");
            assert!(!probe["tried"].as_str().unwrap().is_empty(), "{probe}");
        }
    }
    // Nothing of it is remembered.
    let text = stage.ask(&["sandbox", "selftest"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("escape attempts blocked"), "{text}");
    assert!(text.contains("no_new_privileges"), "{text}");
}

/// Each is a process of its own, which has no self-test of a run to rely on.
#[test]
fn a_sandbox_is_attacked_before_a_preparation_a_replay_and_a_landing() {
    let stage = Stage::new();
    stage.commit(&[
        (
            "provost.toml",
            "[[prepare]]\nname = \"deps\"\nrun = \"sh deps.sh\"\n\
             inputs = [\"package-lock.json\"]\noutputs = [\"deps\"]\n",
        ),
        ("deps.sh", "mkdir deps && echo made > deps/made\n"),
        ("package-lock.json", "one\n"),
        (".gitignore", "/deps/\n/target/\n"),
    ]);
    let attacks = |words: &[&str]| {
        for file in memory(&stage) {
            fs::remove_file(file).unwrap();
        }
        let done = stage.ask(&[words, &["--json"]].concat());
        assert_eq!(done.exit, 0, "{words:?}: {done:?}");
        assert_eq!(memory(&stage).len(), 1, "{words:?}");
    };
    attacks(&["prepare"]);
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id");
    attacks(&["replay", run, "--reexec"]);
    // The target moves, so the commands run once more, on the merge.
    stage.commit(&[("docs/later.md", "later\n")]);
    attacks(&["land", run]);
}
