//! Sealed runs that are built again and done again, and what a replay never does to them.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

const GOOD: &str = "echo good > src/a.txt; echo new > src/new.txt; chmod +x src/b.txt";

fn keys(outcome: &Outcome, list: &str) -> Vec<String> {
    let rows = outcome.json[list].as_array().cloned().unwrap_or_default();
    let key = |row: &Value| row["key"].as_str().unwrap_or_default().to_owned();
    rows.iter().map(key).collect()
}

/// Everything that was sealed, byte by byte.
fn sealed(stage: &Stage, run: &str) -> Vec<(String, Vec<u8>)> {
    let manifest = fs::read(stage.evidence(run, "manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let names = manifest["evidence_hashes"].as_object().unwrap().keys();
    let beside = ["manifest.json", "attestation.dsse.json"].map(str::to_owned);
    names
        .cloned()
        .chain(beside)
        .map(|name| (name.clone(), fs::read(stage.evidence(run, &name)).unwrap()))
        .collect()
}

#[test]
fn every_file_of_an_accepted_and_of_a_refused_run_is_built_again() {
    let stage = Stage::new();
    let cases = [
        (GOOD, "OK"),
        ("echo x > outside.txt", "DIFF_REFUSED"),
        ("echo bad > src/a.txt", "ACCEPTANCE_FAILED"),
        ("exit 3", "AGENT_FAILED"),
    ];
    for (script, code) in cases {
        let run = stage.run(script, &Ask::default());
        assert_eq!(run.code(), code, "{run:?}");
        let before = stage.everything();
        let again = stage.ask(&["replay", run.text("run_id"), "--json"]);
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
        assert_eq!(before.differences(&stage.everything()), [""; 0], "{code}");
    }
}

#[test]
fn a_run_is_done_again_as_often_as_one_likes() {
    let stage = Stage::new();
    let run = stage.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let before = sealed(&stage, &id);
    let around = stage.surroundings();
    for number in 1..=2 {
        let again = stage.ask(&["replay", &id, "--reexec", "--json"]);
        assert_eq!(again.exit, 0, "{again:?}");
        assert_eq!(again.json["status"], "pass");
        let report = format!("after/replay-{number}/reexec_report.json");
        assert_eq!(again.text("report"), report);
        assert!(stage.evidence(&id, &report).is_file());
        let verified = stage.verify(&id);
        assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
    }
    assert_eq!(before, sealed(&stage, &id));
    stage.assert_clean(&around, "replay");
    // The run and its evidence are unchanged.
    let landed = stage.ask(&["land", &id, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    let again = stage.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(stage.verify(&id).exit, 0);
}

/// A command that comes out differently is a hard difference, and its output a soft one.
#[test]
fn a_command_with_another_result_is_reported() {
    let stage = Stage::new();
    // The layer is another one whenever it is made, and the command wants the first.
    stage.commit(&[
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
    let run = stage.run("cp deps/stamp src/stamp", &Ask::default());
    assert_eq!(run.code(), "OK", "{run:?}");
    let id = run.text("run_id").to_owned();
    let again = stage.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(keys(&again, "hard_diffs"), [""; 0]);

    fs::rename(stage.path("cache/provost"), stage.path("cache/away")).unwrap();
    let file = stage.path("home/report.json").display().to_string();
    let again = stage.ask(&["replay", &id, "--reexec", "--out", &file, "--json"]);
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
    let verified = stage.verify(&id);
    assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
}

#[test]
fn evidence_that_was_altered_is_not_replayed() {
    let stage = Stage::new();
    let run = stage.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let report = stage.evidence(&id, "reports/test_report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("PASS", "FAIL")).unwrap();
    for words in [
        &["replay", &id, "--json"][..],
        &["replay", &id, "--reexec", "--json"],
    ] {
        let again = stage.ask(words);
        assert_eq!(
            (again.code(), again.exit),
            ("EVIDENCE_ALTERED", 5),
            "{again:?}"
        );
    }
    assert!(!stage.evidence(&id, "after").exists());
}

/// An added line about a replay that never happened does not count.
#[test]
fn an_unsigned_replay_is_no_replay() {
    let stage = Stage::new();
    let run = stage.run(GOOD, &Ask::default());
    let id = run.text("run_id").to_owned();
    let again = stage.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    let report = stage.evidence(&id, "after/replay-1/reexec_report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("\"pass\"", "\"fail\"")).unwrap();
    let verified = stage.verify(&id);
    assert_eq!(
        (verified.code(), verified.exit),
        ("EVIDENCE_ALTERED", 5),
        "{verified:?}"
    );
    fs::remove_file(&report).unwrap();
    let verified = stage.verify(&id);
    assert_eq!(
        (verified.code(), verified.exit),
        ("EVIDENCE_INCOMPLETE", 5),
        "{verified:?}"
    );
}

/// Trees that were swept out of git come back from the bundle.
#[test]
fn a_swept_run_is_replayed_from_its_bundle() {
    let stage = Stage::new();
    let run = stage.run("echo x > outside.txt", &Ask::default());
    let id = run.text("run_id").to_owned();
    for line in stage
        .git(&["for-each-ref", "--format=%(refname)", "refs/provost"])
        .lines()
    {
        stage.git(&["update-ref", "-d", line]);
    }
    stage.git(&["gc", "-q", "--prune=now"]);
    let tree = run.text("tree");
    let mut gone = stage.command("git");
    gone.args(["cat-file", "-e", tree]);
    assert_ne!(stage.spawn(gone).wait().exit, 0, "the tree is still there");
    let again = stage.ask(&["replay", &id, "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    let again = stage.ask(&["replay", &id, "--reexec", "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
}
