//! Deaths at every record and every file of a run: in the binary, at exactly that point.

use super::{check_sealed, salvaged, settle};
use crate::scene::{Ask, Running, Scene, run_arguments};

/// What `kill -9` ends a process with.
const KILLED: i32 = 128 + 9;

/// More points than any run has; reaching it means that no run ever ends.
const MOST: u32 = 200;

/// Starts a run that dies at `point`, after going past it `count` times.
fn start(scene: &Scene, script: &str, point: &str, count: u32) -> Running {
    let agent = scene.agent(script);
    let mut command = scene.provost(&run_arguments(&agent, &Ask::default()));
    let actions = match count {
        0 => format!("{point}=return"),
        count => format!("{point}={count}*off->return"),
    };
    command.env("FAILPOINTS", actions);
    scene.spawn(command)
}

/// Dies at `point` once, twice, thrice … until the run ends before it gets there.
fn sweep(script: &str, point: &str, code: &str) {
    for count in 0..MOST {
        let name = format!("{point} {count}");
        let scene = Scene::new();
        let before = scene.surroundings();
        let outcome = start(&scene, script, point, count).wait();
        if outcome.exit != KILLED {
            assert_eq!(outcome.code(), code, "{name}: {outcome:?}");
            assert!(count > 10, "{name}: hardly anything was tried");
            println!("{point}: {count} deaths");
            return;
        }
        let worked = agent_ended(&scene);
        let lost = lost_work(&scene);
        match settle(&scene, &before, &name) {
            Some(found) => assert_eq!(found, code, "{name}"),
            None => assert!(count == 0, "{name}: nothing was begun"),
        }
        if lost {
            check_salvage(&scene, &name);
        }
        if worked {
            // An agent that had ended is not asked twice.
            let shown = scene.ask(&["show", "--json"]);
            assert_eq!(shown.json["attempts"], 1, "{name}");
        }
    }
    panic!("{point}: no end");
}

fn events(scene: &Scene) -> String {
    let run = scene.last_run();
    let bytes = run.and_then(|run| std::fs::read(scene.evidence(&run, "events.jsonl")).ok());
    String::from_utf8(bytes.unwrap_or_default()).unwrap()
}

fn agent_ended(scene: &Scene) -> bool {
    events(scene).contains("AGENT_ENDED")
}

/// Whether an agent left work that no record knows of.
fn lost_work(scene: &Scene) -> bool {
    let printed = scene.last_run().is_some_and(|run| {
        // The agent prints a line when it is done.
        let logs = std::fs::read_dir(scene.evidence(&run, "agent"))
            .into_iter()
            .flatten();
        logs.count() > 0 && scene.printed().contains("done")
    });
    printed && !agent_ended(scene)
}

/// What the lost agent had written is kept.
fn check_salvage(scene: &Scene, name: &str) {
    let tree = salvaged(scene, 1).unwrap_or_else(|| panic!("{name}: its work is lost"));
    let kept = scene.git(&["cat-file", "blob", &format!("{tree}:src/a.txt")]);
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
fn what_a_killed_probe_left_stops_nobody() {
    for count in 0..MOST {
        let scene = Scene::new();
        let before = scene.surroundings();
        start(&scene, ACCEPTED, "after-record", count).wait();
        if !events(&scene).contains(r#""step":"selftest""#) {
            continue;
        }
        let attempts = scene.workspaces();
        assert_eq!(attempts.len(), 1);
        for place in ["home", "1/tree", "1/out"] {
            std::fs::write(attempts[0].join(place).join(".provost-probe"), "").unwrap();
        }
        assert_eq!(settle(&scene, &before, "probe").as_deref(), Some("OK"));
        let shown = scene.ask(&["show", "--json"]);
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
        let scene = Scene::new();
        let before = scene.surroundings();
        // Dies with the agent done and not recorded; then at each record of what follows.
        start(&scene, ACCEPTED, "before-record", 10).wait();
        let mut deaths = 0;
        for count in 1..MOST {
            let mut command = scene.provost(&["resume"]);
            command.env("FAILPOINTS", format!("{point}={count}*off->return"));
            let outcome = scene.spawn(command).wait();
            if outcome.exit != KILLED {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 3, "{point}: {deaths}");
        let code = settle(&scene, &before, point).unwrap();
        // Three agents lost with their drivers are enough.
        assert!(
            ["OK", "AGENT_LOST"].contains(&code.as_str()),
            "{point}: {code}"
        );
    }
}

/// Dies at every record of a landing; landing again brings it to its end, once.
fn sweep_landing(point: &str, target_moves: bool) {
    let script = "echo good > src/a.txt";
    for count in 0..MOST {
        let name = format!("{point} {count} {target_moves}");
        let scene = Scene::new();
        let run = scene.run(script, &Ask::default());
        assert_eq!(run.code(), "OK", "{name}: {run:?}");
        let run = run.text("run_id").to_owned();
        if target_moves {
            scene.commit(&[("docs/later.md", "later\n")]);
        }
        let before = scene.git(&["rev-parse", "main"]);
        let mut command = scene.provost(&["land", &run, "--json"]);
        let actions = match count {
            0 => format!("{point}=return"),
            count => format!("{point}={count}*off->return"),
        };
        command.env("FAILPOINTS", actions);
        let died = scene.spawn(command).wait().exit == KILLED;
        scene.await_silence(&name);
        for verified in [scene.verify(&run), scene.ask(&["verify", &run, "--json"])] {
            assert_eq!(verified.exit, 0, "{name}: {verified:?}");
        }
        let landed = scene.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, 0, "{name}: {landed:?}");
        let commit = landed.text("commit");
        assert_eq!(scene.git(&["rev-parse", "main"]), commit, "{name}");
        assert_eq!(scene.git(&["rev-parse", "main^"]), before, "{name}");
        assert_eq!(scene.git(&["status", "--porcelain"]), "", "{name}");
        assert!(scene.workspaces().is_empty(), "{name}");
        check_sealed(&scene, &name, &run);
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
