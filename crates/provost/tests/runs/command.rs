//! Runs that another command controls: cancelled, detached, tried again.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::{Value, json};

use crate::crash::{agent_says, at_work, check_sealed, settle};
use crate::stage::{Ask, Outcome, Running, Stage, run_arguments, until};

/// An agent that leaves something and then never ends.
const STUCK: &str =
    "trap '' INT TERM; echo half > src/half.txt; echo waiting; sleep 1000; sleep 1000";

/// An agent that says so and works for a while.
const SLOW: &str = "echo waiting; sleep 1; echo good > src/a.txt";

fn ledger(stage: &Stage, run: &str) -> String {
    fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap()
}

/// The run was ended by `provost cancel`, and its evidence says by whom and why.
fn check_cancelled(stage: &Stage, run: &str, reason: &str) {
    let shown = stage.ask(&["show", run, "--json"]);
    assert_eq!(shown.code(), "CANCELLED", "{shown:?}");
    let details = shown.json.pointer("/verdict/details").unwrap();
    let uid = rustix::process::getuid().as_raw();
    assert_eq!(details["by"]["uid"], json!(uid), "{details}");
    assert_eq!(details["reason"], reason, "{details}");
    assert!(details["at"].as_str().unwrap().ends_with('Z'), "{details}");
    let asked = ledger(stage, run).matches("RUN_CANCEL_REQUESTED").count();
    assert_eq!(asked, 1);
    check_sealed(stage, "cancelled", run);
}

#[test]
fn a_run_is_cancelled_from_elsewhere_and_keeps_its_work() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, STUCK, "waiting");
    let done = stage.ask(&["cancel", &run, "--reason", "wrong branch", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    let outcome = running.wait();
    assert_eq!(
        (outcome.exit, outcome.code()),
        (1, "CANCELLED"),
        "{outcome:?}"
    );
    check_cancelled(&stage, &run, "wrong branch");
    stage.assert_clean(&before, "cancelled");
    let kept = stage.git(&["show", &format!("refs/provost/runs/{run}/1:src/half.txt")]);
    assert_eq!(kept, "half");
    let again = stage.ask(&["cancel", &run, "--json"]);
    assert_eq!((again.exit, again.code()), (1, "RUN_OVER"), "{again:?}");
}

#[test]
fn of_two_cancel_requests_both_are_answered_and_the_first_counts() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, STUCK, "waiting");
    let both: Vec<Running> = (0..2)
        .map(|_| stage.spawn(stage.provost(&["cancel", &run, "--reason", "x", "--json"])))
        .collect();
    for outcome in both.into_iter().map(Running::wait) {
        assert_eq!(
            (outcome.exit, outcome.code()),
            (0, "CANCELLED"),
            "{outcome:?}"
        );
    }
    assert_eq!(running.wait().code(), "CANCELLED");
    check_cancelled(&stage, &run, "x");
    stage.assert_clean(&before, "two");
}

#[test]
fn a_run_is_cancelled_while_its_acceptance_command_works() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = "echo 'echo testing; sleep 1000' > src/test.sh; echo good > src/a.txt";
    let ask = Ask {
        accept: "sh src/test.sh",
        ..Ask::default()
    };
    let running = stage.start(script, &ask);
    let mut run = String::new();
    until("the acceptance command works", || {
        run = stage.last_run().unwrap_or_default();
        let log = stage.evidence(&run, "ci/candidate/1.stdout.log");
        fs::read_to_string(log).is_ok_and(|text| text.contains("testing"))
    });
    let done = stage.ask(&["cancel", &run, "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    assert_eq!(running.wait().code(), "CANCELLED");
    check_cancelled(&stage, &run, "");
    stage.assert_clean(&before, "acceptance");
}

#[test]
fn a_run_without_a_driver_is_taken_over_to_be_cancelled() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, STUCK, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let done = stage.ask(&["cancel", &run, "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    check_cancelled(&stage, &run, "");
    stage.assert_clean(&before, "dead");
    let started = ledger(&stage, &run);
    let agents = started.matches(r#""payload":{"step":"agent"}"#).count();
    assert_eq!(agents, 1, "no agent is started to be cancelled");
    let kept = stage.git(&[
        "show",
        &format!("refs/provost/salvage/{run}/1:src/half.txt"),
    ]);
    assert_eq!(kept, "half");
}

#[test]
fn what_is_over_or_never_was_cannot_be_cancelled() {
    let stage = Stage::new();
    let accepted = stage.run("echo good > src/a.txt", &Ask::default());
    let run = accepted.text("run_id");
    let late = stage.ask(&["cancel", run, "--json"]);
    assert_eq!((late.exit, late.code()), (1, "RUN_OVER"), "{late:?}");
    assert!(late.text("reason").contains("accepted"), "{late:?}");
    let landed = stage.ask(&["land", run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    let unknown = stage.ask(&["cancel", "nothing-like-it", "--json"]);
    assert_eq!(
        (unknown.exit, unknown.code()),
        (2, "NOT_FOUND"),
        "{unknown:?}"
    );
}

/// Starts a detached run, and waits until its agent says that it waits.
fn detached(stage: &Stage, script: &str) -> (Outcome, String, Pid) {
    let agent = stage.agent(script);
    let mut words = run_arguments(&agent, &Ask::default());
    words.push("--detach");
    let begun = stage.ask(&words);
    assert_eq!(begun.exit, 0, "{begun:?}");
    let run = begun.text("run_id").to_owned();
    assert!(ledger(stage, &run).contains("RUN_OPENED"), "{begun:?}");
    let pid = begun.json["pid"].as_i64().unwrap();
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    until("the agent works", || agent_says(stage, &run, "waiting"));
    (begun, run, pid)
}

#[test]
fn a_detached_run_continues_by_itself_and_can_be_followed() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (begun, run, pid) = detached(&stage, SLOW);
    assert_eq!(
        getsid(Some(pid)).unwrap(),
        pid,
        "it has a session of its own"
    );
    let followed = stage.ask(&["log", &run, "--follow"]);
    assert_eq!(followed.exit, 0, "{followed:?}");
    let followed_text = String::from_utf8(followed.stdout).unwrap();
    assert!(followed_text.contains("RUN_FINISHED"), "{followed_text}");
    stage.await_silence("detached");
    let said: Value = serde_json::from_slice(&fs::read(begun.text("stdout")).unwrap()).unwrap();
    assert_eq!(said["verdict"]["code"], "OK", "{said}");
    check_sealed(&stage, "detached", &run);
    stage.assert_clean(&before, "detached");
}

#[test]
fn what_a_detached_run_printed_goes_with_its_run() {
    let stage = Stage::new();
    let (begun, run, _) = detached(&stage, SLOW);
    let out = begun.text("stdout").to_owned();
    // Of a run that is gone, and of one that is just about to begin.
    let strange = ["old.stdout", "new.stderr"]
        .map(|end| stage.path(&format!("repo/.provost/detached/run_20260101_000000_{end}")));
    for file in &strange {
        fs::write(file, "words\n").unwrap();
    }
    let hours = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    let old = fs::File::options().write(true).open(&strange[0]).unwrap();
    old.set_modified(hours).unwrap();
    let left = || [out.as_ref(), &*strange[0], &*strange[1]].map(Path::exists);
    let sweep = |words: &[&str]| {
        let swept = stage.ask(&[&["gc", "--json"], words].concat());
        assert_eq!(swept.exit, 0, "{swept:?}");
        left()
    };
    assert_eq!(sweep(&["--dry-run"]), [true, true, true]);
    assert_eq!(sweep(&[]), [true, false, true], "it is still active");
    assert_eq!(stage.ask(&["log", &run, "--follow"]).exit, 0);
    stage.await_silence("detached");
    assert_eq!(sweep(&[]), [true, false, true], "its work has not landed");
    assert_eq!(stage.ask(&["land", &run]).exit, 0);
    assert_eq!(sweep(&[]), [false, false, true]);
}

#[test]
fn a_detached_driver_that_is_killed_leaves_a_run_that_can_be_resumed() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (_, run, pid) = detached(&stage, SLOW);
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(settle(&stage, &before, "killed").as_deref(), Some("OK"));
    let shown = stage.ask(&["show", &run, "--json"]);
    assert_eq!(shown.json["attempts"], 2, "{shown:?}");
}

#[test]
fn a_detached_run_is_cancelled_like_any_other() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (_, run, _) = detached(&stage, STUCK);
    let done = stage.ask(&["cancel", &run, "--reason", "enough", "--json"]);
    assert_eq!((done.exit, done.code()), (0, "CANCELLED"), "{done:?}");
    check_cancelled(&stage, &run, "enough");
    stage.await_silence("detached");
    stage.assert_clean(&before, "detached");
}

#[test]
fn a_detached_run_that_cannot_begin_says_why_at_once() {
    let stage = Stage::new();
    let agent = stage.agent("true");
    let mut words = run_arguments(&agent, &Ask::default());
    words.extend(["--detach", "--base", "nowhere"]);
    let wrong = stage.ask(&words);
    assert_eq!((wrong.exit, wrong.code()), (2, "NOT_FOUND"), "{wrong:?}");
    words.retain(|word| *word != "--json");
    let wrong = stage.ask(&words);
    assert_eq!(wrong.exit, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("error[NOT_FOUND]"), "{wrong:?}");
    assert!(stage.runs().is_empty());
    // A contract on standard input is read before the command detaches.
    stage.write("home/contract.json", "{}");
    let binary = env!("CARGO_BIN_EXE_provost");
    let script = format!("{binary} run -f - --detach --agent-cmd true < \"$HOME/contract.json\"");
    let mut command = stage.command("sh");
    command.args(["-c", &script]);
    let wrong = stage.spawn(command).wait();
    assert_eq!(wrong.exit, 1, "{wrong:?}");
    assert!(wrong.stderr.contains("/task_id: is missing"), "{wrong:?}");
}

#[test]
fn a_run_is_tried_again_on_the_same_base_or_on_a_newer_one() {
    let stage = Stage::new();
    let flaky = "test -f src/new.txt && echo good > src/a.txt || echo bad > src/a.txt";
    let first = stage.run(flaky, &Ask::default());
    assert_eq!(first.code(), "ACCEPTANCE_FAILED", "{first:?}");
    let run = first.text("run_id");
    let base = first.text("base").to_owned();
    stage.commit(&[("src/new.txt", "new\n")]);
    let same = stage.ask(&["retry", run, "--json"]);
    assert_eq!(same.code(), "ACCEPTANCE_FAILED", "{same:?}");
    assert_eq!(
        (same.text("parent"), same.text("base")),
        (run, base.as_str())
    );
    let newer = stage.ask(&["retry", run, "--base", "HEAD", "--json"]);
    assert_eq!(newer.code(), "OK", "{newer:?}");
    assert_eq!(newer.text("parent"), run);
    assert_eq!(newer.text("base"), stage.git(&["rev-parse", "HEAD"]));
    for outcome in [&same, &newer] {
        assert_ne!(outcome.text("run_id"), run);
        check_sealed(&stage, "again", outcome.text("run_id"));
    }
    let wrong = stage.ask(&["retry", run, "--base", "nowhere", "--json"]);
    assert_eq!((wrong.exit, wrong.code()), (2, "NOT_FOUND"), "{wrong:?}");
}

#[test]
fn a_run_that_is_not_over_is_not_tried_again() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, STUCK, "waiting");
    let busy = stage.ask(&["retry", &run, "--json"]);
    assert_eq!((busy.exit, busy.code()), (3, "RUN_BUSY"), "{busy:?}");
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let open = stage.ask(&["retry", &run, "--json"]);
    assert_eq!((open.exit, open.code()), (3, "RUN_UNFINISHED"), "{open:?}");
    assert_eq!(stage.runs().len(), 1);
    assert_eq!(stage.ask(&["cancel", &run]).exit, 0);
    stage.assert_clean(&before, "not over");
}

#[test]
fn a_lease_is_taken_away_only_from_the_holder_that_was_seen() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let unknown = stage.ask(&["lease", "release", "run_", "--json"]);
    assert_eq!(
        (unknown.exit, unknown.code()),
        (2, "NOT_FOUND"),
        "{unknown:?}"
    );
    let script = "echo waiting; sleep 4; echo good > src/a.txt";
    let (running, run) = at_work(&stage, script, "waiting");
    let asks = stage.ask(&["lease", "release", &run, "--json"]);
    assert_eq!((asks.exit, asks.code()), (3, "APPROVAL_NEEDED"), "{asks:?}");
    let other = "0".repeat(64);
    let wrong = stage.ask(&["lease", "release", &run, "--digest", &other, "--json"]);
    assert_eq!(
        (wrong.exit, wrong.code()),
        (1, "NOTHING_TO_APPROVE"),
        "{wrong:?}"
    );
    let digest = asks.json.pointer("/details/digest").unwrap();
    let digest = digest.as_str().unwrap();
    let words = [
        "lease", "release", &run, "--digest", digest, "--reason", "away", "--json",
    ];
    let done = stage.ask(&words);
    assert_eq!(
        (done.exit, &done.json["released"]),
        (0, &json!(true)),
        "{done:?}"
    );
    let outcome = running.wait();
    assert_eq!(
        (outcome.exit, outcome.code()),
        (3, "LEASE_LOST"),
        "{outcome:?}"
    );
    check_sealed(&stage, "lost", &run);
    stage.assert_clean(&before, "lost");
    let chain = fs::read_to_string(stage.path("repo/.provost/releases.jsonl")).unwrap();
    let names: Vec<Value> = chain
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event_type"].take())
        .collect();
    assert_eq!(names, ["LEASE_RELEASE_APPROVED", "LEASE_RELEASED"]);
    assert!(chain.contains("away") && chain.contains(digest), "{chain}");
}
