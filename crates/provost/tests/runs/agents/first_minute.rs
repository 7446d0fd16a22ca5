//! The first minute of a user: a fresh clone, `provost init && provost run 'Fix add'`, nothing else.

use std::fs;

use serde_json::{Value, json};

use super::stage::Program;
use super::vendor::VendorStage;
use crate::defaults::{Sample, cargo, make, npm, python};
use crate::stage::{Outcome, Stage};

const COMMANDS: &str = "provost init >&2 && exec provost run 'Fix add' --json";

/// The answer to the two commands, for a user who has this program and its key.
fn first_minute(
    program: Program,
    sample: &Sample,
    turns: &Value,
) -> Option<(VendorStage, Outcome)> {
    if sample.is_skipped() {
        return None;
    }
    let stage = Stage::empty();
    stage.repository("origin", sample.files);
    let [from, to] = ["origin", "repo"].map(|it| stage.path(it).display().to_string());
    stage.git_in("home", &["clone", "-q", &from, &to]);
    let vendor = VendorStage::new(stage, &[program], turns)?;
    let mut command = vendor.command(&["sh", "-c", COMMANDS]);
    for (name, value) in &sample.variables {
        match *name {
            "PATH" => {
                let own = vendor.inner.path("bin");
                command.env(name, format!("{}:{value}", own.display()))
            }
            _ => command.env(name, value),
        };
    }
    let outcome = vendor.inner.spawn(command).wait();
    Some((vendor, outcome))
}

/// Both programs repair the project, and the user typed nothing but the objective.
fn is_accepted(sample: &Sample) {
    for program in [Program::Claude, Program::Codex] {
        let fix = format!("sed -i 's/a - b/a + b/' {}", sample.wrong);
        let turns = json!([{ "shell": fix }, { "text": "add adds now." }]);
        let Some((vendor, done)) = first_minute(program, sample, &turns) else {
            return;
        };
        assert_eq!((done.code(), done.exit), ("OK", 0), "{program:?} {done:?}");
        assert_eq!(
            done.json["changed_files"],
            json!([sample.wrong]),
            "{done:?}"
        );
        let run = done.text("run_id");
        let file = vendor.inner.evidence(run, "contract.json");
        let contract: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(contract["allowed_paths"], sample.allow);
        let tests = contract["acceptance_tests"].as_array().unwrap().iter();
        let tests: Vec<&Value> = tests.map(|test| &test["cmd"]).collect();
        assert_eq!(tests, sample.accept);
        assert_eq!(vendor.inner.verify(run).exit, 0);
    }
}

#[test]
fn a_clone_of_a_python_project_needs_two_commands() {
    is_accepted(&python());
}

#[test]
fn a_clone_of_an_npm_project_needs_two_commands() {
    is_accepted(&npm());
}

#[test]
fn a_clone_of_a_make_project_needs_two_commands() {
    is_accepted(&make());
}

#[test]
fn a_clone_of_a_cargo_project_needs_two_commands() {
    if let Some(sample) = cargo() {
        is_accepted(&sample);
    }
}

/// An agent that only says so, and one that repairs the test instead.
#[test]
fn two_commands_do_not_believe_a_lie() {
    let sample = python();
    for program in [Program::Claude, Program::Codex] {
        for (work, code) in [
            ("sed -i 's/a - b/a - b - 1/' add.py", "ACCEPTANCE_FAILED"),
            ("sed -i 's/, 4)/, 0)/' test_add.py", "DIFF_REFUSED"),
        ] {
            let turns = json!([{ "shell": work }, { "text": "All tests pass." }]);
            let Some((vendor, refused)) = first_minute(program, &sample, &turns) else {
                return;
            };
            let found = (refused.code(), refused.exit);
            assert_eq!(found, (code, 1), "{program:?} {refused:?}");
            assert_eq!(vendor.inner.verify(refused.text("run_id")).exit, 0);
        }
    }
}
