//! Deaths at every record and every file of a run: in the binary, at exactly that point.

use super::{check_sealed, salvaged, settle};
use crate::stage::{Ask, Running, Stage, run_arguments};

/// What `kill -9` ends a process with.
const KILLED: i32 = 128 + 9;

/// More points than any run has; reaching it means that no run ever ends.
const MOST: u32 = 200;

/// Starts a run that dies at `point`, after going past it `count` times.
fn start(stage: &Stage, script: &str, point: &str, count: u32) -> Running {
    let agent = stage.agent(script);
    let mut command = stage.provost(&run_arguments(&agent, &Ask::default()));
    let actions = match count {
        0 => format!("{point}=return"),
        count => format!("{point}={count}*off->return"),
    };
    command.env("FAILPOINTS", actions);
    stage.spawn(command)
}

/// Dies at `point` once, twice, thrice … until the run ends before it gets there.
fn sweep(script: &str, point: &str, code: &str) {
    for count in 0..MOST {
        let name = format!("{point} {count}");
        let stage = Stage::new();
        let before = stage.surroundings();
        let outcome = start(&stage, script, point, count).wait();
        if outcome.exit != KILLED {
            assert_eq!(outcome.code(), code, "{name}: {outcome:?}");
            assert!(count > 10, "{name}: hardly anything was tried");
            println!("{point}: {count} deaths");
            return;
        }
        let worked = agent_ended(&stage);
        let lost = lost_work(&stage);
        match settle(&stage, &before, &name) {
            Some(found) => assert_eq!(found, code, "{name}"),
            None => assert!(count == 0, "{name}: nothing was begun"),
        }
        if lost {
            check_salvage(&stage, &name);
        }
        if worked {
            // An agent that had ended is not asked twice.
            let shown = stage.ask(&["show", "--json"]);
            assert_eq!(shown.json["attempts"], 1, "{name}");
        }
    }
    panic!("{point}: no end");
}

fn events(stage: &Stage) -> String {
    let run = stage.last_run();
    let bytes = run.and_then(|run| std::fs::read(stage.evidence(&run, "events.jsonl")).ok());
    String::from_utf8(bytes.unwrap_or_default()).unwrap()
}

fn agent_ended(stage: &Stage) -> bool {
    events(stage).contains("AGENT_ENDED")
}

/// Whether an agent left work that no record knows of.
fn lost_work(stage: &Stage) -> bool {
    let printed = stage.last_run().is_some_and(|run| {
        // The agent prints a line when it is done.
        let logs = std::fs::read_dir(stage.evidence(&run, "agent"))
            .into_iter()
            .flatten();
        logs.count() > 0 && stage.printed().contains("done")
    });
    printed && !agent_ended(stage)
}

/// What the lost agent had written is kept.
fn check_salvage(stage: &Stage, name: &str) {
    let tree = salvaged(stage, 1).unwrap_or_else(|| panic!("{name}: its work is lost"));
    let kept = stage.git(&["cat-file", "blob", &format!("{tree}:src/a.txt")]);
    assert_eq!(kept, "good", "{name}");
    println!("{name}: its work was salvaged");
}

const ACCEPTED: &str = "echo more > src/c.txt; echo good > src/a.txt; echo done";

const REFUSED: &str = "echo good > src/a.txt; echo owned > docs/readme.md; echo done";

#[test]
fn a_death_after_any_record_of_an_accepted_run() {
    sweep(ACCEPTED, "after-record", "OK");
}

#[test]
fn a_death_before_any_record_of_an_accepted_run() {
    sweep(ACCEPTED, "before-record", "OK");
}

#[test]
fn a_death_after_any_file_of_an_accepted_run() {
    sweep(ACCEPTED, "after-file", "OK");
}

#[test]
fn a_death_after_any_record_of_a_refused_run() {
    sweep(REFUSED, "after-record", "DIFF_REFUSED");
}

#[test]
fn a_death_before_any_record_of_a_refused_run() {
    sweep(REFUSED, "before-record", "DIFF_REFUSED");
}

/// The probe of the self-test makes files; one that died with its driver must not stop the next
/// one, nor be taken for the agent's work.
#[test]
fn what_a_killed_probe_left_stops_no_run() {
    for count in 0..MOST {
        let stage = Stage::new();
        let before = stage.surroundings();
        start(&stage, ACCEPTED, "after-record", count).wait();
        if !events(&stage).contains(r#""step":"selftest""#) {
            continue;
        }
        let attempts = stage.workspaces();
        assert_eq!(attempts.len(), 1);
        for place in ["home", "1/tree", "1/out"] {
            std::fs::write(attempts[0].join(place).join(".provost-probe"), "").unwrap();
        }
        assert_eq!(settle(&stage, &before, "probe").as_deref(), Some("OK"));
        let shown = stage.ask(&["show", "--json"]);
        let changed = &shown.json["changed_files"];
        assert_eq!(*changed, serde_json::json!(["src/a.txt", "src/c.txt"]));
        return;
    }
    panic!("there is no self-test");
}

/// A driver may die again while it takes over, and its successor too.
#[test]
fn deaths_while_taking_over() {
    for point in ["before-record", "after-record"] {
        let stage = Stage::new();
        let before = stage.surroundings();
        // Dies with the agent done and not recorded; then at each record of what follows.
        start(&stage, ACCEPTED, "before-record", 10).wait();
        let mut deaths = 0;
        for count in 1..MOST {
            let mut command = stage.provost(&["resume"]);
            command.env("FAILPOINTS", format!("{point}={count}*off->return"));
            let outcome = stage.spawn(command).wait();
            if outcome.exit != KILLED {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 3, "{point}: {deaths}");
        let code = settle(&stage, &before, point).unwrap();
        // Three agents lost with their drivers are enough.
        assert!(
            ["OK", "AGENT_LOST"].contains(&code.as_str()),
            "{point}: {code}"
        );
    }
}

/// Dies at every record of a landing; landing again finishes it, once.
fn sweep_landing(point: &str, target_moves: bool) {
    let script = "echo good > src/a.txt";
    for count in 0..MOST {
        let name = format!("{point} {count} {target_moves}");
        let stage = Stage::new();
        let run = stage.run(script, &Ask::default());
        assert_eq!(run.code(), "OK", "{name}: {run:?}");
        let run = run.text("run_id").to_owned();
        if target_moves {
            stage.commit(&[("docs/later.md", "later\n")]);
        }
        let before = stage.git(&["rev-parse", "main"]);
        let mut command = stage.provost(&["land", &run, "--json"]);
        let actions = match count {
            0 => format!("{point}=return"),
            count => format!("{point}={count}*off->return"),
        };
        command.env("FAILPOINTS", actions);
        let died = stage.spawn(command).wait().exit == KILLED;
        stage.await_silence(&name);
        for verified in [stage.verify(&run), stage.ask(&["verify", &run, "--json"])] {
            assert_eq!(verified.exit, 0, "{name}: {verified:?}");
        }
        let landed = stage.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, 0, "{name}: {landed:?}");
        let commit = landed.text("commit");
        assert_eq!(stage.git(&["rev-parse", "main"]), commit, "{name}");
        assert_eq!(stage.git(&["rev-parse", "main^"]), before, "{name}");
        assert_eq!(stage.git(&["status", "--porcelain"]), "", "{name}");
        assert!(stage.workspaces().is_empty(), "{name}");
        check_sealed(&stage, &name, &run);
        if !died {
            let least = if target_moves { 6 } else { 1 };
            assert!(count > least, "{name}: hardly anything was tried");
            assert_eq!(landed.json["before"], true, "{name}");
            return;
        }
    }
    panic!("{point}: no end");
}

#[test]
fn a_death_around_any_record_of_a_landing() {
    sweep_landing("before-record", false);
    sweep_landing("after-record", false);
}

#[test]
fn a_death_before_any_record_of_a_landing_that_merges() {
    sweep_landing("before-record", true);
}

#[test]
fn a_death_after_any_record_of_a_landing_that_merges() {
    sweep_landing("after-record", true);
}
