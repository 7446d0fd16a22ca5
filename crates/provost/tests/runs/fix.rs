//! Runs whose work is refused and fixed by another attempt.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, until};

/// Leaves something that fails first, and fixes it by the evidence of that.
const AGENT: &str = r#"
    if test -z "$PROVOST_EVIDENCE"; then echo bad > src/a.txt; echo note > src/note.txt; exit; fi
    test "$(cat src/a.txt)" = bad && test -e src/note.txt || exit 31
    test -e ~/thread || exit 32
    grep -q '"parent_task_id"' $PROVOST_CONTRACT || exit 33
    grep -q 'What came of it so far' $PROVOST_CONTRACT || exit 34
    cat $PROVOST_EVIDENCE/* > /dev/null || exit 35
    echo x > $PROVOST_EVIDENCE/new && exit 36
    echo good > src/a.txt
"#;

fn run(stage: &Stage, more: &[&str]) -> Outcome {
    let script = AGENT.replace("echo bad >", "touch ~/thread; echo bad >");
    let ask = Ask {
        more,
        ..Ask::default()
    };
    stage.run(&script, &ask)
}

fn events(stage: &Stage, run: &str) -> Vec<Value> {
    let text = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

#[test]
fn a_failed_command_is_fixed_by_another_attempt() {
    for policy in ["", "[workspace]\nkind = \"overlay\"\n"] {
        let stage = Stage::new();
        stage.commit(&[
            ("provost.toml", policy),
            ("check.sh", "cat src/a.txt; grep -q good src/a.txt\n"),
        ]);
        let before = stage.surroundings();
        let outcome = run(&stage, &["--retries", "2"]);
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
        stage.assert_clean(&before, policy);
        assert_eq!(outcome.json["attempts"], 2);
        let before = &outcome.json["refused_before"];
        assert_eq!(before[0]["code"], "ACCEPTANCE_FAILED", "{before}");
        let changed = &outcome.json["changed_files"];
        assert_eq!(
            *changed,
            json!(["src/a.txt", "src/note.txt"]),
            "against the base"
        );
        the_evidence_is_whole(&stage, &outcome);
        let learned = stage.ask(&["contract", "learn", outcome.text("run_id")]);
        let artifacts = learned.json["inputs"]["artifacts"].as_array().unwrap();
        assert_eq!(
            artifacts.len(),
            1,
            "evidence of this run means nothing in another"
        );
        assert!(learned.json["parent_task_id"].is_null(), "{learned:?}");
    }
}

fn the_evidence_is_whole(stage: &Stage, outcome: &Outcome) {
    let run = outcome.text("run_id");
    let verified = stage.verify(run);
    assert_eq!(verified.exit, 0, "{verified:?}");
    let events = events(stage, run);
    let of = |kind: &str| events.iter().find(|event| event["event_type"] == kind);
    let fix = of("FIX_LOOP_ATTEMPT").unwrap();
    let task = fix["payload"]["contract"]["task_id"].as_str().unwrap();
    let text = fs::read(stage.evidence(run, &format!("tasks/{task}/contract.json"))).unwrap();
    let contract: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(contract, fix["payload"]["contract"]);
    let evidence = &contract["inputs"]["artifacts"][1];
    assert_eq!(evidence["uri"], "ci/candidate/1.stdout.log", "{contract}");
    let log = fs::read_to_string(stage.evidence(run, "ci/candidate/1.stdout.log")).unwrap();
    assert_eq!(log, "bad\n", "what failed first is still there");
    assert!(stage.evidence(run, "ci/fix-1/1.stdout.log").exists());
    the_work_of_every_attempt_is_there(stage, outcome, task);
    let kept = stage.git(&["for-each-ref", "--format=%(refname)", "refs/provost/runs"]);
    assert_eq!(kept.lines().count(), 2, "{kept}");
    let shown = stage.ask(&["show", run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = "attempt 1 was refused[ACCEPTANCE_FAILED]";
    assert!(shown.contains(line), "{shown}");
    assert!(shown.contains("its work: patches/"), "{shown}");
    let replayed = stage.ask(&["replay", run, "--json"]);
    assert_eq!(replayed.exit, 0, "{replayed:?}");
    let why = stage.ask(&["why", run]);
    assert!(!String::from_utf8_lossy(&why.stdout).contains("ACCEPTANCE_FAILED"));
    let landed = stage.ask(&["land", run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.verify(run).exit, 0);
}

/// The patch and the objects of the attempt that was refused, and of the one that fixed it.
fn the_work_of_every_attempt_is_there(stage: &Stage, outcome: &Outcome, task: &str) {
    let run = outcome.text("run_id");
    let first = outcome.json["refused_before"][0]["patch"].as_str().unwrap();
    let second = format!("patches/{task}.2.diff");
    let text = |name: &str| fs::read_to_string(stage.evidence(run, name)).unwrap();
    assert!(text(first).contains("+bad\n"), "{}", text(first));
    assert!(text(&second).contains("+good\n"));
    assert_eq!(text(&second), text("patch.diff"));
    let manifest: Value = serde_json::from_str(&text("manifest.json")).unwrap();
    let row = &manifest["x_provost"]["facts"]["earlier_attempts"][0];
    assert_eq!(row["patch"], first, "{row}");
    assert!(manifest["evidence_hashes"][first].is_string());
    // The objects of both are there, for a reader who has the bundle alone.
    let alone = stage.path("alone");
    let _ = fs::remove_dir_all(&alone);
    let place = alone.display().to_string();
    stage.git(&["init", "-q", "--bare", &place]);
    let pack = fs::File::open(stage.evidence(run, "git/objects.pack")).unwrap();
    let mut index = stage.command("git");
    index
        .args(["-C", &place, "index-pack", "--stdin"])
        .stdin(pack);
    assert!(index.status().unwrap().success());
    let tree = row["tree"].as_str().unwrap();
    for (tree, want) in [(tree, "bad"), (outcome.text("tree"), "good")] {
        let object = format!("{tree}:src/a.txt");
        assert_eq!(stage.git(&["-C", &place, "cat-file", "-p", &object]), want);
    }
    // Without it the bundle is not whole.
    let (path, bytes) = (stage.evidence(run, first), text(first));
    fs::remove_file(&path).unwrap();
    assert_eq!(stage.verify(run).exit, 5);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn what_a_reviewer_refuses_is_fixed_too_and_not_for_ever() {
    let stage = Stage::new();
    let script = r#"verdict=FAIL; grep -q good $PROVOST_TREE/src/a.txt && verdict=PASS
        printf '{"verdict":"%s","summary":"s","violations":[],"findings":[]}' $verdict > $PROVOST_RESULT"#;
    stage.write("agent/reviewer.sh", script);
    let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
    let outcome = run(&stage, &["--retries", "1", "--review-cmd", &reviewer]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let before = &outcome.json["refused_before"][0]["code"];
    assert_eq!(*before, "REVIEW_REFUSED");
    let run_id = outcome.text("run_id");
    assert_eq!(stage.verify(run_id).exit, 0);
    assert!(stage.evidence(run_id, "reviews/1.report.json").exists());

    let ask = Ask {
        more: &["--retries", "1"],
        ..Ask::default()
    };
    let outcome = stage.run("echo bad > src/a.txt", &ask);
    assert_eq!(outcome.code(), "ACCEPTANCE_FAILED", "{outcome:?}");
    let run_id = outcome.text("run_id");
    let last = events(&stage, run_id);
    let exhausted = last
        .iter()
        .filter(|it| it["event_type"] == "FIX_LOOP_EXHAUSTED");
    assert_eq!(exhausted.count(), 1);
    assert_eq!(stage.verify(run_id).exit, 0);
}

#[test]
fn what_strays_is_never_tried_again() {
    let stage = Stage::new();
    let ask = Ask {
        more: &["--retries", "3"],
        ..Ask::default()
    };
    let outcome = stage.run("echo bad > docs/readme.md", &ask);
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    assert_eq!(outcome.json["attempts"], 1);
}

#[test]
fn a_wait_survives_its_driver_and_can_be_cancelled() {
    let stage = Stage::new();
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["rollback"]["baseline_ref"] = json!("HEAD");
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["timeout_retry"] =
        json!({ "timeout_sec": 60, "max_retries": 1, "retry_backoff_sec": 3600 });
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent("echo bad > src/a.txt");
    let before = stage.surroundings();
    let words = ["run", "--json", "-f", &file, "--agent-cmd", &agent];
    let waits = |times: usize| {
        until("it waits", || {
            let run = stage.last_run();
            let text =
                run.and_then(|run| fs::read_to_string(stage.evidence(&run, "events.jsonl")).ok());
            text.is_some_and(|text| text.matches(r#""payload":{"step":"fix"}"#).count() == times)
        });
    };
    let running = stage.spawn(stage.provost(&words));
    waits(1);
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let running = stage.spawn(stage.provost(&["resume", "--json"]));
    waits(2);
    running.signal(rustix::process::Signal::INT);
    let outcome = running.wait();
    assert_eq!(
        outcome.json[0]["verdict"]["code"], "CANCELLED",
        "{outcome:?}"
    );
    let gate = &outcome.json[0]["gates"]["acceptance"]["code"];
    assert_eq!(*gate, "ACCEPTANCE_FAILED");
    stage.assert_clean(&before, "cancelled");
    assert_eq!(stage.verify(&stage.last_run().unwrap()).exit, 0);
}
