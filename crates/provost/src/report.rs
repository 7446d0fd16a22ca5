//! Says where a run stands, to people and to programs.

use std::path::Path;

use provost_core::exit::Exit;
use provost_core::run::State;
use provost_core::run::fact::{Capture, Side};
use provost_core::run::judge::{compare, render_ending};
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::show::plain;

/// What became of a run, as the answer of a command.
pub(crate) fn run(state: &State, bundle: &Path) -> Answer {
    let exit = match &state.finished {
        Some(verdict) => verdict.exit(),
        None => Exit::NotNow,
    };
    Answer {
        exit,
        json: facts(state, bundle),
        text: text(state, bundle),
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

fn facts(state: &State, bundle: &Path) -> Value {
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
        "changed_files": state.captured.as_ref().map(changed).unwrap_or_default(),
        "gates": state.gates.iter().map(gate).collect::<Map<String, Value>>(),
        "tests": tests(state),
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

fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn text(state: &State, bundle: &Path) -> String {
    let run = &state.names.run_id;
    let mut text = match &state.finished {
        None => format!("run {run} has not ended\n"),
        Some(verdict) if verdict.allow => format!("accepted: {run}\n"),
        Some(verdict) => {
            format!("refused[{}]: {}\n", verdict.code, plain(&verdict.reason))
        }
    };
    if let Some(verdict) = &state.finished {
        for row in rows(verdict) {
            text += &format!("  {}\n", plain(&row));
        }
    }
    for (gate, verdict) in state.gates.iter().filter(|it| is_further(state, it.1)) {
        text += &format!("  also     {} gate: {}\n", gate.name(), verdict.code);
        for row in rows(verdict) {
            text += &format!("           {}\n", plain(&row));
        }
    }
    if let Some(captured) = &state.captured {
        text += &format!(
            "  changed  {} files, tree {}\n",
            captured.changes.len(),
            captured.tree.short()
        );
    }
    if let Some(candidate) = state.tests.get(&Side::Candidate) {
        let compared = state
            .tests
            .get(&Side::Base)
            .map_or("", |base| compare(base, candidate));
        text += &format!("  tests    {compared}\n");
        for command in &candidate.commands {
            let ending = render_ending(command.ending);
            text += &format!(
                "           {} {ending} in {} ms\n",
                plain(&command.argv.join(" ")),
                command.wall_ms
            );
        }
    }
    for salvage in &state.salvaged {
        text += &format!("  salvaged {}\n", salvage.kept_by);
    }
    text += &format!("  bundle   {}\n", bundle.display());
    match (&state.finished, &state.published) {
        (Some(_), Some(published)) => {
            text += &format!("  branch   {}\n", short(&published.branch));
            text += &format!("next: provost land {run}\n");
        }
        (Some(verdict), None) => text += &format!("hint: provost explain {}\n", verdict.code),
        (None, _) => text += &format!("next: provost resume {run}\n"),
    }
    text
}

/// Whether `verdict` is a refusal that the answer of the run does not tell.
fn is_further(state: &State, verdict: &Verdict) -> bool {
    let told = |answer: &Verdict| answer.code == verdict.code;
    !verdict.allow && !state.finished.as_ref().is_some_and(told)
}

fn rows(verdict: &Verdict) -> Vec<String> {
    let rows = verdict
        .details
        .as_ref()
        .and_then(|details| details.get("findings"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let line = |row: &Value| format!("{}: {}", text(row, "path"), text(row, "problem"));
    rows.and_then(Value::as_array)
        .map(|rows| rows.iter().map(line).collect())
        .unwrap_or_default()
}
