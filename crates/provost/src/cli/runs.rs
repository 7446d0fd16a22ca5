//! `provost runs`, `show`, `log`, `diff` and `status`: what happened and what goes on.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use clap::Args;
use provost_core::code::Code;
use provost_core::record::Record;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::place::Place;
use crate::show::{Reader, plain};
use crate::{history, report};

/// Names a run.
#[derive(Args)]
pub(super) struct Which {
    /// The run: its id, a part of it, or `last`.
    #[arg(default_value = "last")]
    run: String,
}

#[derive(Args)]
pub(super) struct Log {
    #[command(flatten)]
    which: Which,

    /// Go on until the run ends.
    #[arg(long)]
    follow: bool,
}

/// Lists all runs.
pub(super) fn list() -> Outcome {
    let place = Place::find()?;
    let mut rows = Vec::new();
    let mut text = String::new();
    for run_id in place.runs()? {
        let row = row(&place, &run_id);
        text += &format!(
            "{run_id}  {:11}  {:18}  {}\n",
            row["status"].as_str().unwrap_or_default(),
            row["code"].as_str().unwrap_or_default(),
            plain(row["objective"].as_str().unwrap_or_default()),
        );
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
        }),
    }
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
    let mut answer = report::run(&state, &place.run(&run_id));
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
    let line = |row: &Value| {
        format!(
            "{}  {}  {}\n",
            row["run_id"].as_str().unwrap_or_default(),
            row["status"].as_str().unwrap_or_default(),
            plain(row["objective"].as_str().unwrap_or_default()),
        )
    };
    let mut text: String = open.iter().map(line).collect();
    if open.is_empty() {
        text += "nothing is going on\n";
    } else if open.iter().any(|row| row["status"] == "INTERRUPTED") {
        text += "next: provost resume\n";
    }
    Ok(Answer::data(json!({ "open": open }), text))
}

/// Prints the records of one run.
pub(super) fn log(log: &Log, reader: Reader) -> Outcome {
    let place = Place::find()?;
    let run_id = place.find_run(&log.which.run)?;
    let mut shown = 0;
    loop {
        let sealed = history::is_sealed(&place, &run_id);
        let records = history::records(&place, &run_id)?;
        let mut out = io::stdout().lock();
        for record in &records[shown.min(records.len())..] {
            if writeln!(out, "{}", line(record, reader)).is_err() {
                return Ok(Answer::data(Value::Null, ""));
            }
        }
        shown = records.len();
        let ended = sealed || !log.follow;
        if ended {
            return Ok(Answer::silent());
        }
        drop(out);
        thread::sleep(Duration::from_millis(200));
    }
}

fn line(record: &Record, reader: Reader) -> String {
    if reader == Reader::Program {
        return record.line();
    }
    let event = &record.event;
    let payload = &event.payload;
    let about = match event.event_type.as_str() {
        "STEP_STARTED" => payload.get("step").cloned(),
        "GATE_PASSED" | "gate_failed" | "policy_violation" => {
            let reason = payload
                .get("verdict")
                .and_then(|verdict| verdict.get("reason"));
            let gate = payload
                .get("gate")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Some(json!(format!(
                "{gate}: {}",
                reason.and_then(Value::as_str).unwrap_or_default()
            )))
        }
        "RUN_FINISHED" | "STEP_FAILED" => payload
            .get("verdict")
            .and_then(|verdict| verdict.get("reason"))
            .cloned(),
        "AGENT_ENDED" => payload.get("ending").cloned(),
        _ => None,
    };
    let about = match about {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    plain(&format!(
        "{:>3}  {}  {:20}  {about}",
        record.seq, event.ts, event.event_type
    ))
}
