//! Two drivers, two runs, and a user who presses Ctrl-C.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{agent_says, at_work, check_again, check_sealed, settle};
use crate::stage::{Ask, Outcome, Running, Stage, until};

/// An agent that waits for a sign to end, and then does its work.
const PATIENT: &str = "echo waiting; i=0
    while test $i -lt 20; do sleep 0.1; i=$((i + 1)); done; echo good > src/a.txt";

#[test]
fn a_run_that_is_driven_is_busy() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, PATIENT, "waiting");
    let second = stage.ask(&["resume", &run, "--json"]);
    assert_eq!((second.exit, second.code()), (3, "RUN_BUSY"), "{second:?}");
    let all = stage.ask(&["resume"]);
    assert_eq!(all.exit, 0, "{all:?}");
    let first = running.wait();
    assert_eq!(first.code(), "OK", "{first:?}");
    assert_eq!(first.json["attempts"], 1);
    stage.assert_clean(&before, "busy");
}

#[test]
fn of_two_who_take_a_run_over_one_wins() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(&stage, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let rivals: Vec<Running> = (0..4)
        .map(|_| stage.spawn(stage.provost(&["resume", &run, "--json"])))
        .collect();
    let outcomes: Vec<Outcome> = rivals.into_iter().map(Running::wait).collect();
    let winners = outcomes
        .iter()
        .filter(|one| one.json[0]["verdict"]["code"] == "OK");
    assert_eq!(winners.count(), 1, "{outcomes:?}");
    let losers = outcomes
        .iter()
        .filter(|one| (one.exit, one.code()) == (3, "RUN_BUSY"));
    assert_eq!(losers.count(), 3, "{outcomes:?}");
    let shown = stage.ask(&["show", &run, "--json"]);
    assert_eq!(shown.json["attempts"], 2, "{shown:?}");
    stage.assert_clean(&before, "rivals");
    check_again(&stage, "rivals");
}

#[test]
fn runs_with_the_same_paths_exclude_each_other() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (first, _) = at_work(&stage, PATIENT, "waiting");
    for allow in [&["src"][..], &["src/a.txt"], &["docs", "src/deep/er"]] {
        let ask = Ask {
            allow,
            ..Ask::default()
        };
        let second = stage.start_agent("true", &ask).wait();
        assert_eq!(
            (second.exit, second.code()),
            (3, "LEASE_HELD"),
            "{allow:?}: {second:?}"
        );
        check_sealed(&stage, "held", second.text("run_id"));
    }
    let leases = stage.ask(&["lease", "list", "--json"]);
    assert_eq!(leases.json.as_array().unwrap().len(), 1, "{leases:?}");
    assert_eq!(first.wait().code(), "OK");
    stage.assert_clean(&before, "leases");
}

#[test]
fn runs_with_other_paths_work_side_by_side() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (first, _) = at_work(&stage, PATIENT, "waiting");
    let ask = Ask {
        allow: &["docs"],
        accept: "sh -n check.sh",
        ..Ask::default()
    };
    stage.write("agent/other.sh", "echo other > docs/readme.md\n");
    let agent = format!("sh {}", stage.path("agent/other.sh").display());
    let second = stage.start_agent(&agent, &ask).wait();
    assert_eq!(second.code(), "OK", "{second:?}");
    assert_eq!(second.json["changed_files"], json!(["docs/readme.md"]));
    let first = first.wait();
    assert_eq!(first.code(), "OK", "{first:?}");
    assert_eq!(first.json["changed_files"], json!(["src/a.txt"]));
    stage.assert_clean(&before, "side by side");
}

/// An agent that waits for a line in its own script, and then writes the file that the line names.
const TOGETHER: &str = "echo waiting; i=0
    while test $i -lt 900 && ! grep -q '^# go' \"$0\"; do sleep 0.1; i=$((i + 1)); done
    echo good > \"$1\"\n";

#[test]
fn eight_runs_at_once_are_accepted_and_a_conflicting_run_names_the_holder() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let agent = stage.agent(TOGETHER);
    let accept = "sh -n check.sh";
    let paths: Vec<String> = (1..=8).map(|number| format!("src/{number}.txt")).collect();
    let start = |path: &str, allow: &[&str]| {
        let agent = format!("{agent} {path}");
        let more = &["--timeout", "110s"];
        let ask = Ask {
            allow,
            accept,
            more,
        };
        stage.start_agent(&agent, &ask)
    };
    let runs: Vec<Running> = paths.iter().map(|path| start(path, &[path])).collect();
    until("all are at work", || {
        let works = |run: &&String| agent_says(&stage, run, "waiting");
        stage.runs().iter().filter(works).count() == paths.len()
    });
    let holders = stage.ask(&["lease", "list", "--json"]);
    for (path, allow) in [("src/3.txt", "src/3.txt"), ("src/9.txt", "src")] {
        let refused = start(path, &[allow]).wait();
        let answer = (refused.exit, refused.code());
        assert_eq!(answer, (3, "LEASE_HELD"), "{allow}: {refused:?}");
        let reason = refused.json["verdict"]["reason"].as_str().unwrap();
        let of = |row: &&Value| row["paths"].to_string().contains(path) || allow == "src";
        for row in holders.json.as_array().unwrap().iter().filter(of) {
            let holder = row["run_id"].as_str().unwrap();
            assert!(reason.contains(holder), "{allow}: {reason}, not {row}");
        }
        check_sealed(&stage, allow, refused.text("run_id"));
    }
    let go = std::fs::read_to_string(stage.path("agent/agent.sh")).unwrap() + "# go\n";
    std::fs::write(stage.path("agent/agent.sh"), go).unwrap();
    for (path, running) in paths.iter().zip(runs) {
        let outcome = running.wait();
        assert_eq!(outcome.code(), "OK", "{path}: {outcome:?}");
        assert_eq!(outcome.json["changed_files"], json!([path]));
        check_sealed(&stage, path, outcome.text("run_id"));
    }
    stage.assert_clean(&before, "eight");
}

#[test]
fn the_lease_of_a_dead_driver_stops_no_run() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, dead) = at_work(&stage, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let next = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(next.code(), "OK", "{next:?}");
    stage.agent(PATIENT);
    settle(&stage, &before, "dead");
    let shown = stage.ask(&["show", &dead, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// An interrupted run is not resumed while another run holds its scope, and loses nothing.
#[test]
fn a_run_is_not_resumed_while_another_holds_its_paths() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, dead) = at_work(&stage, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let (holder, _) = at_work(&stage, PATIENT, "waiting");
    let refused = stage.ask(&["resume", &dead, "--json"]);
    assert_eq!(
        (refused.exit, refused.code()),
        (3, "LEASE_HELD"),
        "{refused:?}"
    );
    assert_eq!(holder.wait().code(), "OK");
    settle(&stage, &before, "held");
    let shown = stage.ask(&["show", &dead, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// Ends a run with a signal while its agent works, to one process or to all, as a terminal does.
fn cancel(signal: Signal, all: bool) {
    let name = format!("{signal:?} {all}");
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = "trap '' INT TERM; echo half > src/half.txt; echo waiting; sleep 1000; sleep 1000";
    let (running, _) = at_work(&stage, script, "waiting");
    if all {
        running.signal_all(signal);
    } else {
        running.signal(signal);
    }
    let outcome = running.wait();
    assert_eq!(
        (outcome.exit, outcome.code()),
        (1, "CANCELLED"),
        "{name}: {outcome:?}"
    );
    stage.assert_clean(&before, &name);
    let run = outcome.text("run_id");
    check_sealed(&stage, &name, run);
    check_again(&stage, &name);
    let kept = stage.git(&["show", &format!("refs/provost/runs/{run}/1:src/half.txt")]);
    assert_eq!(kept, "half", "{name}");
}

#[test]
fn ctrl_c_cancels_and_seals() {
    cancel(Signal::INT, true);
}

#[test]
fn a_signal_to_the_driver_alone_cancels_and_seals() {
    cancel(Signal::INT, false);
    cancel(Signal::TERM, false);
}

#[test]
fn ctrl_c_cancels_an_acceptance_command() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = "echo 'touch started; sleep 1000' > src/test.sh; echo good > src/a.txt";
    let ask = Ask {
        accept: "sh src/test.sh",
        ..Ask::default()
    };
    let running = stage.start(script, &ask);
    until("the acceptance command works", || {
        let run = stage.last_run();
        let log = run.map(|run| stage.evidence(&run, "ci/candidate/1.stdout.log"));
        log.is_some_and(|log| log.exists())
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal_all(Signal::INT);
    let outcome = running.wait();
    assert_eq!(
        (outcome.exit, outcome.code()),
        (1, "CANCELLED"),
        "{outcome:?}"
    );
    stage.assert_clean(&before, "acceptance");
    check_sealed(&stage, "acceptance", outcome.text("run_id"));
}
