//! Sealed runs that are built again and done again, and what a replay never does to them.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Ask, Outcome, Scene};

const GOOD: &str = "echo good > src/a.txt; echo new > src/new.txt; chmod +x src/b.txt";

fn keys(outcome: &Outcome, list: &str) -> Vec<String> {
    let rows = outcome.json[list].as_array().cloned().unwrap_or_default();
    let key = |row: &Value| row["key"].as_str().unwrap_or_default().to_owned();
    rows.iter().map(key).collect()
}

/// Everything that was sealed, byte by byte.
fn sealed(scene: &Scene, run: &str) -> Vec<(String, Vec<u8>)> {
    let manifest = fs::read(scene.evidence(run, "manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let names = manifest["evidence_hashes"].as_object().unwrap().keys();
    let beside = ["manifest.json", "attestation.dsse.json"].map(str::to_owned);
    names
        .cloned()
        .chain(beside)
        .map(|name| (name.clone(), fs::read(scene.evidence(run, &name)).unwrap()))
        .collect()
}

#[test]
fn every_file_of_an_accepted_and_of_a_refused_run_is_built_again() {
    let scene = Scene::new();
    let cases = [
        (GOOD, "OK"),
        ("echo x > outside.txt", "DIFF_REFUSED"),
        ("echo bad > src/a.txt", "ACCEPTANCE_FAILED"),
        ("exit 3", "AGENT_FAILED"),
    ];
    for (script, code) in cases {
        let run = scene.run(script, &Ask::default());
        assert_eq!(run.code(), code, "{run:?}");
        let before = scene.everything();
        let again = scene.ask(&["replay", run.text("run_id"), "--json"]);
        assert_eq!(again.exit, 0, "{code}: {again:?}");
        assert_eq!(again.json["hard_diffs"], json!([]), "{code}");
        let built = again.json["built"].to_string();
        for name in [
            "contract.json",
            "patch.diff",
            "diff_name_only.txt",
            "manifest.json",
            "attestation.dsse.json",
            "reports/test_report.json",
            "reports/task_result.json",
            "reports/evidence_report.json",
        ] {
            assert!(built.contains(&format!("\"{name}\"")), "{code}: {built}");
        }
        assert_eq!(before.differences(&scene.everything()), [""; 0], "{code}");
    }
}

#[test]
fn a_run_is_done_again_as_often_as_one_likes() {
    let scene = Scene::new();
    let run = scene.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let before = sealed(&scene, &id);
    let around = scene.surroundings();
    for number in 1..=2 {
        let again = scene.ask(&["replay", &id, "--reexec", "--json"]);
        assert_eq!(again.exit, 0, "{again:?}");
        assert_eq!(again.json["status"], "pass");
        let report = format!("after/replay-{number}/reexec_report.json");
        assert_eq!(again.text("report"), report);
        assert!(scene.evidence(&id, &report).is_file());
        let verified = scene.verify(&id);
        assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
    }
    assert_eq!(before, sealed(&scene, &id));
    scene.assert_clean(&around, "replay");
    // It is still the same run to everybody else.
    let landed = scene.ask(&["land", &id, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    let again = scene.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(scene.verify(&id).exit, 0);
}

/// A command that comes out differently is a hard difference, and its output a soft one.
#[test]
fn a_command_that_changes_its_mind_is_told() {
    let scene = Scene::new();
    // The layer is another one whenever it is made, and the command wants the first.
    scene.commit(&[
        (
            "provost.toml",
            "[[prepare]]\nname = \"deps\"\nrun = \"sh deps.sh\"\n\
             inputs = [\"package-lock.json\"]\noutputs = [\"deps\"]\n",
        ),
        ("deps.sh", "mkdir deps && date +%s.%N > deps/stamp\n"),
        ("package-lock.json", "one\n"),
        ("check.sh", "cat deps/stamp; cmp deps/stamp src/stamp\n"),
        (".gitignore", "/deps/\n/target/\n"),
    ]);
    let run = scene.run("cp deps/stamp src/stamp", &Ask::default());
    assert_eq!(run.code(), "OK", "{run:?}");
    let id = run.text("run_id").to_owned();
    let again = scene.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(keys(&again, "hard_diffs"), [""; 0]);

    fs::rename(scene.path("cache/provost"), scene.path("cache/away")).unwrap();
    let file = scene.path("home/report.json").display().to_string();
    let again = scene.ask(&["replay", &id, "--reexec", "--out", &file, "--json"]);
    assert_eq!(again.exit, 1, "{again:?}");
    assert_eq!(
        keys(&again, "hard_diffs"),
        ["candidate accept-1 ending", "gate acceptance"]
    );
    let soft = keys(&again, "soft_diffs");
    assert!(
        soft.contains(&"candidate accept-1 stdout".to_owned()),
        "{soft:?}"
    );
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(written["status"], "fail");
    let verified = scene.verify(&id);
    assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
}

#[test]
fn evidence_that_was_altered_is_not_replayed() {
    let scene = Scene::new();
    let run = scene.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let report = scene.evidence(&id, "reports/test_report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("PASS", "FAIL")).unwrap();
    for words in [
        &["replay", &id, "--json"][..],
        &["replay", &id, "--reexec", "--json"],
    ] {
        let again = scene.ask(words);
        assert_eq!(
            (again.code(), again.exit),
            ("EVIDENCE_ALTERED", 5),
            "{again:?}"
        );
    }
    assert!(!scene.evidence(&id, "after").exists());
}

/// A line that somebody adds about a replay that never was does not count.
#[test]
fn a_replay_that_nobody_signed_is_no_replay() {
    let scene = Scene::new();
    let run = scene.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let again = scene.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    let report = scene.evidence(&id, "after/replay-1/reexec_report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("\"pass\"", "\"fail\"")).unwrap();
    let verified = scene.verify(&id);
    assert_eq!(
        (verified.code(), verified.exit),
        ("EVIDENCE_ALTERED", 5),
        "{verified:?}"
    );
    fs::remove_file(&report).unwrap();
    let verified = scene.verify(&id);
    assert_eq!(
        (verified.code(), verified.exit),
        ("EVIDENCE_INCOMPLETE", 5),
        "{verified:?}"
    );
}

/// Trees that were swept out of git come back from the bundle.
#[test]
fn a_swept_run_is_replayed_from_its_bundle() {
    let scene = Scene::new();
    let run = scene.run("echo x > outside.txt", &Ask::default());
    let id = run.text("run_id").to_owned();
    for line in scene
        .git(&["for-each-ref", "--format=%(refname)", "refs/provost"])
        .lines()
    {
        scene.git(&["update-ref", "-d", line]);
    }
    scene.git(&["gc", "-q", "--prune=now"]);
    let tree = run.text("tree");
    let mut gone = scene.command("git");
    gone.args(["cat-file", "-e", tree]);
    assert_ne!(scene.spawn(gone).wait().exit, 0, "the tree is still there");
    let again = scene.ask(&["replay", &id, "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    let again = scene.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
}
