//! Contracts from files that ask for more than the policy lets pass, and what a person answers.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};

const COMMANDS: &str = "[commands]\nallow = [\"sh check.sh\"]\n";
const WORK: &str = "echo good > src/a.txt; echo x > src/tox.ini";

/// A stage whose policy is `COMMANDS` and `more`.
fn stage(more: &str) -> Stage {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", &format!("{COMMANDS}{more}"))]);
    stage
}

/// Runs a contract from a file, with `extra` in its `x_provost`.
fn run(stage: &Stage, paths: &[&str], extra: &Value) -> Outcome {
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(paths);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["x_provost"] = extra.clone();
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent(WORK);
    stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

/// Runs one that asks about a broad path and a file that decides.
fn wide(stage: &Stage) -> (Outcome, String) {
    let extra = json!({ "permit": { "oracle": ["src/tox.ini"] } });
    let outcome = run(stage, &["src"], &extra);
    let want = (3, "APPROVAL_NEEDED");
    assert_eq!((outcome.exit, outcome.code()), want, "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    (outcome, run)
}

#[test]
fn a_run_waits_for_a_person_and_holds_nothing_meanwhile() {
    let stage = stage("");
    let before = stage.surroundings();
    let (asks, run) = wide(&stage);
    let places: Vec<String> = asks.findings().into_iter().map(|(_, path)| path).collect();
    assert_eq!(places, ["/allowed_paths/0", "/x_provost/permit/oracle/0"]);
    stage.assert_clean(&before, "waiting");
    let file = stage.path("contract.json").display().to_string();
    for words in [["check", "contract"], ["contract", "lint"]] {
        let shown = stage.ask(&[words[0], words[1], &file, "--json"]);
        let foreseen = shown.json["asks"].as_array().unwrap();
        let paths: Vec<&str> = foreseen
            .iter()
            .filter_map(|it| it["path"].as_str())
            .collect();
        assert_eq!(paths, places, "{words:?} foresees what the run asks");
    }

    let shown = String::from_utf8(stage.ask(&["show", &run]).stdout).unwrap();
    let digest = asks.json.pointer("/verdict/details/digest").unwrap();
    let digest = digest.as_str().unwrap();
    for part in ["waiting for approval", "src/tox.ini", "agent.sh", digest] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let status = String::from_utf8(stage.ask(&["status"]).stdout).unwrap();
    assert!(status.contains("WAITING"), "{status}");
    assert!(status.contains("provost approve"), "{status}");
    let all = stage.ask(&["resume"]);
    assert_eq!(all.exit, 0, "{all:?}");
    let alone = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(
        (alone.exit, alone.code()),
        (3, "APPROVAL_NEEDED"),
        "{alone:?}"
    );
    stage.assert_clean(&before, "still waiting");

    let other = "0".repeat(64);
    let wrong = stage.ask(&["approve", &run, "--digest", &other, "--json"]);
    assert_eq!(
        (wrong.exit, wrong.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{wrong:?}"
    );
    let yes = stage.ask(&["approve", &run, "--digest", digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    let again = stage.ask(&["approve", &run, "--json"]);
    assert_eq!(
        (again.exit, again.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{again:?}"
    );
    let done = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(
        (done.exit, &done.json[0]["verdict"]["code"]),
        (0, &json!("OK")),
        "{done:?}"
    );
    stage.assert_clean(&before, "done");
    let shown = String::from_utf8(stage.ask(&["show", &run]).stdout).unwrap();
    for part in ["approved by ", "src/tox.ini"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(stage.verify(&run).exit, 0);
    let ledger = fs::read_to_string(stage.evidence(&run, "events.jsonl")).unwrap();
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
    let stage = stage("");
    let before = stage.surroundings();
    let (_, run) = wide(&stage);
    let yes = stage.ask(&["approve", &run, "--for", "1s", "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    sleep(Duration::from_millis(1100));
    let late = stage.ask(&["resume", &run, "--json"]);
    let code = &late.json[0]["verdict"]["code"];
    assert_eq!(
        (late.exit, code),
        (3, &json!("APPROVAL_NEEDED")),
        "{late:?}"
    );
    stage.assert_clean(&before, "too late");
    let done = stage.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    assert_eq!(stage.verify(&run).exit, 0);
    let long = stage.ask(&["approve", &run, "--for", "8d", "--json"]);
    assert_eq!((long.exit, long.code()), (2, "USAGE_ERROR"), "{long:?}");
}

#[test]
fn a_no_is_sealed_and_nothing_else_was_done() {
    let stage = stage("");
    let before = stage.surroundings();
    let (_, run) = wide(&stage);
    let no = stage.ask(&["reject", &run, "--reason", "too wide", "--json"]);
    assert_eq!((no.exit, no.code()), (0, "APPROVAL_REJECTED"), "{no:?}");
    assert_eq!(stage.verify(&run).exit, 0);
    stage.assert_clean(&before, "rejected");
    let ledger = fs::read_to_string(stage.evidence(&run, "events.jsonl")).unwrap();
    assert!(ledger.contains("too wide"), "{ledger}");
    assert!(!ledger.contains("STEP_STARTED"), "{ledger}");
    let late = stage.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!(
        (late.exit, late.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{late:?}"
    );
}

#[test]
fn the_policy_of_the_base_says_what_needs_no_approval() {
    let stage = stage("[approve]\npaths = [\"src\"]\noracle = [\"src/tox.ini\"]\n");
    let extra = json!({ "permit": { "oracle": ["src/tox.ini"] } });
    let outcome = run(&stage, &["src"], &extra);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    // The checkout's own copy of the policy has no say, and neither has another author.
    let open = "[approve]\nauthors = [\"agent\"]\nnet = [\"a.example:443\"]\n";
    stage.write("repo/provost.toml", &format!("{COMMANDS}{open}"));
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
        let outcome = run(&stage, &["src/a.txt"], &extra);
        assert_eq!(outcome.code(), "APPROVAL_NEEDED", "{outcome:?}");
        let places: Vec<String> = outcome.findings().into_iter().map(|it| it.1).collect();
        assert_eq!(places, [want]);
    }
    let narrow = run(&stage, &["src/a.txt", "src/tox.ini"], &json!({}));
    assert_eq!(
        narrow.code(),
        "DIFF_REFUSED",
        "no approval was asked for: {narrow:?}"
    );
}

#[test]
fn a_directory_is_broad_by_its_share_of_the_files() {
    let stage = stage("");
    stage.commit(&[("lib/a.txt", "a\n")]);
    let few = run(&stage, &["lib", "src/a.txt", "src/tox.ini"], &json!({}));
    assert_eq!(
        few.code(),
        "DIFF_REFUSED",
        "it was not asked about: {few:?}"
    );
    let names: Vec<String> = (0..30).map(|number| format!("lib/{number}.txt")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    stage.commit(&files);
    let most = run(&stage, &["lib", "src/a.txt"], &json!({}));
    assert_eq!(most.code(), "APPROVAL_NEEDED", "{most:?}");
    let problem = most.json.to_string();
    assert!(
        problem.contains("holds most files of the repository"),
        "{problem}"
    );
}

#[test]
fn a_contract_that_is_changed_while_its_run_waits_is_not_sealed() {
    let stage = stage("");
    let (asks, run) = wide(&stage);
    let digest = asks.json.pointer("/verdict/details/digest").unwrap();
    let digest = digest.as_str().unwrap();
    let file = |name: &str| stage.path(&format!("repo/.provost/runs/{run}/{name}"));
    let kept = fs::read(file("contract.source.json")).unwrap();
    let yes = stage.ask(&["approve", &run, "--digest", digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");

    fs::write(file("contract.source.json"), "{}").unwrap();
    let refused = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(
        (refused.exit, refused.code()),
        (5, "EVIDENCE_ALTERED"),
        "{refused:?}"
    );
    fs::write(file("contract.source.json"), kept).unwrap();

    // The contract itself is in the ledger.
    let altered = fs::read_to_string(file("contract.json")).unwrap();
    fs::write(file("contract.json"), altered.replace("src", "tests")).unwrap();
    let done = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(done.exit, 0, "{done:?}");
    let verified = stage.verify(&run);
    assert_eq!(verified.exit, 0, "{verified:?}");
}

#[test]
fn a_run_that_waits_is_cancelled_and_a_second_try_asks_again() {
    let stage = stage("");
    let before = stage.surroundings();
    let (_, run) = wide(&stage);
    let open = stage.ask(&["retry", &run, "--json"]);
    assert_eq!((open.exit, open.code()), (3, "RUN_UNFINISHED"), "{open:?}");
    let done = stage.ask(&["cancel", &run, "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    assert_eq!(stage.verify(&run).exit, 0);
    let again = stage.ask(&["retry", &run, "--json"]);
    assert_eq!(
        (again.exit, again.code()),
        (3, "APPROVAL_NEEDED"),
        "{again:?}"
    );
    let done = stage.ask(&["approve", again.text("run_id"), "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    stage.assert_clean(&before, "again");
}

#[test]
fn a_run_that_was_approved_says_so_and_continues_and_one_that_is_over_does_not() {
    let stage = stage("");
    let text = |outcome: Outcome| String::from_utf8_lossy(&outcome.stdout).into_owned();
    let (_, run) = wide(&stage);
    let why = stage.ask(&["why", &run]);
    assert_eq!(why.exit, 3, "{why:?}");
    assert!(text(why).contains("provost approve"));
    let yes = stage.ask(&["approve", &run]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    for words in ["status", "runs"] {
        let shown = text(stage.ask(&[words]));
        assert!(shown.contains("APPROVED"), "{words}: {shown}");
    }
    let status = text(stage.ask(&["status"]));
    let next = format!(
        "next: provost resume {}",
        provost_engine::query::short_id(&run)
    );
    assert!(status.contains(&next), "{status}");
    // It was not interrupted: it has not begun.
    let agent = stage.agent(WORK);
    let words = ["run", "x", "--allow", "src", "--accept", "sh check.sh"];
    let other = stage.ask(&[&words[..], &["--agent-cmd", &agent]].concat());
    let again = stage.ask(&["retry", &run]);
    for shown in [&other.stderr, &again.stderr] {
        let short = provost_engine::query::short_id(&run);
        let named = shown.lines().find(|line| line.contains(short));
        let words = "was approved and has not begun";
        assert!(named.is_some_and(|line| line.contains(words)), "{shown}");
    }
    let done = stage.ask(&["approve", &run, "--go", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "OK"), "{done:?}");
    let over = stage.ask(&["resume", &run, "--json"]);
    assert_eq!((over.exit, over.code()), (1, "RUN_OVER"), "{over:?}");
    let hint = over.json.pointer("/details/hint").unwrap();
    assert_eq!(*hint, json!(format!("provost retry {run}")));
}
