//! Contracts that were divided: how their parts are judged together, and how such a chain is
//! called again.

use std::fs;
use std::path::PathBuf;

use provost_core::record::{self, Head};
use provost_engine::query::short_id;
use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};

/// An agent that writes into the file it may write.
const AGENT: &str = r#"
    path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    echo done >> $path
"#;

/// A command that passes while only one of two files is there.
const APART: &str = "test ! -e src/one.txt || test ! -e src/two.txt\n";

fn stage(check: &str) -> Stage {
    let stage = Stage::new();
    stage.commit(&[
        ("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n"),
        ("check.sh", check),
    ]);
    stage
}

fn contract(stage: &Stage, paths: &[&str]) -> Value {
    let file = stage.path("outside/made.json").display().to_string();
    let mut words = vec!["contract", "new", &file, "Do it", "--timeout", "60s"];
    words.extend(["--accept", "sh check.sh"]);
    words.extend(paths.iter().flat_map(|path| ["--allow", path]));
    let made = stage.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    let contract = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    contract
}

/// Two parts of one contract.
fn divided(stage: &Stage) -> Value {
    let (one, two) = ("src/one.txt", "src/two.txt");
    json!({
        "schema_version": 1,
        "parent": contract(stage, &[one, two]),
        "nodes": [
            { "id": "one", "contract": contract(stage, &[one]) },
            { "id": "two", "contract": contract(stage, &[two]) },
        ],
    })
}

fn call(stage: &Stage, document: &Value, more: &[&str]) -> Outcome {
    stage.write("chain.json", &document.to_string());
    let file = stage.path("chain.json").display().to_string();
    let agent = stage.agent(AGENT);
    let words = ["chain", "-f", &file, "--agent-cmd", &agent, "--json"];
    stage.ask(&[&words, more].concat())
}

fn runs(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.json["nodes"].as_array().unwrap().iter();
    rows.map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn parts_that_fail_together_are_neither_accepted_nor_landed() {
    let stage = stage(APART);
    let document = divided(&stage);
    for _ in 0..2 {
        let outcome = call(&stage, &document, &[]);
        let want = (1, "ACCEPTANCE_FAILED");
        assert_eq!((outcome.exit, outcome.code()), want, "{outcome:?}");
        assert_eq!(outcome.json["together"]["allow"], false, "{outcome:?}");
        let rows = outcome.json["nodes"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["status"] == "accepted"));
        for run in runs(&outcome) {
            let landed = stage.ask(&["land", &run, "--json"]);
            assert_eq!((landed.exit, landed.code()), (1, "CHAIN_NOT_ACCEPTED"));
        }
        let verified = stage.ask(&["verify", outcome.text("chain_id"), "--json"]);
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
    assert_eq!(stage.runs().len(), 2);
    assert!(!stage.path("repo/src/one.txt").exists());
}

#[test]
fn parts_that_hold_together_are_accepted_and_land() {
    let stage = stage("test ! -e src/bad\n");
    let before = stage.surroundings();
    let outcome = call(&stage, &divided(&stage), &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    assert_eq!(outcome.json["together"]["allow"], true, "{outcome:?}");
    stage.assert_clean(&before, "together");
    for run in runs(&outcome) {
        let landed = stage.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, 0, "{landed:?}");
    }
    assert!(stage.path("repo/src/two.txt").exists());
}

#[test]
fn a_part_is_tried_again_by_its_chain_only() {
    let stage = stage(APART);
    let document = divided(&stage);
    let outcome = call(&stage, &document, &[]);
    assert_eq!(outcome.code(), "ACCEPTANCE_FAILED", "{outcome:?}");
    for run in runs(&outcome) {
        let again = stage.ask(&["retry", &run, "--json"]);
        let want = (1, "CHAIN_NOT_ACCEPTED");
        assert_eq!((again.exit, again.code()), want, "{again:?}");
        let hint = again.json["details"]["hint"].as_str().unwrap();
        assert!(hint.starts_with("provost chain -f '"), "{hint}");
    }
    assert_eq!(stage.runs().len(), 2);
    // The command that the hint names is one: it judges the same chain again.
    let file = chain_file(&stage, outcome.text("chain_id"), "chain.json");
    let base = stage.git(&["rev-parse", "HEAD"]);
    let agent = stage.agent(AGENT);
    let file = file.display().to_string();
    let words = ["chain", "-f", &file, "--base", &base, "--again"];
    let judged = stage.ask(&[&words[..], &["--agent-cmd", &agent, "--json"]].concat());
    assert_eq!(judged.code(), "ACCEPTANCE_FAILED", "{judged:?}");
    assert_eq!(judged.text("chain_id"), outcome.text("chain_id"));
    assert_eq!(runs(&judged), runs(&outcome));
}

#[test]
fn no_part_lands_by_a_chain_that_is_gone_altered_or_foreign() {
    let stage = stage("test ! -e src/bad\n");
    let outcome = call(&stage, &divided(&stage), &[]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = &runs(&outcome)[0];
    let chain = outcome.text("chain_id");
    let ledger = chain_file(&stage, chain, "events.jsonl");
    let document = chain_file(&stage, chain, "chain.json");
    let refuse = |name: &str, code: &str| {
        let landed = stage.ask(&["land", run, "--json"]);
        assert_ne!(landed.exit, 0, "{name}: {landed:?}");
        assert_eq!(landed.code(), code, "{name}: {landed:?}");
        assert!(!stage.path("repo/src/one.txt").exists(), "{name}");
    };
    let whole = fs::read_to_string(&ledger).unwrap();
    fs::remove_file(&ledger).unwrap();
    refuse("gone", "CHAIN_NOT_ACCEPTED");
    let opened = whole.lines().next().unwrap().to_owned() + "\n";
    fs::write(&ledger, opened).unwrap();
    refuse("cut off", "CHAIN_NOT_ACCEPTED");
    // What a checkout could bring: the same records without the code of this user.
    fs::write(&ledger, unmarked(&whole)).unwrap();
    refuse("foreign", "RUN_FOREIGN");
    fs::write(&ledger, whole.replace("CHAIN_OPENED", "CHAIN_RESUMED")).unwrap();
    refuse("altered", "EVIDENCE_ALTERED");
    fs::write(&ledger, &whole).unwrap();
    let text = fs::read_to_string(&document).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["parent"] = Value::Null;
    fs::write(&document, other.to_string()).unwrap();
    refuse("another document", "EVIDENCE_ALTERED");
    fs::write(&document, text).unwrap();
    let landed = stage.ask(&["land", run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
}

fn chain_file(stage: &Stage, chain: &str, name: &str) -> PathBuf {
    stage.path("repo/.provost/chains").join(chain).join(name)
}

/// The records of a ledger, as another user would have written them.
fn unmarked(text: &str) -> String {
    let records = record::read(text.as_bytes(), Head::genesis()).unwrap();
    let mut head = Head::genesis();
    let records = records.records.into_iter();
    let lines = records.map(|record| head.append(record.event).line() + "\n");
    lines.collect()
}

#[test]
fn a_chain_is_not_continued_by_other_agents_than_it_began_with() {
    let stage = stage("true\n");
    let mut asks = contract(&stage, &["src/one.txt"]);
    asks["x_provost"]["author"] = json!("agent:planner");
    let document = json!({ "schema_version": 1, "nodes": [{ "id": "one", "contract": asks }] });
    let waits = call(&stage, &document, &[]);
    assert_eq!(
        (waits.exit, waits.code()),
        (3, "APPROVAL_NEEDED"),
        "{waits:?}"
    );
    let run = stage.last_run().unwrap();
    assert_eq!(stage.ask(&["approve", &run, "--json"]).exit, 0);
    let agent = stage.path("chain.json").display().to_string();
    let other = ["chain", "-f", &agent, "--agent-cmd", "true", "--json"];
    for refused in [
        call(&stage, &document, &["--review-cmd", "true"]),
        stage.ask(&other),
    ] {
        assert_eq!(
            (refused.exit, refused.code()),
            (2, "USAGE_ERROR"),
            "{refused:?}"
        );
    }
    let outcome = call(&stage, &document, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    assert_eq!(runs(&outcome), [run]);
    // What was accepted without a review is not called reviewed.
    let late = call(&stage, &document, &["--review-cmd", "true", "--again"]);
    assert_eq!(late.exit, 2, "{late:?}");
}

#[test]
fn what_no_node_would_feel_is_refused() {
    let stage = stage("true\n");
    let mut document = json!({ "schema_version": 1,
        "nodes": [{ "id": "one", "contract": contract(&stage, &["src/one.txt"]) }] });
    let net = call(&stage, &document, &["--net", "a.example:443"]);
    assert_eq!((net.exit, net.code()), (2, "USAGE_ERROR"), "{net:?}");
    let secret = "https://a.example X-Key: $PATH";
    let secret = call(&stage, &document, &["--credential", secret]);
    assert_eq!(
        (secret.exit, secret.code()),
        (2, "USAGE_ERROR"),
        "{secret:?}"
    );
    document["nodes"][0]["drops"] = json!([{ "cmd": "sh check.sh", "reason": "slow" }]);
    let drops = call(&stage, &document, &[]);
    assert_eq!(
        (drops.exit, drops.code()),
        (1, "CHAIN_INVALID"),
        "{drops:?}"
    );
    assert!(drops.text("reason").contains("/nodes/0/drops"), "{drops:?}");
    assert!(stage.runs().is_empty());
}

/// A part that the user resumed by itself: landing it is refused, so nothing proposes that.
#[test]
fn a_part_is_not_proposed_for_landing_before_all_are_accepted_together() {
    let stage = stage("test ! -e src/bad\n");
    let mut document = divided(&stage);
    document["nodes"][0]["contract"]["x_provost"]["author"] = json!("agent:planner");
    let waits = call(&stage, &document, &["--jobs", "1"]);
    assert_eq!(waits.exit, 3, "{waits:?}");
    let run = waits.json["nodes"][0]["run_id"].as_str().unwrap();
    let gone = stage.ask(&["approve", run, "--go"]);
    for answer in [gone, stage.ask(&["show", run])] {
        assert_eq!(answer.exit, 0, "{answer:?}");
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        assert!(text.contains("note: it is a part of "), "{text}");
        assert!(!text.contains("provost land"), "{text}");
    }
    let outcome = call(&stage, &document, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    let shown = stage.ask(&["show", run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains(&format!("next: provost land {}", short_id(run))),
        "{shown}"
    );
}
