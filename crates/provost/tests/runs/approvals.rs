//! Contracts from files that ask for more than the policy lets pass, and what a person answers.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{Outcome, Scene};

const COMMANDS: &str = "[commands]\nallow = [\"sh check.sh\"]\n";
const WORK: &str = "echo good > src/a.txt; echo x > src/tox.ini";

/// A scene whose policy is `COMMANDS` and `more`.
fn scene(more: &str) -> Scene {
    let scene = Scene::new();
    scene.commit(&[("provost.toml", &format!("{COMMANDS}{more}"))]);
    scene
}

/// Runs a contract from a file, with `extra` in its `x_provost`.
fn run(scene: &Scene, paths: &[&str], extra: &Value) -> Outcome {
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(paths);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["x_provost"] = extra.clone();
    scene.write("contract.json", &contract.to_string());
    let file = scene.path("contract.json").display().to_string();
    let agent = scene.agent(WORK);
    scene.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

/// Runs one that asks about a broad path and a file that decides.
fn wide(scene: &Scene) -> (Outcome, String) {
    let extra = json!({ "permit": { "oracle": ["src/tox.ini"] } });
    let outcome = run(scene, &["src"], &extra);
    let want = (3, "APPROVAL_NEEDED");
    assert_eq!((outcome.exit, outcome.code()), want, "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    (outcome, run)
}

#[test]
fn a_run_waits_for_a_person_and_holds_nothing_meanwhile() {
    let scene = scene("");
    let before = scene.surroundings();
    let (asks, run) = wide(&scene);
    let places: Vec<String> = asks.findings().into_iter().map(|(_, path)| path).collect();
    assert_eq!(places, ["/allowed_paths/0", "/x_provost/permit/oracle/0"]);
    scene.assert_clean(&before, "waiting");
    let file = scene.path("contract.json").display().to_string();
    for words in [["check", "contract"], ["contract", "lint"]] {
        let told = scene.ask(&[words[0], words[1], &file, "--json"]);
        let foreseen = told.json["asks"].as_array().unwrap();
        let paths: Vec<&str> = foreseen
            .iter()
            .filter_map(|it| it["path"].as_str())
            .collect();
        assert_eq!(paths, places, "{words:?} foresees what the run asks");
    }

    let told = String::from_utf8(scene.ask(&["show", &run]).stdout).unwrap();
    let digest = asks.json.pointer("/verdict/details/digest").unwrap();
    let digest = digest.as_str().unwrap();
    for part in ["waiting for approval", "src/tox.ini", "agent.sh", digest] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let status = String::from_utf8(scene.ask(&["status"]).stdout).unwrap();
    assert!(status.contains("WAITING"), "{status}");
    assert!(status.contains("provost approve"), "{status}");
    let all = scene.ask(&["resume"]);
    assert_eq!(all.exit, 0, "{all:?}");
    let alone = scene.ask(&["resume", &run, "--json"]);
    assert_eq!(
        (alone.exit, alone.code()),
        (3, "APPROVAL_NEEDED"),
        "{alone:?}"
    );
    scene.assert_clean(&before, "still waiting");

    let other = "0".repeat(64);
    let wrong = scene.ask(&["approve", &run, "--digest", &other, "--json"]);
    assert_eq!(
        (wrong.exit, wrong.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{wrong:?}"
    );
    let yes = scene.ask(&["approve", &run, "--digest", digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    let again = scene.ask(&["approve", &run, "--json"]);
    assert_eq!(
        (again.exit, again.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{again:?}"
    );
    let done = scene.ask(&["resume", &run, "--json"]);
    assert_eq!(
        (done.exit, &done.json[0]["verdict"]["code"]),
        (0, &json!("OK")),
        "{done:?}"
    );
    scene.assert_clean(&before, "done");
    let told = String::from_utf8(scene.ask(&["show", &run]).stdout).unwrap();
    for part in ["approved by ", "src/tox.ini"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(scene.verify(&run).exit, 0);
    let ledger = fs::read_to_string(scene.evidence(&run, "events.jsonl")).unwrap();
    let uid = rustix::process::getuid().as_raw();
    assert!(ledger.contains(&format!("\"uid\":{uid}")), "{ledger}");
    assert_eq!(
        ledger.matches(digest).count(),
        2,
        "asked and answered: {ledger}"
    );
}

#[test]
fn a_yes_is_good_for_its_time_and_can_be_given_again() {
    let scene = scene("");
    let before = scene.surroundings();
    let (_, run) = wide(&scene);
    let yes = scene.ask(&["approve", &run, "--for", "1s", "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    sleep(Duration::from_millis(1100));
    let late = scene.ask(&["resume", &run, "--json"]);
    let code = &late.json[0]["verdict"]["code"];
    assert_eq!(
        (late.exit, code),
        (3, &json!("APPROVAL_NEEDED")),
        "{late:?}"
    );
    scene.assert_clean(&before, "too late");
    let done = scene.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    assert_eq!(scene.verify(&run).exit, 0);
    let long = scene.ask(&["approve", &run, "--for", "8d", "--json"]);
    assert_eq!((long.exit, long.code()), (2, "USAGE_ERROR"), "{long:?}");
}

#[test]
fn a_no_is_sealed_and_nothing_else_was_done() {
    let scene = scene("");
    let before = scene.surroundings();
    let (_, run) = wide(&scene);
    let no = scene.ask(&["reject", &run, "--reason", "too wide", "--json"]);
    assert_eq!((no.exit, no.code()), (0, "APPROVAL_REJECTED"), "{no:?}");
    assert_eq!(scene.verify(&run).exit, 0);
    scene.assert_clean(&before, "rejected");
    let ledger = fs::read_to_string(scene.evidence(&run, "events.jsonl")).unwrap();
    assert!(ledger.contains("too wide"), "{ledger}");
    assert!(!ledger.contains("STEP_STARTED"), "{ledger}");
    let late = scene.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!(
        (late.exit, late.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{late:?}"
    );
}

#[test]
fn the_policy_of_the_base_says_what_nobody_is_asked_about() {
    let scene = scene("[approve]\npaths = [\"src\"]\noracle = [\"src/tox.ini\"]\n");
    let extra = json!({ "permit": { "oracle": ["src/tox.ini"] } });
    let outcome = run(&scene, &["src"], &extra);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    // The checkout's own copy of the policy has no say, and neither has another author.
    let open = "[approve]\nauthors = [\"agent\"]\nnet = [\"a.example:443\"]\n";
    scene.write("repo/provost.toml", &format!("{COMMANDS}{open}"));
    let cases = [
        (json!({ "author": "agent" }), "/x_provost/author"),
        (
            json!({ "permit": { "governing": ["CLAUDE.md"] } }),
            "/x_provost/permit/governing/0",
        ),
        (
            json!({ "permit": { "fewer_tests": true } }),
            "/x_provost/permit/fewer_tests",
        ),
    ];
    for (extra, want) in cases {
        let outcome = run(&scene, &["src/a.txt"], &extra);
        assert_eq!(outcome.code(), "APPROVAL_NEEDED", "{outcome:?}");
        let places: Vec<String> = outcome.findings().into_iter().map(|it| it.1).collect();
        assert_eq!(places, [want]);
    }
    let narrow = run(&scene, &["src/a.txt", "src/tox.ini"], &json!({}));
    assert_eq!(
        narrow.code(),
        "DIFF_REFUSED",
        "nobody was asked: {narrow:?}"
    );
}

#[test]
fn a_run_that_waits_is_cancelled_and_a_second_try_asks_again() {
    let scene = scene("");
    let before = scene.surroundings();
    let (_, run) = wide(&scene);
    let open = scene.ask(&["retry", &run, "--json"]);
    assert_eq!((open.exit, open.code()), (3, "RUN_UNFINISHED"), "{open:?}");
    let done = scene.ask(&["cancel", &run, "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    assert_eq!(scene.verify(&run).exit, 0);
    let again = scene.ask(&["retry", &run, "--json"]);
    assert_eq!(
        (again.exit, again.code()),
        (3, "APPROVAL_NEEDED"),
        "{again:?}"
    );
    let done = scene.ask(&["approve", again.text("run_id"), "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    scene.assert_clean(&before, "again");
}

#[test]
fn a_run_that_was_approved_says_so_and_goes_on_and_one_that_is_over_does_not() {
    let scene = scene("");
    let text = |outcome: Outcome| String::from_utf8_lossy(&outcome.stdout).into_owned();
    let (_, run) = wide(&scene);
    let why = scene.ask(&["why", &run]);
    assert_eq!(why.exit, 3, "{why:?}");
    assert!(text(why).contains("provost approve"));
    let yes = scene.ask(&["approve", &run]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    for words in ["status", "runs"] {
        let told = text(scene.ask(&[words]));
        assert!(told.contains("APPROVED"), "{words}: {told}");
    }
    let status = text(scene.ask(&["status"]));
    let next = format!("next: provost resume {run}");
    assert!(status.contains(&next), "{status}");
    // It was not interrupted: it has not begun.
    let agent = scene.agent(WORK);
    let words = ["run", "x", "--allow", "src", "--accept", "sh check.sh"];
    let other = scene.ask(&[&words[..], &["--agent-cmd", &agent]].concat());
    let again = scene.ask(&["retry", &run]);
    for told in [&other.stderr, &again.stderr] {
        let words = format!("{run} was approved and has not begun");
        assert!(told.contains(&words), "{told}");
    }
    let done = scene.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    let over = scene.ask(&["resume", &run, "--json"]);
    assert_eq!((over.exit, over.code()), (1, "RUN_OVER"), "{over:?}");
    let hint = over.json.pointer("/details/hint").unwrap();
    assert_eq!(*hint, json!(format!("provost retry {run}")));
}
