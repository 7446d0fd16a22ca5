//! Candidates that a reviewer reads before they are tested.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, until};

/// Honest work.
const WORK: &str = "echo good > src/a.txt";

/// A script that leaves a report with this verdict.
fn says(verdict: &str) -> String {
    let report = json!({ "verdict": verdict, "summary": "I looked.", "violations": [],
        "findings": [{ "path": "src/a.txt", "problem": "it is short" }] });
    format!("cat > $PROVOST_RESULT <<'END'\n{report}\nEND\n")
}

/// The words that make `script` the reviewer.
fn reviewer(stage: &Stage, script: &str) -> String {
    stage.write("agent/reviewer.sh", &stage.fill(script));
    format!("sh {}", stage.path("agent/reviewer.sh").display())
}

fn reviewed(stage: &Stage, script: &str) -> Outcome {
    reviewed_with(stage, script, &[])
}

fn reviewed_with(stage: &Stage, script: &str, more: &[&str]) -> Outcome {
    let command = reviewer(stage, script);
    let more = [&["--review-cmd", &command], more].concat();
    let ask = Ask {
        more: &more,
        ..Ask::default()
    };
    stage.run(WORK, &ask)
}

fn report(stage: &Stage, run: &str, name: &str) -> Value {
    let text = fs::read(stage.evidence(run, &format!("reports/{name}.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn the_verdict_of_a_reviewer_decides_and_is_reported_everywhere() {
    let cases = [
        (says("PASS"), "OK", "PASS"),
        (says("FAIL"), "REVIEW_REFUSED", "FAIL"),
        (says("BLOCKED"), "REVIEW_REFUSED", "BLOCKED"),
        (
            "echo looks good to me".to_owned(),
            "REVIEW_INVALID",
            "BLOCKED",
        ),
        (
            "echo '{}' > $PROVOST_RESULT".to_owned(),
            "REVIEW_INVALID",
            "BLOCKED",
        ),
        (
            format!("{}; exit 3", says("PASS")),
            "REVIEW_INVALID",
            "BLOCKED",
        ),
    ];
    for (script, code, verdict) in cases {
        let stage = Stage::new();
        let before = stage.surroundings();
        let outcome = reviewed(&stage, &script);
        assert_eq!(outcome.code(), code, "{script}: {outcome:?}");
        let run = outcome.text("run_id");
        let review = report(&stage, run, "review_report");
        assert_eq!(review["verdict"], verdict, "{script}");
        assert_eq!(review["reviewer"]["agent_id"], "exec");
        assert_eq!(review["x_provost"]["tree"], outcome.json["tree"]);
        assert_eq!(review["produced_diff"], false);
        let passed = code == "OK";
        let result = report(&stage, run, "task_result");
        assert_eq!(result["gates"]["review_gate"]["passed"], passed, "{script}");
        assert_eq!(outcome.json["tests"].is_null(), !passed, "what is tested");
        let verified = stage.verify(run);
        assert_eq!(verified.exit, 0, "{script}: {verified:?}");
        stage.assert_clean(&before, &script);
        let replayed = stage.ask(&["replay", run, "--json"]);
        assert_eq!(replayed.exit, 0, "{script}: {replayed:?}");
        let shown = stage.ask(&["show", run]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("by exec in "), "{shown}");
    }
}

#[test]
fn a_run_without_a_reviewer_says_so() {
    let stage = Stage::new();
    let outcome = stage.run(WORK, &Ask::default());
    let run = outcome.text("run_id");
    let review = report(&stage, run, "review_report");
    assert_eq!(review["verdict"], "BLOCKED");
    let summary = "not reviewed: the run has no reviewer";
    assert_eq!(review["summary"], summary);
    let gate = &report(&stage, run, "task_result")["gates"]["review_gate"];
    assert_eq!(gate["passed"], Value::Null);
    assert_eq!(gate["note"], summary);
}

/// What a reviewer finds around it, and what it cannot do.
const LOOK: &str = "
    test \"$(pwd)\" = /review && test -z \"$(ls -A .)\" && test -z \"$(ls -A ~)\" || exit 11
    grep -q '^+good$' $PROVOST_PATCH || exit 12
    test \"$(cat $PROVOST_CHANGED)\" = src/a.txt || exit 13
    grep -q 'make it good' $PROVOST_CONTRACT || exit 14
    tr -d ' \\n' | grep -q makeitgood || exit 15
    test \"$(cat $PROVOST_TREE/src/a.txt)\" = good || exit 16
    cat $PROVOST_TREE/CLAUDE.md > /dev/null || exit 17
    echo x > $PROVOST_TREE/src/a.txt && exit 21
    echo x > $PROVOST_TREE/new && exit 22
    rm -f $PROVOST_TREE/src/b.txt && exit 23
    chmod +x $PROVOST_TREE/src/b.txt && exit 24
    echo x > $PROVOST_PATCH && exit 25
    cat @OUTSIDE@/secret @REPO@/src/a.txt && exit 26
    echo x > note && rm note || exit 27
";

#[test]
fn a_reviewer_has_the_tree_to_read_and_nothing_else() {
    for policy in ["", "[workspace]\nkind = \"overlay\"\n"] {
        let stage = Stage::new();
        stage.commit(&[("provost.toml", policy)]);
        let before = stage.surroundings();
        let outcome = reviewed(&stage, &format!("{LOOK}{}", says("PASS")));
        assert_eq!(outcome.code(), "OK", "{policy}: {outcome:?}");
        stage.assert_clean(&before, policy);
    }
}

#[test]
fn a_reviewer_without_namespaces_cannot_write_either() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", "[box]\nleast_tier = \"landlock\"\n")]);
    let script = format!(
        "test -z \"$(ls -A .)\" || exit 11
         test \"$(cat $PROVOST_TREE/src/a.txt)\" = good || exit 12
         echo x > $PROVOST_TREE/new && exit 13
         {}",
        says("PASS")
    );
    let outcome = reviewed_with(&stage, &script, &["--tier", "landlock"]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}

#[test]
fn the_policy_of_the_base_names_the_reviewer() {
    let stage = Stage::new();
    stage.commit(&[
        (
            "provost.toml",
            "[agents.strict]\ncommand = \"false\"\n[review]\nagent = \"strict\"\n",
        ),
        ("check.sh", "true\n"),
    ]);
    let outcome = stage.run(WORK, &Ask::default());
    assert_eq!(outcome.code(), "REVIEW_INVALID", "{outcome:?}");
    assert_eq!(outcome.json["review"]["reviewer"], "strict");
    // A person may choose another one, but not none.
    let outcome = reviewed(&stage, &says("PASS"));
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    assert_eq!(outcome.json["review"]["reviewer"], "exec");
    stage.commit(&[("provost.toml", "[review]\nagent = \"missing\"\n")]);
    let outcome = stage.run(WORK, &Ask::default());
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("NOT_FOUND", 2),
        "{outcome:?}"
    );
}

#[test]
fn a_review_that_dies_with_its_driver_is_made_again() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = format!("echo looking; sleep 1000; {}", says("PASS"));
    let command = reviewer(&stage, &script);
    let ask = Ask {
        more: &["--review-cmd", &command],
        ..Ask::default()
    };
    let running = stage.start(WORK, &ask);
    until("the reviewer works", || {
        let log = |run: String| fs::read(stage.evidence(&run, "reviews/1.stdout.log"));
        let log = stage.last_run().and_then(|run| log(run).ok());
        log.is_some_and(|log| log.starts_with(b"looking"))
    });
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    reviewer(&stage, &says("PASS"));
    let resumed = stage.ask(&["resume", "--json"]);
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    assert_eq!(resumed.json[0]["verdict"]["code"], "OK", "{resumed:?}");
    assert_eq!(resumed.json[0]["attempts"], 1, "the agent worked once");
    stage.assert_clean(&before, "killed");
}

#[test]
fn a_merge_with_the_same_patch_is_not_reviewed_again() {
    let stage = Stage::new();
    let outcome = reviewed(&stage, &says("PASS"));
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    let events = || fs::read_to_string(stage.evidence(&run, "after.jsonl")).unwrap_or_default();

    // A target that moved elsewhere leaves the patch as it was.
    stage.commit(&[("docs/later.md", "later\n")]);
    let landed = stage.ask(&["land", &run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert!(!events().contains("REVIEW_RESULT"), "{}", events());
    assert_eq!(stage.verify(&run).exit, 0);
}

#[test]
fn what_the_reviewer_says_of_the_merge_decides() {
    let cases = [("PASS", "OK", 0), ("FAIL", "REVIEW_REFUSED", 1)];
    for (verdict, code, exit) in cases {
        let stage = Stage::new();
        stage.commit(&[("src/a.txt", "base\n\n\n\n\n\n\n\nend\n")]);
        let script = format!(
            "if grep -q theirs $PROVOST_TREE/src/a.txt; then\n{}else\n{}fi\n",
            says(verdict),
            says("PASS")
        );
        let command = reviewer(&stage, &script);
        let ask = Ask {
            more: &["--review-cmd", &command],
            ..Ask::default()
        };
        let outcome = stage.run("sed -i s/base/good/ src/a.txt", &ask);
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
        let run = outcome.text("run_id").to_owned();
        // Both sides changed the file, at places far enough from each other.
        stage.commit(&[("src/a.txt", "base\n\n\n\n\n\n\n\ntheirs\n")]);
        let landed = stage.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, exit, "{landed:?}");
        if exit != 0 {
            assert_eq!(landed.code(), code, "{landed:?}");
            assert!(landed.text("reason").contains("on the merge"), "{landed:?}");
        }
        let events = fs::read_to_string(stage.evidence(&run, "after.jsonl")).unwrap();
        assert!(events.contains("REVIEW_RESULT"), "{events}");
        let verified = stage.ask(&["verify", &run, "--json"]);
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
}

#[test]
fn the_sandbox_of_the_reviewer_is_attacked_before_it_is_used() {
    let stage = Stage::new();
    let outcome = reviewed(&stage, &says("PASS"));
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let ledger = stage.evidence(outcome.text("run_id"), "events.jsonl");
    let ledger = fs::read_to_string(ledger).unwrap();
    let records = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_kind = |kind: &str| {
        let mut records = records.clone();
        records.find(|record| record["event_type"] == kind).unwrap()["payload"].clone()
    };
    let (reviewed, tested) = (of_kind("REVIEW_RESULT"), of_kind("SANDBOX_TESTED"));
    let attempts = reviewed["probed"]["attempts"].as_array().unwrap();
    assert!(attempts.len() > 20 && attempts.iter().all(|it| it["held"] == true));
    // It is another sandbox than those of the agent and of the commands.
    for place in ["agent", "acceptance"] {
        assert_ne!(
            reviewed["probed"]["shape"], tested[place]["shape"],
            "{place}"
        );
    }
}
