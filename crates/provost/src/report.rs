//! Says where a run stands, to people and to programs.

use std::path::Path;

use provost_core::exit::Exit;
use provost_core::gate::command;
use provost_core::run::State;
use provost_core::run::fact::{Capture, Side};
use provost_core::run::judge::{compare, render_ending};
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::history::{Beside, go_on};
use crate::show::{findings, plain};
use crate::tail::{self, Tail};
use crate::traffic;

/// What became of a run, as the answer of a command.
pub(crate) fn run(state: &State, bundle: &Path, beside: &Beside) -> Answer {
    let exit = match &state.finished {
        Some(verdict) => verdict.exit(),
        None => Exit::NotNow,
    };
    let output = tail::of_failure(state, bundle);
    Answer {
        exit,
        json: facts(state, bundle, beside, &output),
        text: text(state, bundle, beside, &output),
    }
}

/// One word for where a run stands.
pub(crate) fn status(state: &State) -> &'static str {
    match &state.finished {
        None => "RUNNING",
        Some(verdict) if verdict.allow => "SUCCESS",
        Some(_) => "FAILURE",
    }
}

fn facts(state: &State, bundle: &Path, beside: &Beside, output: &[Tail]) -> Value {
    let gate = |(gate, verdict): (&provost_core::run::Gate, &Verdict)| {
        (
            gate.name().to_owned(),
            json!({ "allow": verdict.allow, "code": verdict.code,
            "reason": verdict.reason }),
        )
    };
    let changed = |captured: &Capture| -> Vec<String> {
        captured
            .changes
            .iter()
            .map(|change| change.path.to_string())
            .collect()
    };
    json!({
        "run_id": state.names.run_id,
        "verdict": state.finished,
        "status": status(state),
        "objective": state.opened.contract.inputs.spec,
        "base": state.opened.base_commit,
        "tree": state.captured.as_ref().map(|captured| &captured.tree),
        "commit": state.published.as_ref().map(|published| &published.commit),
        "branch": state.published.as_ref().map(|published| short(&published.branch)),
        "landed": beside.landed,
        "changed_files": state.captured.as_ref().map(changed).unwrap_or_default(),
        "gates": state.gates.iter().map(gate).collect::<Map<String, Value>>(),
        "tests": tests(state),
        "network": state.agent.as_ref().map_or(&[][..], |agent| &agent.network),
        "output": output,
        "attempts": state.attempt,
        "salvaged": state.salvaged,
        "bundle": bundle,
    })
}

fn tests(state: &State) -> Value {
    let (Some(base), Some(candidate)) = (
        state.tests.get(&Side::Base),
        state.tests.get(&Side::Candidate),
    ) else {
        return Value::Null;
    };
    json!({ "compared_with_base": compare(base, candidate) })
}

/// A branch as people call it.
pub(crate) fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn text(state: &State, bundle: &Path, beside: &Beside, output: &[Tail]) -> String {
    let run = &state.names.run_id;
    let mut text = match &state.finished {
        None => format!("run {run} has not ended\n"),
        Some(verdict) if verdict.allow => format!("accepted: {run}\n"),
        Some(verdict) => {
            format!("refused[{}]: {}\n", verdict.code, plain(&verdict.reason))
        }
    };
    for row in state.finished.iter().flat_map(findings) {
        text += &format!("  {}\n", plain(&row));
    }
    text += &work(state);
    for line in state
        .agent
        .iter()
        .flat_map(|agent| traffic::lines(&agent.network))
    {
        text += &format!("  network  {}\n", plain(&line));
    }
    for tail in output {
        text += &format!("  output   {}\n", tail.log.display());
        for line in &tail.last_lines {
            text += &format!("           | {line}\n");
        }
    }
    for (gate, verdict) in state.gates.iter().filter(|it| is_further(state, it.1)) {
        text += &format!("  also     {} gate: {}\n", gate.name(), verdict.code);
        for row in findings(verdict) {
            text += &format!("           {}\n", plain(&row));
        }
    }
    for salvage in &state.salvaged {
        text += &format!("  salvaged {}\n", salvage.kept_by);
    }
    text += &format!("  bundle   {}\n", bundle.display());
    text + &ending(state, beside)
}

/// What the agent changed and what the tests said.
fn work(state: &State) -> String {
    let mut text = String::new();
    if let Some(captured) = &state.captured {
        text += &format!(
            "  changed  {}, tree {}\n",
            counted(captured.changes.len(), "file"),
            captured.tree.short()
        );
    }
    if let Some(candidate) = state.tests.get(&Side::Candidate) {
        let compared = state
            .tests
            .get(&Side::Base)
            .map_or("", |base| compare(base, candidate));
        text += &format!("  tests    {compared}\n");
        for ran in &candidate.commands {
            text += &format!(
                "           {} {} in {} ms\n",
                plain(&command::line(&ran.argv)),
                render_ending(ran.ending),
                ran.wall_ms
            );
        }
    }
    text
}

/// Whether `verdict` is a refusal that the answer of the run does not tell.
fn is_further(state: &State, verdict: &Verdict) -> bool {
    let told = |answer: &Verdict| answer.code == verdict.code;
    !verdict.allow && !state.finished.as_ref().is_some_and(told)
}

/// Where the result is, and what comes next.
fn ending(state: &State, beside: &Beside) -> String {
    let run = &state.names.run_id;
    match (&state.finished, &state.published, &beside.landed) {
        (_, _, Some(landed)) => {
            let (branch, commit) = (short(&landed.target), landed.commit.short());
            format!("  landed   {branch}, commit {commit}\n")
        }
        (Some(_), Some(published), None) => {
            let branch = short(&published.branch);
            format!("  branch   {branch}\nnext: provost land {run}\n")
        }
        (Some(verdict), None, None) => {
            let captured = state.captured.as_ref();
            let work = captured.is_some_and(Capture::holds_anything) || !state.salvaged.is_empty();
            let next = if work {
                format!("next: provost salvage restore {run}\n")
            } else {
                String::new()
            };
            format!("hint: provost explain {}\n{next}", verdict.code)
        }
        (None, _, None) => format!("next: {}\n", go_on(run, beside.driven)),
    }
}
