//! Scenarios of agents that share a checkout (docs/change-control.md). Each agent is one server
//! process, and a scenario consists of steps with expected answers.

mod agent;
mod expect;
mod ground;

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Results, each, read_files};
use crate::Result;
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
pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    let mut cases: Vec<Case> = read_files(directory)?;
    cases.retain(|case| matches!(case.mode.as_str(), "both" | "improved"));
    let named = |case: Case| (case.id.clone(), case);
    let cases: Vec<_> = cases.into_iter().map(named).collect();
    Ok(each(&cases, |case| check(case, program)))
}

fn check(case: &Case, program: &Path) -> Result {
    let place = tempfile::tempdir()?;
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
