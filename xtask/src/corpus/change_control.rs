//! Scenarios of agents that share a checkout (docs/change-control.md). Each agent is one server
//! process, and a scenario consists of steps with expected answers.

mod agent;
mod expect;
mod ground;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CorpusError, Results, read_files};
use ground::Ground;

#[derive(Deserialize)]
struct Case {
    id: String,
    mode: String,
    repo: Repo,
    #[serde(default)]
    agents: Vec<String>,
    env: Option<Environment>,
    steps: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Repo {
    git: bool,
    files: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    ignore_tool_state: bool,
    root: Option<String>,
}

#[derive(Default, Deserialize)]
struct Environment {
    #[serde(default)]
    strict_finish: bool,
}

/// Runs the scenarios in `directory` for this implementation; those for another one are left out.
pub(super) fn run(directory: &Path, program: &Path) -> Result<Results, CorpusError> {
    let mut cases: Vec<Case> = read_files(directory)?;
    cases.retain(|case| matches!(case.mode.as_str(), "both" | "improved"));
    let program = fs::canonicalize(program)
        .map_err(|error| CorpusError::Unreadable(program.to_owned(), error))?;
    // A scenario mostly waits for processes, so several at once take little longer than one.
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
    let mut ground = Ground::lay(place.path(), case, program)?;
    for (number, step) in case.steps.iter().enumerate() {
        ground
            .step(step)
            .map_err(|why| format!("step {number} ({}): {why}", text(step, "op")))?;
    }
    Ok(())
}

/// A text of a step; empty if it has no such field.
fn text<'a>(step: &'a Map<String, Value>, name: &str) -> &'a str {
    step.get(name).and_then(Value::as_str).unwrap_or_default()
}
