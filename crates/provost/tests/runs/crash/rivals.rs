//! Two drivers, two runs, and somebody who presses Ctrl-C.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{agent_says, at_work, check_again, check_sealed, settle};
use crate::scene::{Ask, Outcome, Running, Scene, until};

/// An agent that waits until it is told to end, and then does its work.
const PATIENT: &str = "echo waiting; i=0
    while test $i -lt 20; do sleep 0.1; i=$((i + 1)); done; echo good > src/a.txt";

#[test]
fn a_run_that_is_driven_is_busy() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (running, run) = at_work(&scene, PATIENT, "waiting");
    let second = scene.ask(&["resume", &run, "--json"]);
    assert_eq!((second.exit, second.code()), (3, "RUN_BUSY"), "{second:?}");
    let all = scene.ask(&["resume"]);
    assert_eq!(all.exit, 0, "{all:?}");
    let first = running.wait();
    assert_eq!(first.code(), "OK", "{first:?}");
    assert_eq!(first.json["attempts"], 1);
    scene.assert_clean(&before, "busy");
}

#[test]
fn of_two_who_take_a_run_over_one_wins() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (running, run) = at_work(&scene, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let rivals: Vec<Running> = (0..4)
        .map(|_| scene.spawn(scene.provost(&["resume", &run, "--json"])))
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
    let shown = scene.ask(&["show", &run, "--json"]);
    assert_eq!(shown.json["attempts"], 2, "{shown:?}");
    scene.assert_clean(&before, "rivals");
    check_again(&scene, "rivals");
}

#[test]
fn runs_with_the_same_paths_exclude_each_other() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (first, _) = at_work(&scene, PATIENT, "waiting");
    for allow in [&["src"][..], &["src/a.txt"], &["docs", "src/deep/er"]] {
        let ask = Ask {
            allow,
            ..Ask::default()
        };
        let second = scene.start_agent("true", &ask).wait();
        assert_eq!(
            (second.exit, second.code()),
            (3, "LEASE_HELD"),
            "{allow:?}: {second:?}"
        );
        check_sealed(&scene, "held", second.text("run_id"));
    }
    let leases = scene.ask(&["lease", "list", "--json"]);
    assert_eq!(leases.json.as_array().unwrap().len(), 1, "{leases:?}");
    assert_eq!(first.wait().code(), "OK");
    scene.assert_clean(&before, "leases");
}

#[test]
fn runs_with_other_paths_go_on_side_by_side() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (first, _) = at_work(&scene, PATIENT, "waiting");
    let ask = Ask {
        allow: &["docs"],
        accept: "sh -n check.sh",
        ..Ask::default()
    };
    scene.write("agent/other.sh", "echo other > docs/readme.md\n");
    let agent = format!("sh {}", scene.path("agent/other.sh").display());
    let second = scene.start_agent(&agent, &ask).wait();
    assert_eq!(second.code(), "OK", "{second:?}");
    assert_eq!(second.json["changed_files"], json!(["docs/readme.md"]));
    let first = first.wait();
    assert_eq!(first.code(), "OK", "{first:?}");
    assert_eq!(first.json["changed_files"], json!(["src/a.txt"]));
    scene.assert_clean(&before, "side by side");
}

/// An agent that waits for a line in its own script, and then writes the file it is told.
const TOGETHER: &str = "echo waiting; i=0
    while test $i -lt 900 && ! grep -q '^# go' \"$0\"; do sleep 0.1; i=$((i + 1)); done
    echo good > \"$1\"\n";

#[test]
fn eight_runs_at_once_are_accepted_and_whoever_is_in_their_way_is_told_by_whom() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let agent = scene.agent(TOGETHER);
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
        scene.start_agent(&agent, &ask)
    };
    let runs: Vec<Running> = paths.iter().map(|path| start(path, &[path])).collect();
    until("all are at work", || {
        let works = |run: &&String| agent_says(&scene, run, "waiting");
        scene.runs().iter().filter(works).count() == paths.len()
    });
    let holders = scene.ask(&["lease", "list", "--json"]);
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
        check_sealed(&scene, allow, refused.text("run_id"));
    }
    let go = std::fs::read_to_string(scene.path("agent/agent.sh")).unwrap() + "# go\n";
    std::fs::write(scene.path("agent/agent.sh"), go).unwrap();
    for (path, running) in paths.iter().zip(runs) {
        let outcome = running.wait();
        assert_eq!(outcome.code(), "OK", "{path}: {outcome:?}");
        assert_eq!(outcome.json["changed_files"], json!([path]));
        check_sealed(&scene, path, outcome.text("run_id"));
    }
    scene.assert_clean(&before, "eight");
}

#[test]
fn the_lease_of_a_dead_driver_stops_nobody() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (running, dead) = at_work(&scene, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let next = scene.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(next.code(), "OK", "{next:?}");
    scene.agent(PATIENT);
    settle(&scene, &before, "dead");
    let shown = scene.ask(&["show", &dead, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// A run that was interrupted waits for whoever holds its scope now, and loses nothing.
#[test]
fn a_run_is_not_resumed_while_another_holds_its_paths() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (running, dead) = at_work(&scene, PATIENT, "waiting");
    running.signal(Signal::KILL);
    running.wait();
    let (holder, _) = at_work(&scene, PATIENT, "waiting");
    let refused = scene.ask(&["resume", &dead, "--json"]);
    assert_eq!(
        (refused.exit, refused.code()),
        (3, "LEASE_HELD"),
        "{refused:?}"
    );
    assert_eq!(holder.wait().code(), "OK");
    settle(&scene, &before, "held");
    let shown = scene.ask(&["show", &dead, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// Ends a run with a signal while its agent works, to one process or to all, as a terminal does.
fn cancel(signal: Signal, all: bool) {
    let name = format!("{signal:?} {all}");
    let scene = Scene::new();
    let before = scene.surroundings();
    let script = "trap '' INT TERM; echo half > src/half.txt; echo waiting; sleep 1000; sleep 1000";
    let (running, _) = at_work(&scene, script, "waiting");
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
    scene.assert_clean(&before, &name);
    let run = outcome.text("run_id");
    check_sealed(&scene, &name, run);
    check_again(&scene, &name);
    let kept = scene.git(&["show", &format!("refs/provost/runs/{run}/1:src/half.txt")]);
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
    let scene = Scene::new();
    let before = scene.surroundings();
    let script = "echo 'touch started; sleep 1000' > src/test.sh; echo good > src/a.txt";
    let ask = Ask {
        accept: "sh src/test.sh",
        ..Ask::default()
    };
    let running = scene.start(script, &ask);
    until("the acceptance command works", || {
        let run = scene.last_run();
        let log = run.map(|run| scene.evidence(&run, "ci/candidate/1.stdout.log"));
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
    scene.assert_clean(&before, "acceptance");
    check_sealed(&scene, "acceptance", outcome.text("run_id"));
}
