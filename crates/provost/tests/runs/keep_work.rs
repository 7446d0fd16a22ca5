//! Work that is judged again, or that no run made: the judges run, and no agent is started.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

/// Work with one file outside the scope.
const BEYOND: &str = "echo good > src/a.txt; echo more >> docs/readme.md";

/// The types of the events of `run`, with the steps that were started.
fn events(stage: &Stage, run: &str) -> Vec<String> {
    let text = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let step = event.pointer("/payload/step").and_then(Value::as_str);
        let kind = event["event_type"].as_str().unwrap();
        step.map_or(kind.to_owned(), |step| format!("{kind} {step}"))
    };
    text.lines().map(event).collect()
}

fn opened(stage: &Stage, run: &str) -> Value {
    let text = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    first["payload"].clone()
}

/// The signed statement about `run`.
fn statement(stage: &Stage, run: &str) -> Value {
    let envelope = fs::read(stage.evidence(run, "attestation.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    let payload = envelope["payload"].as_str().unwrap();
    let mut decode = stage.command("base64");
    decode.arg("-d");
    let decoded = stage.feed(decode, payload).stdout;
    serde_json::from_slice(&decoded).unwrap()
}

/// No agent was started, and the evidence holds.
fn assert_judged_only(stage: &Stage, outcome: &Outcome) {
    let run = outcome.text("run_id");
    let events = events(stage, run);
    for absent in ["agent", "workspace"] {
        let absent = format!("STEP_STARTED {absent}");
        assert!(!events.contains(&absent), "{events:?}");
    }
    assert!(!events.iter().any(|it| it == "AGENT_ENDED"), "{events:?}");
    assert!(!stage.evidence(run, "agent").exists());
    assert_eq!(stage.verify(run).exit, 0);
    assert_eq!(stage.ask(&["replay", run]).exit, 0);
    assert!(stage.workspaces().is_empty());
}

#[test]
fn refused_work_is_judged_again_under_a_wider_contract_and_lands() {
    let stage = Stage::new();
    let refused = stage.run(BEYOND, &Ask::default());
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let parent = refused.text("run_id");
    // An agent that started again would leave nothing.
    stage.agent("exit 7");
    let why = stage.ask(&["why", parent]);
    let short = provost_engine::query::short_id(parent);
    let line = format!("permit with: provost retry {short} --keep-work --allow='docs/readme.md'");
    assert!(why.says(&line), "{why:?}");
    let narrow = ["retry", parent, "--keep-work", "--json"];
    let again = stage.ask(&narrow);
    assert_eq!(again.code(), "DIFF_REFUSED", "{again:?}");
    let first = again.text("run_id");
    let wide = ["retry", first, "--keep-work", "--allow=docs/readme.md"];
    let wide = stage.ask(&[&wide[..], &["--json"]].concat());
    assert_eq!((wide.code(), wide.exit), ("OK", 0), "{wide:?}");
    assert_eq!(wide.json["tree"], refused.json["tree"]);
    for judged in [&again, &wide] {
        assert_judged_only(&stage, judged);
    }
    let run = wide.text("run_id");
    let opened = opened(&stage, run);
    assert_eq!(opened["parent"], first);
    assert_eq!(opened["work"]["tree"], refused.json["tree"]);
    let judged = opened["work"]["judged"].as_array().unwrap();
    let runs: Vec<_> = judged.iter().map(|it| it["run_id"].as_str()).collect();
    assert_eq!(runs, [Some(parent), Some(first)]);
    for (run, verdict) in [parent, first].iter().zip(judged) {
        let head = &statement(&stage, run)["predicate"]["ledger_head"];
        assert_eq!(verdict["sealed_head"], *head);
    }
    assert_eq!(statement(&stage, run)["predicate"]["work"], opened["work"]);
    assert_eq!(wide.json["work"], opened["work"]);
    let shown = stage.ask(&["show", run]);
    let words = "judged 3 times, first: DIFF_REFUSED: `docs/readme.md` is outside the scope";
    assert!(shown.says(words), "{shown:?}");
    assert_eq!(stage.ask(&["replay", run, "--reexec"]).exit, 0);
    let landed = stage.ask(&["land", run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.git(&["show", "HEAD:src/a.txt"]).trim(), "good");
    assert_eq!(stage.verify(run).exit, 0);
    assert_eq!(stage.ask(&["runs", "--json"]).exit, 0);
}

#[test]
fn what_may_not_be_judged_again_is_refused_and_begins_no_run() {
    let stage = Stage::new();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\n-----END RSA PRIVATE KEY-----";
    let secret = stage.run(&format!("echo '{key}' > src/a.txt"), &Ask::default());
    assert_eq!(secret.code(), "SECRET_IN_PATCH", "{secret:?}");
    let failed = stage.run("echo good > src/a.txt; exit 3", &Ask::default());
    assert_eq!(failed.code(), "AGENT_FAILED", "{failed:?}");
    let accepted = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(accepted.code(), "OK", "{accepted:?}");
    let beyond = stage.run(BEYOND, &Ask::default());
    let before = stage.runs();
    for run in [&secret, &failed, &accepted] {
        let run = run.text("run_id");
        let kept = stage.ask(&["retry", run, "--keep-work", "--allow=docs", "--json"]);
        assert_eq!(
            (kept.code(), kept.exit),
            ("KEEP_WORK_REFUSED", 1),
            "{kept:?}"
        );
        assert!(!stage.ask(&["why", run]).says("--keep-work"));
    }
    let run = beyond.text("run_id");
    let cases = [
        (vec!["--allow=docs"], "USAGE_ERROR"),
        (vec!["--keep-work", "--base", "HEAD"], "USAGE_ERROR"),
        (vec!["--keep-work", "--allow=../x"], "CONTRACT_INVALID"),
        (
            vec!["--keep-work", "--accept=sh -c true"],
            "CONTRACT_INVALID",
        ),
        (vec!["--keep-work", "--accept-mode=best"], "USAGE_ERROR"),
    ];
    for (flags, code) in cases {
        let asked = stage.ask(&[&["retry", run, "--json"][..], &flags].concat());
        assert_eq!(asked.code(), code, "{flags:?} {asked:?}");
    }
    // A changed bundle is not judged again either.
    fs::write(stage.evidence(run, "patch.diff"), "").unwrap();
    let altered = stage.ask(&["retry", run, "--keep-work", "--json"]);
    assert_eq!(altered.code(), "EVIDENCE_ALTERED", "{altered:?}");
    assert_eq!(stage.runs(), before);
}

#[test]
fn weaker_judges_of_refused_work_wait_for_approval() {
    let stage = Stage::new();
    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(refused.code(), "ACCEPTANCE_FAILED", "{refused:?}");
    let run = refused.text("run_id");
    let retry = [
        "retry",
        run,
        "--keep-work",
        "--accept",
        "test -f src/a.txt",
        "--json",
    ];
    let asked = stage.ask(&retry);
    assert_eq!(
        (asked.code(), asked.exit),
        ("APPROVAL_NEEDED", 3),
        "{asked:?}"
    );
    let waits = asked.text("run_id");
    assert!(
        stage
            .ask(&["show", waits])
            .says("no longer has `sh check.sh`")
    );
    let approved = stage.ask(&["approve", waits, "--go", "--json"]);
    assert_eq!(approved.code(), "OK", "{approved:?}");
    assert_judged_only(&stage, &approved);
    // The same commands and one more ask nothing, and still refuse.
    let more = [
        "--accept",
        "sh check.sh",
        "--accept",
        "test -f src/a.txt",
        "--json",
    ];
    let same = stage.ask(&[&["retry", run, "--keep-work"][..], &more].concat());
    assert_eq!(same.code(), "ACCEPTANCE_FAILED", "{same:?}");
}

#[test]
fn a_branch_that_a_person_made_is_judged_and_lands() {
    let stage = Stage::new();
    stage.git(&["checkout", "-q", "-b", "feature/$(id)"]);
    stage.commit(&[("src/a.txt", "good\n")]);
    let feature = stage.git(&["rev-parse", "HEAD"]).trim().to_owned();
    stage.git(&["checkout", "-q", "main"]);
    // The target moved since; what it changed does not count against the branch.
    stage.commit(&[("docs/readme.md", "moved\n")]);
    let flags = ["--allow", "src", "--accept", "sh check.sh", "--json"];
    let judged = stage.ask(&[&["judge", "feature/$(id)"][..], &flags].concat());
    assert_eq!((judged.code(), judged.exit), ("OK", 0), "{judged:?}");
    assert_judged_only(&stage, &judged);
    let run = judged.text("run_id");
    let revision = json!({ "name": "feature/$(id)", "commit": feature });
    assert_eq!(
        statement(&stage, run)["predicate"]["work"]["revision"],
        revision
    );
    assert_eq!(judged.json["work"]["revision"], revision);
    assert!(
        stage
            .ask(&["show", run])
            .says("work     revision feature/$(id), commit")
    );
    let retried = stage.ask(&["retry", run, "--json"]);
    assert_eq!(retried.code(), "USAGE_ERROR", "no agent: {retried:?}");
    let landed = stage.ask(&["land", run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.git(&["show", "HEAD:src/a.txt"]).trim(), "good");
    assert_eq!(stage.verify(run).exit, 0);

    let cases = [
        ("HEAD", &flags[..], "USAGE_ERROR"),
        ("nowhere", &flags[..], "NOT_FOUND"),
        (
            "HEAD",
            &[
                "--base",
                "HEAD",
                "--allow",
                "src",
                "--accept",
                "sh check.sh",
                "--json",
            ][..],
            "EMPTY_DIFF",
        ),
        (
            "feature/$(id)",
            &["--allow", "docs", "--accept", "sh check.sh", "--json"][..],
            "DIFF_REFUSED",
        ),
        (
            "feature/$(id)",
            &["--allow", "src", "--json"][..],
            "USAGE_ERROR",
        ),
    ];
    for (revision, flags, code) in cases {
        let judged = stage.ask(&[&["judge", revision][..], flags].concat());
        assert_eq!(judged.code(), code, "{revision} {flags:?} {judged:?}");
    }
    // A refused revision can be judged again, and is still named.
    let refused = stage.last_run().unwrap();
    let again = stage.ask(&["retry", &refused, "--keep-work", "--allow=src", "--json"]);
    assert_eq!(again.code(), "OK", "{again:?}");
    assert_eq!(again.json["work"]["revision"], revision);
    assert_eq!(again.json["work"]["judged"][0]["code"], "DIFF_REFUSED");
}

#[test]
fn a_revision_that_a_checkout_would_lose_is_refused() {
    let stage = Stage::with(&[
        ("src/a.txt", "x\n"),
        ("check.sh", "true\n"),
        (".gitignore", "*.o\n"),
    ]);
    stage.git(&["checkout", "-q", "-b", "feature"]);
    fs::write(stage.path("repo/src/b.o"), "object").unwrap();
    stage.git(&["add", "-f", "src/b.o"]);
    stage.git(&["commit", "-q", "-m", "an ignored file"]);
    stage.git(&["checkout", "-q", "main"]);
    let flags = ["--allow", "src", "--accept", "sh check.sh", "--json"];
    let judged = stage.ask(&[&["judge", "feature"][..], &flags].concat());
    assert_eq!(judged.code(), "DIFF_REFUSED", "{judged:?}");
    assert_eq!(judged.text("objective"), "an ignored file", "{judged:?}");
    assert!(
        judged.json["verdict"]["reason"]
            .to_string()
            .contains("src/b.o"),
        "{judged:?}"
    );
    assert_eq!(stage.verify(judged.text("run_id")).exit, 0);
}

/// A command that prints what pytest prints: one failed test for each word of a file.
const SUITE: &str = "n=0; for name in $(cat src/red.txt); do n=$((n+1)); \
    echo \"FAILED t.py::$name - assert\"; done\n\
    echo \"$n failed, $((4-n)) passed in 0.1s\"; test $n = 0\n";

#[test]
fn tests_that_fail_twice_on_the_base_may_fail_and_no_other() {
    let stage = Stage::with(&[("src/red.txt", "a b\n"), ("check.sh", SUITE)]);
    let mode = ["--accept-mode", "no-regression"];
    let cases = [
        ("echo c > src/new; echo a > src/red.txt", "OK"),
        ("echo c > src/new", "OK"),
        ("echo a c > src/red.txt", "ACCEPTANCE_FAILED"),
    ];
    for (script, code) in cases {
        let ask = Ask {
            more: &mode,
            ..Ask::default()
        };
        let ended = stage.run(script, &ask);
        assert_eq!(ended.code(), code, "{script}: {ended:?}");
        let run = ended.text("run_id");
        assert_eq!(stage.verify(run).exit, 0, "{script}");
        let events = events(&stage, run);
        let again = "STEP_STARTED base_again".to_owned();
        assert!(events.contains(&again), "{events:?}");
    }
    let accepted = stage.run(
        "echo c > src/new",
        &Ask {
            more: &mode,
            ..Ask::default()
        },
    );
    assert_eq!(accepted.json["excused"], json!(["t.py::a", "t.py::b"]));
    let shown = stage.ask(&["show", accepted.text("run_id")]);
    let mut lines = shown.out().lines();
    assert!(lines.next().unwrap().starts_with("accepted: "), "{shown:?}");
    assert_eq!(lines.next(), Some("  excused  t.py::a"));
    let refused = stage.run("echo c > src/new", &Ask::default());
    assert_eq!(refused.code(), "ACCEPTANCE_FAILED", "{refused:?}");
    // Another mode for refused work is a weaker judge.
    let run = refused.text("run_id");
    let retry = [
        "retry",
        run,
        "--keep-work",
        "--accept-mode=no-regression",
        "--json",
    ];
    assert_eq!(stage.ask(&retry).code(), "APPROVAL_NEEDED");
    stage.commit(&[("check.sh", "exit 1\n")]);
    let unnamed = stage.run(
        "echo c > src/new",
        &Ask {
            more: &mode,
            ..Ask::default()
        },
    );
    assert_eq!(unnamed.code(), "TESTS_UNNAMED", "{unnamed:?}");
}

#[test]
fn further_words_continue_the_work_as_it_was_left() {
    let stage = Stage::new();
    let refused = stage.run("echo first > src/new.txt", &Ask::default());
    assert_eq!(refused.code(), "ACCEPTANCE_FAILED", "{refused:?}");
    let run = refused.text("run_id");
    stage.agent(
        "grep -q first src/new.txt && grep -q 'also handle empty input' $PROVOST_CONTRACT \
         && echo good > src/a.txt",
    );
    let words = ["retry", run, "also handle empty input", "--json"];
    let continued = stage.ask(&words);
    assert_eq!(continued.code(), "OK", "{continued:?}");
    assert_eq!(continued.json["parent"], run);
    let files = json!(["src/a.txt", "src/new.txt"]);
    assert_eq!(continued.json["changed_files"], files);
    assert_eq!(stage.verify(continued.text("run_id")).exit, 0);
    let both = ["retry", run, "more", "--keep-work", "--json"];
    assert_eq!(stage.ask(&both).code(), "USAGE_ERROR");
    let failed = stage.run("exit 3", &Ask::default());
    let refused = stage.ask(&["retry", failed.text("run_id"), "more", "--json"]);
    assert_eq!(refused.code(), "KEEP_WORK_REFUSED", "{refused:?}");
}
