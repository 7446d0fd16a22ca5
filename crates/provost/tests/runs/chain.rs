//! Chains of contracts: what starts from what, what is not run, and what a driver that dies leaves.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Running, Stage, until};

/// An agent that writes its task's name into the file it may write, after what its objective says.
const AGENT: &str = r#"
    path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    spec=$(sed 's/.*"spec":"\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    eval "$spec"
    echo done >> $path
"#;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.commit(&[
        ("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n"),
        ("check.sh", "test ! -e src/bad\n"),
    ]);
    stage
}

/// A node that runs `spec` in a shell and writes `path`.
fn node(stage: &Stage, id: &str, path: &str, spec: &str, needs: &[&str]) -> Value {
    let file = stage
        .path(&format!("outside/{id}.json"))
        .display()
        .to_string();
    let words = [
        "contract",
        "new",
        &file,
        spec,
        "--allow",
        path,
        "--accept",
        "sh check.sh",
        "--timeout",
        "60s",
    ];
    let made = stage.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    let contract: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    json!({ "id": id, "needs": needs, "contract": contract })
}

fn start(stage: &Stage, nodes: &[Value], more: &[&str]) -> Running {
    let document = json!({ "schema_version": 1, "nodes": nodes });
    stage.write("chain.json", &document.to_string());
    let file = stage.path("chain.json").display().to_string();
    let agent = stage.agent(AGENT);
    let words = ["chain", "-f", &file, "--agent-cmd", &agent, "--json"];
    stage.spawn(stage.provost(&[&words, more].concat()))
}

fn run(stage: &Stage, nodes: &[Value], more: &[&str]) -> Outcome {
    start(stage, nodes, more).wait()
}

/// The row of a node in a report.
fn row<'a>(outcome: &'a Outcome, id: &str) -> &'a Value {
    let rows = outcome.json["nodes"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap()
}

fn status(outcome: &Outcome, ids: &[&str]) -> Vec<String> {
    let of = |id: &&str| row(outcome, id)["status"].as_str().unwrap().to_owned();
    ids.iter().map(of).collect()
}

#[test]
fn eight_disjoint_nodes_are_accepted_at_once() {
    let stage = stage();
    let before = stage.surroundings();
    let ids: Vec<String> = (1..=8).map(|number| format!("n{number}")).collect();
    let nodes: Vec<Value> = ids
        .iter()
        .map(|id| node(&stage, id, &format!("src/{id}.txt"), "sleep 4", &[]))
        .collect();
    let outcome = run(&stage, &nodes, &["--jobs", "8"]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    let mut spans = Vec::new();
    for id in &ids {
        let row = row(&outcome, id);
        let run_id = row["run_id"].as_str().unwrap();
        assert_eq!(stage.verify(run_id).exit, 0, "{id}");
        assert!(row["ledger_head"].is_string() && row["commit"].is_string());
        spans.push(span(&stage, run_id));
    }
    // A slow machine may have begun the last one when the first was over.
    let at_once = |moment: &String| {
        let works = |span: &&(String, String)| span.0 <= *moment && *moment < span.1;
        spans.iter().filter(works).count()
    };
    let most = spans.iter().map(|span| at_once(&span.0)).max();
    assert!(most >= Some(4), "{spans:?}");
    let chain = outcome.text("chain_id");
    let verified = stage.ask(&["verify", chain, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    stage.assert_clean(&before, "eight");
}

/// Checks that the files of a chain without its seal are not taken for a run that has not ended.
fn unsealed_is_no_run(stage: &Stage, chain: &Path) {
    let copy = stage.path("home/copied");
    fs::create_dir(&copy).unwrap();
    for name in ["events.jsonl", "chain.json"] {
        fs::copy(chain.join(name), copy.join(name)).unwrap();
    }
    let seal = chain.join("record.dsse.json");
    let kept = fs::read(&seal).unwrap();
    fs::remove_file(&seal).unwrap();
    for directory in [&copy, chain] {
        let verified = stage.ask(&["verify", directory.to_str().unwrap(), "--json"]);
        assert_eq!(verified.code(), "EVIDENCE_INCOMPLETE", "{verified:?}");
        assert!(verified.text("reason").contains("unknown"), "{verified:?}");
    }
    fs::write(&seal, kept).unwrap();
}

/// When the agent of a run began and ended.
fn span(stage: &Stage, run_id: &str) -> (String, String) {
    let text = fs::read_to_string(stage.evidence(run_id, "events.jsonl")).unwrap();
    let at = |want: &dyn Fn(&Value) -> bool| {
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = lines.into_iter().find(|it| want(it)).unwrap();
        found["ts"].as_str().unwrap().to_owned()
    };
    (
        at(&|it| it["event_type"] == "STEP_STARTED" && it["payload"]["step"] == "agent"),
        at(&|it| it["event_type"] == "AGENT_ENDED"),
    )
}

#[test]
fn a_node_starts_from_the_results_it_needs() {
    let stage = stage();
    let nodes = [
        node(&stage, "a", "src/one.txt", "true", &[]),
        node(
            &stage,
            "b",
            "src/two.txt",
            "test -e src/one.txt || exit 7",
            &["a"],
        ),
        node(
            &stage,
            "c",
            "src/three.txt",
            "test ! -e src/two.txt || exit 7",
            &["a"],
        ),
        node(
            &stage,
            "d",
            "src/four.txt",
            "cat src/one.txt src/two.txt src/three.txt || exit 7",
            &["b", "c"],
        ),
    ];
    let outcome = run(&stage, &nodes, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    // Landed in the order of the chain, the whole of it is on the branch.
    for id in ["a", "b", "c", "d"] {
        let run_id = row(&outcome, id)["run_id"].as_str().unwrap().to_owned();
        let landed = stage.ask(&["land", &run_id, "--json"]);
        assert_eq!(landed.exit, 0, "{id}: {landed:?}");
    }
    for name in ["one", "two", "three", "four"] {
        assert!(
            stage.path(&format!("repo/src/{name}.txt")).exists(),
            "{name}"
        );
    }
}

#[test]
fn what_needs_a_refused_node_is_not_run_and_a_second_call_continues() {
    let stage = stage();
    let good = node(&stage, "good", "src/good.txt", "true", &[]);
    let bad = node(&stage, "bad", "src/bad", "true", &[]);
    let next = node(&stage, "next", "src/next.txt", "true", &["bad"]);
    let nodes = [good.clone(), bad, next.clone()];
    let outcome = run(&stage, &nodes, &[]);
    assert_eq!(
        (outcome.exit, outcome.code()),
        (1, "ACCEPTANCE_FAILED"),
        "{outcome:?}"
    );
    let ids = ["good", "bad", "next"];
    assert_eq!(status(&outcome, &ids), ["accepted", "refused", "not_run"]);
    assert_eq!(row(&outcome, "next")["verdict"]["code"], "NEEDS_REFUSED");
    // Called again, finished nodes are taken as they are.
    let again = run(&stage, &nodes, &[]);
    assert_eq!(again.json["nodes"], outcome.json["nodes"], "{again:?}");
    assert_eq!(stage.runs().len(), 2);
    // Refused ones are run anew if the user asks for it.
    let again = run(&stage, &nodes, &["--again"]);
    assert_eq!(again.exit, 1);
    assert_eq!(
        row(&again, "good")["run_id"],
        row(&outcome, "good")["run_id"]
    );
    assert_ne!(row(&again, "bad")["run_id"], row(&outcome, "bad")["run_id"]);
}

#[test]
fn results_that_do_not_go_together_are_a_conflict_and_an_outcome() {
    let stage = stage();
    let line = |word: &str| format!("echo {word} > src/b.txt");
    let nodes = [
        node(&stage, "a", "src/b.txt", &line("one"), &[]),
        node(&stage, "b", "src/b.txt", &line("two"), &[]),
        node(&stage, "c", "src/c.txt", "true", &["a", "b"]),
    ];
    let outcome = run(&stage, &nodes, &["--jobs", "4"]);
    assert_eq!(
        (outcome.exit, outcome.code()),
        (1, "CHAIN_CONFLICT"),
        "{outcome:?}"
    );
    let ids = ["a", "b", "c"];
    assert_eq!(status(&outcome, &ids), ["accepted", "accepted", "not_run"]);
    let details = &row(&outcome, "c")["verdict"]["details"];
    assert_eq!(details["paths"], json!(["src/b.txt"]));
    // They share a path, so the second waited for the first.
    let spans: Vec<_> = ["a", "b"]
        .iter()
        .map(|id| span(&stage, row(&outcome, id)["run_id"].as_str().unwrap()))
        .collect();
    assert!(
        spans[0].1 < spans[1].0 || spans[1].1 < spans[0].0,
        "{spans:?}"
    );
}

#[test]
fn a_scope_that_another_run_holds_is_refused_and_names_the_holder() {
    let stage = stage();
    let ask = Ask {
        allow: &["src/held.txt"],
        ..Ask::default()
    };
    let holder = stage.start("echo begun; sleep 1000", &ask);
    until("the holder works", || {
        stage
            .last_run()
            .is_some_and(|run| stage.printed_in(&run).contains("begun"))
    });
    let name = stage.last_run().unwrap();
    let nodes = [
        node(&stage, "taken", "src/held.txt", "true", &[]),
        node(&stage, "free", "src/free.txt", "true", &[]),
    ];
    let outcome = run(&stage, &nodes, &[]);
    assert_eq!(
        (outcome.exit, outcome.code()),
        (3, "LEASE_HELD"),
        "{outcome:?}"
    );
    let reason = row(&outcome, "taken")["verdict"]["reason"]
        .as_str()
        .unwrap();
    assert!(reason.contains(&name), "{reason}");
    assert_eq!(status(&outcome, &["free"]), ["accepted"]);
    holder.signal(Signal::INT);
    holder.wait();
    // There is no verdict about that contract, so it is tried again.
    let again = run(&stage, &nodes, &[]);
    assert_eq!((again.exit, again.code()), (0, "OK"), "{again:?}");
    assert_eq!(
        row(&again, "free")["run_id"],
        row(&outcome, "free")["run_id"]
    );
}

#[test]
fn a_chain_whose_driver_dies_is_continued() {
    let stage = stage();
    let before = stage.surroundings();
    let wait = "echo begun; test -e /tmp/never || sleep 1";
    let nodes = [
        node(&stage, "a", "src/one.txt", "true", &[]),
        node(&stage, "b", "src/two.txt", wait, &["a"]),
        node(&stage, "c", "src/three.txt", "true", &["b"]),
    ];
    let running = start(&stage, &nodes, &[]);
    until("the second node works", || {
        let mut runs = stage.runs().into_iter();
        runs.any(|run| stage.printed_in(&run).contains("begun"))
    });
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let begun = stage.runs();
    assert_eq!(begun.len(), 2);
    let outcome = run(&stage, &nodes, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    for id in ["a", "b"] {
        let run_id = row(&outcome, id)["run_id"].as_str().unwrap();
        assert!(begun.contains(run_id), "{id} is the run that was begun");
    }
    assert_eq!(stage.runs().len(), 3);
    stage.assert_clean(&before, "killed");
}

#[test]
fn a_chain_that_breaks_a_rule_begins_nothing() {
    let stage = stage();
    let mut broad = node(&stage, "broad", "src/x.txt", "true", &[]);
    broad["contract"]["allowed_paths"] = json!(["**"]);
    let mut lone = node(&stage, "lone", "src/y.txt", "true", &[]);
    lone["contract"] = Value::Null;
    let cases = [
        (
            vec![node(&stage, "a", "src/x.txt", "true", &["a"])],
            1,
            "CHAIN_INVALID",
            "circle",
        ),
        (
            vec![broad],
            1,
            "CONTRACT_INVALID",
            "/nodes/0/contract/allowed_paths/0",
        ),
        (vec![lone], 1, "CHAIN_INVALID", "names no contract"),
        (
            vec![json!({ "id": "a" })],
            1,
            "CHAIN_INVALID",
            "names no contract",
        ),
        (
            vec![json!({ "id": "a", "contract_file": "none.json" })],
            2,
            "INPUT_UNREADABLE",
            "none",
        ),
        (
            vec![json!({ "id": "a", "extra": 1 })],
            2,
            "INPUT_INVALID",
            "extra",
        ),
    ];
    for (nodes, exit, code, words) in cases {
        let outcome = run(&stage, &nodes, &[]);
        assert_eq!((outcome.exit, outcome.code()), (exit, code), "{outcome:?}");
        assert!(outcome.text("reason").contains(words), "{outcome:?}");
    }
    assert!(stage.runs().is_empty());
}

#[test]
fn a_chain_is_swept_when_its_work_is_on_a_branch_and_its_evidence_is_not_wanted() {
    let stage = stage();
    let one = [node(&stage, "one", "src/one.txt", "true", &[])];
    let running = start(
        &stage,
        &[node(&stage, "two", "src/two.txt", "sleep 60", &[])],
        &[],
    );
    until("the agent works", || !stage.runs().is_empty());
    let outcome = run(&stage, &one, &[]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let chain = outcome.text("chain_id");
    let chains = stage.path("repo/.provost/chains");
    let count = || fs::read_dir(&chains).unwrap().count();
    let sweep = |words: &[&str]| {
        let swept = stage.ask(&[&["gc", "--json"], words].concat());
        assert_eq!(swept.exit, 0, "{swept:?}");
        let rows = swept.json["records"].as_array().unwrap().clone();
        let of = |row: &&Value| row["id"] == chain;
        (count(), rows.iter().find(of).unwrap()["stays"].clone())
    };
    assert_eq!(count(), 2);
    let unlanded = json!("its work has not landed");
    assert_eq!(sweep(&["--bundles"]), (2, unlanded));
    let run_id = row(&outcome, "one")["run_id"].as_str().unwrap();
    assert_eq!(stage.ask(&["land", run_id]).exit, 0);
    assert_eq!(sweep(&[]), (2, Value::Null), "evidence stays");
    assert_eq!(stage.ask(&["verify", chain]).exit, 0);
    unsealed_is_no_run(&stage, &chains.join(chain));
    assert_eq!(
        sweep(&["--bundles"]),
        (1, Value::Null),
        "the other is still active"
    );

    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let swept = stage.ask(&["gc", "--bundles", "--json"]);
    assert_eq!((swept.exit, count()), (0, 1), "it can be called again");
}
