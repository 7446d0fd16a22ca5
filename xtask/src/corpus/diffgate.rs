//! Small repositories as data: a baseline, changes by an agent, and the expected verdict.

mod ground;
mod op;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{Answer, Results, SLOWEST, ask, bounded, each, read_cases};
use crate::Result;
use ground::Ground;
use op::Op;

#[derive(Deserialize)]
struct Case {
    id: String,
    stage: String,
    allowed_paths: Vec<String>,
    baseline: Vec<Op>,
    change: Vec<Op>,
    expect: Expect,
    baseline_ref: Option<String>,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize)]
struct Expect {
    verdict: String,
    reason: Option<String>,
    #[serde(default)]
    violations: Vec<String>,
    #[serde(default)]
    also_acceptable: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Options {
    #[serde(default)]
    binary_allow: Vec<String>,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    let cases: Vec<Case> = read_cases(directory)?;
    let named = |case: Case| (case.id.clone(), case);
    let cases: Vec<_> = cases.into_iter().map(named).collect();
    Ok(each(&cases, |case| check(case, program)))
}

fn check(case: &Case, program: &Path) -> Result {
    let place = tempfile::tempdir()?;
    let answer = match case.stage.as_str() {
        "contract" => ask_scope(case, program, place.path())?,
        "gate" => {
            let ground = Ground::lay(place.path(), &case.baseline)?;
            let answer = ask_gate(case, program, &ground)?;
            ground.nothing_was_started()?;
            answer
        }
        other => return Err(format!("unknown stage `{other}`").into()),
    };
    compare(&case.expect, &answer)
}

fn ask_scope(case: &Case, program: &Path, place: &Path) -> Result<Answer> {
    let file = place.join("scope.json");
    fs::write(&file, serde_json::to_vec(&case.allowed_paths)?)?;
    let mut command = Command::new(program);
    command
        .args(["check", "scope", "--json", "--file"])
        .arg(file);
    ask(&mut command)
}

fn ask_gate(case: &Case, program: &Path, ground: &Ground) -> Result<Answer> {
    let before = ground.case.join("before.json");
    let mut command = Command::new(program);
    command.args(["snapshot", "--json", "--control"]);
    command.arg(&ground.worktree).arg("--out").arg(&before);
    let snapshot = bounded(&mut command, SLOWEST)?;
    if !snapshot.status.success() {
        let words = String::from_utf8_lossy(&snapshot.stdout).into_owned();
        return Err(format!("snapshot failed: {words}").into());
    }
    ground.change(&case.change)?;
    let mut command = Command::new(program);
    let base = case.baseline_ref.as_ref().unwrap_or(&ground.base);
    command.args(["check", "diff", "--json", "--base", base, "--worktree"]);
    command.arg(&ground.worktree).arg("--before").arg(&before);
    for path in &case.allowed_paths {
        command.args(["--allow", path]);
    }
    for path in &case.options.binary_allow {
        command.args(["--allow-binary", path]);
    }
    ask(&mut command)
}

fn compare(expect: &Expect, answer: &Answer) -> Result {
    let got = if answer.allow { "pass" } else { "reject" };
    if got != expect.verdict {
        if expect.also_acceptable.iter().any(|verdict| verdict == got) {
            return Ok(());
        }
        return Err(format!("expected {}, got {}", expect.verdict, answer.whole).into());
    }
    if let Some(reason) = &expect.reason
        && !answer.reasons.contains(reason)
    {
        return Err(format!("expected {reason}, got {}", answer.whole).into());
    }
    for path in &expect.violations {
        if !answer.violations.contains(path) {
            let got = &answer.whole;
            return Err(format!("expected `{path}` to be named, got {got}").into());
        }
    }
    Ok(())
}
