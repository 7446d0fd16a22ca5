//! A whole case with the real programs: Claude Code plans and reviews, Codex does the parts.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::Program;
use super::vendor::VendorStage;
use crate::stage::{Outcome, Stage, until};

const CASE: [&str; 9] = [
    "case",
    "write the files",
    "--planner",
    "claude",
    "--agent",
    "codex",
    "--review",
    "claude",
    "--json",
];

/// Fails while `one` and `two`, the first two files that must not be raw together, both are.
fn check(one: &str, two: &str) -> String {
    format!("! {{ grep -qs raw src/{one}.txt && grep -qs raw src/{two}.txt; }}\n")
}

/// What the models do: plan `parts` (name and needs), write a raw file for each, write a fixed one
/// where a result was refused, and review. The reviewer refuses a whole with a raw `unwanted` file.
fn scenes(parts: &[(&str, &[&str])], unwanted: Option<&str>) -> Value {
    let path = |name: &str| format!("src/{name}.txt");
    let allow: Vec<String> = parts.iter().map(|(name, _)| path(name)).collect();
    let plan = json!({ "verdict": "PLAN", "summary": "files", "objective": "write the files",
        "allow": allow, "forbid": [], "accept": ["sh check.sh"], "forbidden_actions": [],
        "permit_oracle": [], "permit_governing": [], "net": [], "minutes": 5 });
    let child = |(name, needs): &(&str, &[&str])| {
        json!({ "id": name, "objective": format!("do the part {name}."), "allow": [path(name)],
            "shares": [], "accept": ["sh check.sh"], "drops": [], "net": [], "tools": [],
            "minutes": 5, "needs": needs })
    };
    let children: Vec<Value> = parts.iter().map(child).collect();
    let split = json!({ "verdict": "PLAN", "summary": "parts", "children": children });
    let review = |verdict: &str| {
        let report = json!({ "verdict": verdict, "summary": "I looked.", "violations": [],
            "findings": [] });
        let shown = "/run/provost/review/patch.diff";
        json!([{ "read": shown }, { "answer": report }, { "text": "done" }])
    };
    let mut scenes = Vec::new();
    if let Some(raw) = unwanted {
        // The whole has the files of all parts, the review of one part does not.
        let whole: Vec<String> = parts
            .iter()
            .map(|(name, _)| format!("+++ b/{}", path(name)))
            .collect();
        let mut when = vec!["You review a change".to_owned(), format!("+raw {raw}.")];
        when.extend(whole);
        scenes.push(json!({ "when": when, "turns": review("FAIL") }));
    }
    scenes.push(json!({ "when": ["You review a change"], "turns": review("PASS") }));
    scenes.push(json!({ "when": ["You plan work", "The contract to divide"],
        "turns": [{ "answer": split }, { "text": "done" }] }));
    scenes.push(json!({ "when": ["You plan work"],
        "turns": [{ "answer": plan }, { "text": "done" }] }));
    let fixes = [(&["What came of it so far"][..], "fixed"), (&[], "raw")];
    for (more, word) in fixes {
        for (name, _) in parts {
            let part = format!("do the part {name}.");
            let when = [&[part.as_str()], more].concat();
            let shell = format!("mkdir -p src; echo {word} {name}. > {}", path(name));
            scenes.push(json!({ "when": when, "turns": [{ "shell": shell }, { "text": "done" }] }));
        }
    }
    json!({ "scenes": scenes })
}

fn stage(
    parts: &[(&str, &[&str])],
    [one, two]: [&str; 2],
    unwanted: Option<&str>,
) -> Option<VendorStage> {
    let policy = "[commands]\nallow = [\"sh check.sh\"]\n";
    let stage = Stage::with(&[("provost.toml", policy), ("check.sh", &check(one, two))]);
    let programs = [Program::Claude, Program::Codex];
    VendorStage::new(stage, &programs, &scenes(parts, unwanted))
}

fn runs(outcome: &Outcome) -> Vec<String> {
    let parts = outcome.json["parts"].as_array().unwrap().iter();
    let runs = parts.flat_map(|part| part["runs"].as_array().unwrap());
    runs.map(|run| run["run_id"].as_str().unwrap().to_owned())
        .collect()
}

/// Has the request planned, and says how the plan is approved.
fn planned(stage: &VendorStage) -> (String, Vec<String>) {
    let asked = stage.ask(&CASE);
    assert_eq!(asked.exit, 3, "{asked:?}");
    let id = asked.text("case_id").to_owned();
    let digest = asked.json["question"]["digest"].as_str().unwrap();
    let words = ["approve", &id, "--digest", digest, "--go", "--json"];
    let words = words.map(ToOwned::to_owned).to_vec();
    (id, words)
}

fn ask(stage: &VendorStage, words: &[String]) -> Outcome {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    stage.ask(&words)
}

/// Lands the case by one command; one commit with exactly the accepted tree, and all runs verify.
fn lands_once(stage: &VendorStage, id: &str, parts: usize) {
    let head = stage.inner.git(&["rev-parse", "HEAD"]);
    let landed = stage.ask(&["land", id, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.inner.git(&["rev-parse", "HEAD^"]), head, "one commit");
    let verified = stage.ask(&["verify", id, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    assert_eq!(verified.json["landed"]["is_accepted_tree"], true);
    assert_eq!(verified.json["brought"].as_array().unwrap().len(), parts);
}

/// How often the agents of `runs` ended, and how many attempts they had.
fn agents(stage: &VendorStage, runs: &[String]) -> Vec<(usize, usize)> {
    let count = |run: &String| {
        let text = fs::read_to_string(stage.inner.evidence(run, "events.jsonl")).unwrap();
        let of = |what: &str| text.matches(what).count();
        (of("\"AGENT_ENDED\""), of("\"ATTEMPT_LOST\""))
    };
    runs.iter().map(count).collect()
}

/// Resumes the case: the command names what it sends, as for a run.
fn resume(stage: &VendorStage, id: &str) -> Outcome {
    let asked = stage.ask(&["resume", id]);
    assert_eq!(asked.exit, 3, "{asked:?}");
    let next = |line: &&str| line.starts_with("next: provost resume case_");
    let next = asked.out().lines().find(next).unwrap();
    assert!(next.contains(" --send "), "{asked:?}");
    let words = next.trim_start_matches("next: provost ").split(' ');
    let words: Vec<String> = words.chain(["--json"]).map(ToOwned::to_owned).collect();
    ask(stage, &words)
}

const TWO: [(&str, &[&str]); 2] = [("one", &[]), ("two", &[])];

#[test]
fn a_case_is_planned_done_reviewed_fixed_and_landed_by_the_programs() {
    let Some(stage) = stage(&TWO, ["one", "two"], None) else {
        return;
    };
    let (id, approve) = planned(&stage);
    let done = ask(&stage, &approve);
    assert_eq!(done.exit, 0, "{done:?}");
    let runs = runs(&done);
    assert_eq!(runs.len(), 3, "two parts and one fix: {done:?}");
    assert_eq!(agents(&stage, &runs), [(1, 0); 3]);
    lands_once(&stage, &id, 2);
    let log = fs::read_to_string(stage.inner.path("log")).unwrap();
    assert!(log.contains("You review a change"), "the whole is reviewed");
}

/// Approves the case and ends its driver as soon as `moment` has come.
fn dies(stage: &VendorStage, words: &[String], what: &str, moment: impl Fn() -> bool) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = stage.command(&[&["provost"], &words[..]].concat());
    let running = stage.inner.spawn(command);
    until(what, moment);
    running.signal(Signal::KILL);
    running.wait();
}

#[test]
fn a_case_whose_driver_dies_while_a_program_works_is_resumed() {
    let Some(stage) = stage(&TWO, ["one", "two"], None) else {
        return;
    };
    let (id, approve) = planned(&stage);
    let log = stage.inner.path("log");
    dies(&stage, &approve, "a program asks its model", || {
        let log = fs::read_to_string(&log).unwrap();
        log.contains("do the part one.")
    });
    let resumed = resume(&stage, &id);
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    let runs = runs(&resumed);
    assert_eq!(runs.len(), 3, "{resumed:?}");
    // An agent that was lost is recorded as lost before another attempt.
    let attempts = agents(&stage, &runs);
    assert!(
        attempts.iter().all(|(ended, _)| *ended == 1),
        "{attempts:?}"
    );
    assert!(attempts.iter().any(|(_, lost)| *lost == 1), "{attempts:?}");
    lands_once(&stage, &id, 2);
}

#[test]
fn a_case_whose_driver_dies_while_the_whole_is_judged_or_landed_is_resumed() {
    let Some(stage) = stage(&TWO, ["one", "two"], None) else {
        return;
    };
    let (id, approve) = planned(&stage);
    let ledger = stage.inner.evidence(&id, "events.jsonl");
    dies(&stage, &approve, "the whole is judged", || {
        let ledger = fs::read_to_string(&ledger).unwrap();
        ledger.contains("CASE_JUDGE_STARTED")
    });
    let mut resumed = stage.ask(&["resume", &id, "--json"]);
    if resumed.exit == 3 {
        resumed = resume(&stage, &id);
    }
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    let runs = runs(&resumed);
    assert_eq!(agents(&stage, &runs), [(1, 0); 3], "no agent works twice");
    let head = stage.inner.git(&["rev-parse", "HEAD"]);
    let whole = resumed.json["whole"]["run_id"].as_str().unwrap();
    let after = stage.inner.evidence(whole, "after.jsonl");
    let land = ["land", &id, "--json"].map(ToOwned::to_owned);
    dies(&stage, &land, "the landing begins", || after.exists());
    // Whether it landed before its end or not: once.
    let landed = ask(&stage, &land);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.inner.git(&["rev-parse", "HEAD^"]), head, "one commit");
    assert_eq!(stage.ask(&["verify", &id, "--json"]).exit, 0);
}

/// One fix because the commands of the whole fail, then one for the reviewer.
#[test]
fn six_parts_in_two_chains_are_fixed_by_commands_and_by_a_reviewer() {
    let parts: [(&str, &[&str]); 6] = [
        ("aa", &[]),
        ("ab", &["aa"]),
        ("ac", &["ab"]),
        ("ba", &[]),
        ("bb", &["ba"]),
        ("bc", &["bb"]),
    ];
    let Some(stage) = stage(&parts, ["ab", "bb"], Some("bc")) else {
        return;
    };
    let (id, approve) = planned(&stage);
    let done = ask(&stage, &approve);
    assert_eq!(done.exit, 0, "{done:?}");
    assert_eq!(runs(&done).len(), 8, "six parts and two fixes: {done:?}");
    lands_once(&stage, &id, 6);
}
