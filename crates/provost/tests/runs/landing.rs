//! Landings on branches of the user, in all the states that branches and evidence can be in.

use provost_core::record::{Event, Head, Level, read};
use serde_json::{Map, Value, json};

use crate::stage::{Ask, Outcome, Stage};

/// A stage with an accepted run, and the run.
pub(crate) fn accepted() -> (Stage, String) {
    let stage = Stage::new();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    (stage, run)
}

/// The same with a target that moved since.
pub(crate) fn moved() -> (Stage, String) {
    let (stage, run) = accepted();
    stage.commit(&[("docs/later.md", "later\n")]);
    (stage, run)
}

pub(crate) fn land(stage: &Stage, run: &str) -> Outcome {
    stage.ask(&["land", run, "--json"])
}

pub(crate) fn landed(stage: &Stage, run: &str) -> Outcome {
    let outcome = land(stage, run);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(stage.git(&["rev-parse", "main"]), outcome.text("commit"));
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
    check(stage, run);
    outcome
}

/// The evidence holds, by itself and with what the registry knows; nothing is left in the cache.
pub(crate) fn check(stage: &Stage, run: &str) -> Outcome {
    let known = stage.ask(&["verify", run, "--json"]);
    assert_eq!(known.exit, 0, "{known:?}");
    assert_eq!(stage.verify(run).exit, 0);
    let left = stage.workspaces();
    assert!(left.is_empty(), "{left:?}");
    known
}

pub(crate) fn refused(stage: &Stage, run: &str, code: &str, words: &str) {
    let main = stage.git(&["rev-parse", "main"]);
    let outcome = land(stage, run);
    assert_eq!(outcome.code(), code, "{outcome:?}");
    assert!(outcome.text("reason").contains(words), "{outcome:?}");
    assert_eq!(stage.git(&["rev-parse", "main"]), main);
}

/// Adds a record to the second chain, as a user with an editor can.
pub(crate) fn forge(stage: &Stage, run: &str, kind: &str, payload: &Value) {
    let text = |name: &str| std::fs::read(stage.evidence(run, name)).unwrap_or_default();
    let sealed = read(&text("events.jsonl"), Head::genesis()).unwrap();
    let after = text("after.jsonl");
    let mut head = read(&after, Head::after(&sealed.head.hash)).unwrap().head;
    let first = &sealed.records[0].event;
    let record = head.append(Event {
        ts: first.ts.clone(),
        level: Level::Info,
        event_type: kind.into(),
        run_id: run.into(),
        task_id: first.task_id.clone(),
        attempt: None,
        payload: payload.as_object().cloned().unwrap_or_else(Map::new),
        trace_id: first.trace_id.clone(),
    });
    let bytes = [after, record.line().into_bytes(), b"\n".to_vec()].concat();
    std::fs::write(stage.evidence(run, "after.jsonl"), bytes).unwrap();
}

#[test]
fn a_checkout_that_was_touched_or_copied_is_landed_on() {
    let (stage, run) = accepted();
    let mut touch = stage.command("sh");
    touch.args(["-c", "sleep 0.1; touch src/* docs/* check.sh"]);
    assert_eq!(stage.spawn(touch).wait().exit, 0);
    landed(&stage, &run);

    let (stage, run) = accepted();
    let mut copy = stage.command("sh");
    let all = "cd .. && mv repo away && cp -r away repo && rm -rf away";
    copy.args(["-c", all]);
    assert_eq!(stage.spawn(copy).wait().exit, 0);
    landed(&stage, &run);
}

#[test]
fn a_run_lands_once_and_again_after_a_reset() {
    let (stage, run) = accepted();
    let base = stage.git(&["rev-parse", "main"]);
    let first = landed(&stage, &run);
    let again = landed(&stage, &run);
    assert_eq!(again.json["before"], true, "{again:?}");
    assert_eq!(first.text("commit"), again.text("commit"));
    assert_eq!(stage.git(&["branch", "--list", "provost/*"]), "");
    // Work of the user on top is no reason to land again, and neither is a dirty checkout.
    stage.commit(&[("docs/more.md", "more\n")]);
    stage.write("repo/docs/readme.md", "mine\n");
    assert_eq!(land(&stage, &run).json["before"], true);

    stage.git(&["reset", "-q", "--hard", &base]);
    let back = landed(&stage, &run);
    assert_eq!(back.json["before"], false, "{back:?}");
    assert_eq!(first.text("commit"), back.text("commit"));

    stage.git(&["reset", "-q", "--hard", &base]);
    stage.commit(&[("docs/later.md", "later\n")]);
    let merged = landed(&stage, &run);
    assert_ne!(first.text("commit"), merged.text("commit"));
    let known = check(&stage, &run);
    let landings = &known.json["details"]["after"]["landings"];
    assert_eq!(landings.as_array().unwrap().len(), 3, "{known:?}");
    assert_eq!(known.json["details"]["after"]["unvouched"], json!([]));
}

#[test]
fn a_merge_is_kept_and_what_was_merged_by_hand_is_noticed() {
    let (stage, run) = moved();
    let merged = landed(&stage, &run);
    let kept = stage.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/provost",
    ]);
    let commit = merged.text("commit");
    assert!(
        kept.contains(&format!("refs/provost/merged/{run}/{commit} {commit}")),
        "{kept}"
    );
    let base = stage.git(&["rev-parse", "main~2"]);
    assert!(
        kept.contains(&format!("refs/provost/base/{run} {base}")),
        "{kept}"
    );

    let (stage, run) = accepted();
    stage.git(&["merge", "-q", "--ff-only", &format!("provost/{run}")]);
    assert_eq!(landed(&stage, &run).json["before"], false);
}

#[test]
fn a_forged_landing_is_not_believed() {
    let (stage, run) = accepted();
    let tip = stage.git(&["rev-parse", "main"]);
    let tree = stage.git(&["rev-parse", "main^{tree}"]);
    let landing = json!({ "commit": tip, "tree": tree, "parent": tip,
        "target": "refs/heads/main" });
    forge(&stage, &run, "LANDED", &landing);
    assert_eq!(stage.verify(&run).code(), "EVIDENCE_ALTERED");
    refused(&stage, &run, "EVIDENCE_ALTERED", "carries no statement");

    // A landing that only began is believed to have begun, and no more.
    let (stage, run) = accepted();
    forge(&stage, &run, "LAND_STARTED", &landing);
    forge(&stage, &run, "APPROVED", &json!({}));
    landed(&stage, &run);
    let known = check(&stage, &run);
    let unvouched = &known.json["details"]["after"]["unvouched"];
    assert_eq!(
        *unvouched,
        json!([
            "after.jsonl record 0 (LAND_STARTED): a landing that began and was refused or interrupted",
            "after.jsonl record 1 (APPROVED)"
        ])
    );
    let text = stage.ask(&["verify", &run]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("nothing follows from it:\n  after.jsonl record 0 (LAND_STARTED): a landing")
            && text.contains("\n  after.jsonl record 1 (APPROVED)\n"),
        "{text}"
    );
}

#[test]
fn a_second_chain_that_was_cut_is_missed() {
    let (stage, run) = moved();
    landed(&stage, &run);
    let path = stage.evidence(&run, "after.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for keep in [0, 1, lines.len() - 1] {
        std::fs::write(&path, lines[..keep].concat()).unwrap();
        let known = stage.ask(&["verify", &run, "--json"]);
        assert_eq!(
            (known.exit, known.code()),
            (5, "EVIDENCE_INCOMPLETE"),
            "{keep}: {known:?}"
        );
        refused(&stage, &run, "EVIDENCE_INCOMPLETE", "after.jsonl");
        // The same bundle by its path: the registry beside it knows where it ends.
        let place = path.parent().unwrap().to_str().unwrap();
        assert_eq!(stage.ask(&["verify", place, "--json"]).exit, 5, "{keep}");
    }
    std::fs::write(&path, &whole).unwrap();
    check(&stage, &run);
    let log = stage.evidence(&run, "after/1/1.stdout.log");
    std::fs::write(&log, "all fine\n").unwrap();
    assert_eq!(stage.verify(&run).code(), "EVIDENCE_ALTERED");
    refused(&stage, &run, "EVIDENCE_ALTERED", "after/1/1.stdout.log");
}

#[test]
fn a_branch_that_others_use_is_left_alone() {
    let (stage, run) = accepted();
    stage.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    refused(&stage, &run, "TARGET_REFUSED", "second");
    stage.git(&["worktree", "remove", "../second"]);

    stage.git(&["worktree", "add", "-q", "--detach", "../second", "main"]);
    stage.git(&["checkout", "-q", "-b", "elsewhere"]);
    stage.git_in("second", &["checkout", "-q", "main"]);
    stage.git_in("second", &["bisect", "start"]);
    stage.git_in("second", &["checkout", "-q", "--detach"]);
    refused(&stage, &run, "TARGET_REFUSED", "bisection");
    stage.git_in("second", &["bisect", "reset"]);
    stage.git_in("second", &["checkout", "-q", "--detach"]);
    let note = ".git/worktrees/second/rebase-merge/head-name";
    stage.write(&format!("repo/{note}"), "refs/heads/main\n");
    refused(&stage, &run, "TARGET_REFUSED", "rebase");
    std::fs::remove_dir_all(stage.path("repo/.git/worktrees/second/rebase-merge")).unwrap();
    let outcome = land(&stage, &run);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
}

#[test]
fn a_branch_that_is_another_name_is_not_replaced() {
    let stage = Stage::new();
    stage.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    let ask = Ask {
        more: &["--target", "alias"],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    refused(
        &stage,
        outcome.text("run_id"),
        "TARGET_REFUSED",
        "another name",
    );
    assert_eq!(
        stage.git(&["symbolic-ref", "refs/heads/alias"]),
        "refs/heads/main"
    );
}

#[test]
fn filters_of_the_repository_and_the_user_are_seen() {
    let (stage, run) = accepted();
    stage.git(&["config", "filter.upper.smudge", "tr a-z A-Z"]);
    let cases = [
        ("repo/.git/info/attributes", "src/a.txt filter=upper\n"),
        ("config/git/attributes", "src/a.txt filter=upper\n"),
        ("home/mine", "src/a.txt filter=upper\n"),
    ];
    for (file, text) in cases {
        stage.write(file, text);
        if file == "home/mine" {
            stage.write("home/.gitconfig", "[core]\n\tattributesFile = ~/mine\n");
        }
        refused(&stage, &run, "CHECKOUT_DIRTY", "filter");
        std::fs::remove_file(stage.path(file)).unwrap();
    }
    stage.write("repo/.git/info/attributes", "src/a.txt eol=crlf\n");
    // As the user's own git would have written it.
    landed(&stage, &run);
    let bytes = std::fs::read(stage.path("repo/src/a.txt")).unwrap();
    assert_eq!(bytes, b"good\r\n");
}

/// The rounds on merges in the second chain: whether each was reused from an earlier one.
fn rounds(stage: &Stage, run: &str) -> Vec<bool> {
    let text = std::fs::read_to_string(stage.evidence(run, "after.jsonl")).unwrap();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tests = records.filter(|record| record["event_type"] == "TEST_RESULT");
    let cached = |record: Value| record["payload"]["cached"].as_bool().unwrap();
    tests.map(cached).collect()
}

#[test]
fn what_was_tested_on_a_tree_is_not_tested_on_it_again() {
    // The target moved, and the merge is the tree that was sealed.
    let (stage, run) = accepted();
    stage.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    landed(&stage, &run);
    assert_eq!(rounds(&stage, &run), [true]);

    // Another tree is tested, once: the target moves on without a difference in it.
    let (stage, run) = moved();
    stage.write("repo/src/a.txt", "mine\n");
    refused(&stage, &run, "CHECKOUT_DIRTY", "src/a.txt");
    stage.git(&["checkout", "-q", "src/a.txt"]);
    stage.git(&["commit", "-q", "--amend", "-m", "the same in other words"]);
    landed(&stage, &run);
    assert_eq!(rounds(&stage, &run), [false, true]);

    // What no statement vouches for is no evidence.
    let (stage, run) = accepted();
    stage.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    let log = stage.evidence(&run, "ci/candidate/1.stdout.log");
    std::fs::write(&log, "all fine\n").unwrap();
    refused(&stage, &run, "EVIDENCE_ALTERED", "1.stdout.log");
}

#[test]
fn a_landing_that_fails_names_the_command_that_helps() {
    let hint = |outcome: &Outcome| {
        let hint = outcome.json.pointer("/details/hint");
        hint.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (stage, run) = accepted();
    stage.commit(&[("src/a.txt", "good and mine\n")]);
    let outcome = land(&stage, &run);
    assert_eq!(outcome.code(), "LAND_CONFLICT", "{outcome:?}");
    let again = format!("provost retry {run} --base main");
    assert!(hint(&outcome).contains(&again), "{outcome:?}");
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    let again = stage.ask(&[&words[..], &["--json"]].concat());
    assert_eq!(again.code(), "OK", "{again:?}");
    landed(&stage, again.text("run_id"));

    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    let outcome = land(&stage, refused.text("run_id"));
    assert_eq!(outcome.code(), "NOT_ACCEPTED", "{outcome:?}");
    let why = format!("provost why {}", refused.text("run_id"));
    assert_eq!(hint(&outcome), why);
}
