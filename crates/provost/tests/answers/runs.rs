//! Runs that are accepted, wait, are interrupted or cancelled.

use rustix::process::Signal;

use crate::{run, stage};
use provost_testkit::stage::{Ask, until};

const GOOD: &str = "echo at work; echo good > src/a.txt; echo more > src/new.txt";

#[test]
fn an_accepted_run_is_shown_and_landed() {
    let Some(stage) = stage() else { return };
    let agent = stage.agent(GOOD);
    let mut transcript = stage.transcript();
    transcript.plain(&["status"]);
    transcript.both(&["runs"]);
    transcript.plain(&run(&agent, &[]));
    for words in [
        &["show"][..],
        &["status"],
        &["runs"],
        &["why"],
        &["diff"],
        &["verify", "last"],
        &["lease", "list"],
        &["salvage", "list"],
        &["replay"],
        &["gc", "--dry-run"],
    ] {
        transcript.both(words);
    }
    transcript.plain(&["log"]);
    transcript.plain(&["land", "last"]);
    transcript.json(&["land", "last"]);
    transcript.plain(&["show"]);
    transcript.plain(&["gc"]);
    transcript.json(&["gc"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn an_accepted_run_answers_programs() {
    let Some(stage) = stage() else { return };
    let agent = stage.agent(GOOD);
    let mut transcript = stage.transcript();
    transcript.json(&run(&agent, &["--retries", "1", "--timeout", "60s"]));
    transcript.json(&["show"]);
    transcript.json(&["replay", "--reexec"]);
    transcript.json(&["land", "last"]);
    transcript.json(&["show"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_terminal_shows_a_run() {
    if provost_testkit::lacks(&["script"]) {
        return;
    }
    let Some(stage) = stage() else { return };
    let good = stage.agent(GOOD);
    let mut transcript = stage.transcript();
    transcript.terminal(&run(&good, &[]));
    transcript.terminal(&["show"]);
    transcript.terminal(&["runs"]);
    transcript.terminal(&["status"]);
    transcript.terminal(&["land", "last"]);
    let bad = stage.agent("echo x > docs/readme.md");
    transcript.terminal(&run(&bad, &[]));
    transcript.terminal(&["why"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_run_from_a_file_waits_for_its_user() {
    let Some(stage) = stage() else { return };
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    let agent = stage.agent(GOOD);
    let mut transcript = stage.transcript();
    let file = stage.path("contract.json").display().to_string();
    let new = ["contract", "new", &file, "Make it good"];
    let rights = ["--allow", "src", "--accept", "sh check.sh"];
    let more = ["--permit-oracle", "src/tox.ini"];
    transcript.plain(&[&new[..], &rights, &more].concat());
    transcript.both(&["contract", "lint", &file]);
    transcript.both(&["check", "contract", &file]);
    let words = ["run", "-f", &file, "--agent-cmd", &agent];
    transcript.plain(&words);
    transcript.both(&["show"]);
    transcript.both(&["status"]);
    transcript.json(&["resume", "last"]);
    transcript.plain(&["approve", "last", "--go"]);
    transcript.plain(&["approve", "last"]);
    transcript.json(&words);
    transcript.plain(&["reject", "last", "--reason", "too wide"]);
    transcript.both(&["show"]);
    transcript.plain(&["contract", "learn", "last"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn an_interrupted_run_is_resumed_and_a_running_one_cancelled() {
    let Some(stage) = stage() else { return };
    let slow = "test -e home-was-here || sleep 30; echo good > src/a.txt";
    let running = stage.start(slow, &Ask::default());
    let agents = || {
        stage
            .last_run()
            .is_some_and(|run| stage.evidence(&run, "agent").exists())
    };
    until("the agent is at work", agents);
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let mut transcript = stage.transcript();
    transcript.both(&["status"]);
    transcript.both(&["show"]);
    transcript.json(&["land", "last"]);
    transcript.plain(&["cancel", "last", "--reason", "not needed"]);
    transcript.both(&["show"]);
    transcript.plain(&["cancel", "last"]);
    transcript.plain(&["resume"]);
    transcript.plain(&["salvage", "list"]);
    insta::assert_snapshot!(transcript.text());
}
