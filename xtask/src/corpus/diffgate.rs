//! Small repositories as data: a baseline, changes by an agent, and the expected verdict.

mod ground;
mod op;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use super::{Answer, CorpusError, Results, SLOWEST, ask, bounded, read_cases};
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

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results, CorpusError> {
    let cases: Vec<Case> = read_cases(directory)?;
    let program = fs::canonicalize(program)
        .map_err(|error| CorpusError::Unreadable(program.to_owned(), error))?;
    // A case mostly waits for the disk, so several at once take little longer than one.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((case.id.clone(), check(case, &program)));
        }
        done
    };
    let mut results: Results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let results = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default());
        results.collect()
    });
    // A case whose worker panicked has no result, and so fails.
    for case in &cases {
        if !results.iter().any(|(id, _)| *id == case.id) {
            results.push((case.id.clone(), Err("could not be run".to_owned())));
        }
    }
    results.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(results)
}

fn check(case: &Case, program: &Path) -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let answer = match case.stage.as_str() {
        "contract" => ask_scope(case, program, place.path())?,
        "gate" => {
            let ground = Ground::lay(place.path(), &case.baseline)?;
            let answer = ask_gate(case, program, &ground)?;
            ground.nothing_was_started()?;
            answer
        }
        other => return Err(format!("unknown stage `{other}`")),
    };
    compare(&case.expect, &answer)
}

fn ask_scope(case: &Case, program: &Path, place: &Path) -> Result<Answer, String> {
    let file = place.join("scope.json");
    let list = serde_json::to_vec(&case.allowed_paths).map_err(|error| error.to_string())?;
    fs::write(&file, list).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(["check", "scope", "--json", "--file"])
        .arg(file);
    ask(&mut command)
}

fn ask_gate(case: &Case, program: &Path, ground: &Ground) -> Result<Answer, String> {
    let before = ground.case.join("before.json");
    let mut command = Command::new(program);
    command.args(["snapshot", "--json", "--control"]);
    command.arg(&ground.worktree).arg("--out").arg(&before);
    let snapshot = bounded(&mut command, SLOWEST)?;
    if !snapshot.status.success() {
        let words = String::from_utf8_lossy(&snapshot.stdout).into_owned();
        return Err(format!("snapshot failed: {words}"));
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

fn compare(expect: &Expect, answer: &Answer) -> Result<(), String> {
    let got = if answer.allow { "pass" } else { "reject" };
    if got != expect.verdict {
        if expect.also_acceptable.iter().any(|verdict| verdict == got) {
            return Ok(());
        }
        return Err(format!("expected {}, got {}", expect.verdict, answer.whole));
    }
    if let Some(reason) = &expect.reason
        && !answer.reasons.contains(reason)
    {
        return Err(format!("expected {reason}, got {}", answer.whole));
    }
    for path in &expect.violations {
        if !answer.violations.contains(path) {
            return Err(format!(
                "expected `{path}` to be named, got {}",
                answer.whole
            ));
        }
    }
    Ok(())
}
