//! `provost runs`, `show`, `diff` and `status`: what happened and what goes on.

use clap::Args;
use provost_core::code::Code;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::place::Place;
use crate::show::{headline, plain};
use crate::{history, report};

/// Names a run.
#[derive(Args)]
pub(super) struct Which {
    /// The run: its id, a part of it, or `last`.
    #[arg(default_value = "last")]
    pub(super) run: String,
}

/// Lists all runs.
pub(super) fn list() -> Outcome {
    let place = Place::find()?;
    let mut rows = Vec::new();
    let mut text = String::new();
    for run_id in place.runs()? {
        let row = row(&place, &run_id);
        text += &line(&row);
        rows.push(row);
    }
    if rows.is_empty() {
        text += "no runs yet; `provost run --help` says how to begin one\n";
    }
    Ok(Answer::data(Value::Array(rows), text))
}

/// One line about a run; a run that cannot be read is listed as such.
fn row(place: &Place, run_id: &str) -> Value {
    match history::state(place, run_id) {
        Err(_) if history::never_began(place, run_id) => json!({ "run_id": run_id,
            "status": "NOT_BEGUN", "code": null, "objective": "" }),
        Err(failure) => json!({ "run_id": run_id, "status": "UNREADABLE", "code": failure.code,
            "objective": failure.reason }),
        Ok(state) => json!({
            "run_id": run_id,
            "status": standing(place, &state),
            "code": state.finished.as_ref().map(|verdict| verdict.code),
            "objective": state.opened.contract.inputs.spec,
            "began": state.began,
            "landed": history::landed(place, run_id),
        }),
    }
}

/// A run in one line: the most telling word about it, and what it was asked to do.
fn line(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let word = match text("status") {
        "FAILURE" => text("code"),
        "SUCCESS" if row["landed"].is_object() => "LANDED",
        "SUCCESS" => "ACCEPTED",
        other => other,
    };
    let start = format!("{}  {word:18}  ", text("run_id"));
    let objective = headline(text("objective"), start.chars().count());
    format!("{start}{objective}\n")
}

/// Where a run stands, with those told apart that nobody drives any more.
fn standing(place: &Place, state: &provost_core::run::State) -> &'static str {
    let run_id = &state.names.run_id;
    if history::is_sealed(place, run_id) {
        return report::status(state);
    }
    if history::is_driven(place, run_id) {
        "RUNNING"
    } else {
        "INTERRUPTED"
    }
}

/// Shows one run.
pub(super) fn show(which: &Which) -> Outcome {
    let place = Place::find()?;
    let run_id = place.find_run(&which.run)?;
    let state = history::state(&place, &run_id)?;
    let beside = history::beside(&place, &run_id);
    let mut answer = report::run(&state, &place.run(&run_id), &beside);
    answer.exit = provost_core::exit::Exit::Yes;
    Ok(answer)
}

/// Shows the patch of one run.
pub(super) fn diff(which: &Which) -> Outcome {
    let place = Place::find()?;
    let run_id = place.find_run(&which.run)?;
    let state = history::state(&place, &run_id)?;
    let Some(captured) = &state.captured else {
        return Err(Failure::new(
            Code::NotFound,
            format!("{run_id} captured nothing"),
        ));
    };
    let patch = place
        .repo
        .patch(&state.opened.base_tree, &captured.tree)
        .map_err(|error| Failure::of(Code::GitFailed, &error))?;
    let text = String::from_utf8_lossy(&patch).into_owned();
    Ok(Answer::data(
        json!({ "run_id": run_id, "patch": text }),
        plain(&text),
    ))
}

/// Shows what is going on now: runs that have not ended, and who holds what.
pub(super) fn status() -> Outcome {
    let place = Place::find()?;
    let mut open = Vec::new();
    for run_id in place.runs()? {
        if !history::is_sealed(&place, &run_id) && !history::never_began(&place, &run_id) {
            open.push(row(&place, &run_id));
        }
    }
    let mut text: String = open.iter().map(line).collect();
    if open.is_empty() {
        text += "nothing is going on\n";
    } else if open.iter().any(|row| row["status"] == "INTERRUPTED") {
        text += "next: provost resume\n";
    }
    Ok(Answer::data(json!({ "open": open }), text))
}
