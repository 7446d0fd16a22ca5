//! `provost runs`, `show` and `diff`: past and active runs.

use std::io;

use clap::Args;
use provost_core::bundle::layout::PATCH;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_engine::query::{self, DiffView, RunStatus, RunSummary, Surroundings, short_id};
use provost_host::clock;

use super::case;
use super::run::refused;

use crate::answer::{Answer, Failure, Outcome};
use crate::look;
use crate::places::Places;
use crate::show::{Reader, headline, neutralise, print_message};
use crate::{input, parts, report, times};

// Names a run.
#[derive(Args)]
pub(super) struct Which {
    /// The run: its id, a part of it, or `last`.
    #[arg(default_value = "last")]
    pub(super) run: String,
}

pub(super) fn list() -> Outcome {
    let place = Places::look()?;
    let mut rows = query::summaries(&place, &place.runs()?);
    let refused = place.all_refused()?;
    rows.extend(refused.iter().map(|run_id| refused::row(&place, run_id)));
    rows.sort_by(|one, other| other.run_id.cmp(&one.run_id));
    let foreign = rows.iter().filter(|row| row.is_foreign()).count();
    let text = match rows.as_slice() {
        [] => "no runs yet; `provost run --help` says how to begin one\n".to_owned(),
        rows if foreign > 0 => table(rows) + &place.foreign_note(foreign),
        rows => table(rows),
    };
    Ok(Answer::data(rows, text))
}

/// The usual width of an outcome.
const USUAL_OUTCOME: usize = 18;

/// The rows as a table with a header.
fn table(rows: &[RunSummary]) -> String {
    let width = outcome_width(rows.iter());
    let now = clock::now_millis();
    let rows = rows.iter().map(|row| line(row, now, width));
    header(width) + &rows.collect::<String>()
}

/// The width of the column of outcomes.
pub(super) fn outcome_width<'a>(rows: impl Iterator<Item = &'a RunSummary>) -> usize {
    let longest = rows.map(|row| outcome(row).len()).max();
    longest.unwrap_or_default().max(USUAL_OUTCOME)
}

pub(super) fn header(width: usize) -> String {
    format!(
        "{:8}  {:>4}  {:width$}  OBJECTIVE\n",
        "RUN", "AGE", "OUTCOME"
    )
}

/// The most informative word about a run.
pub(super) fn outcome(row: &RunSummary) -> &'static str {
    match row.status {
        _ if row.is_foreign() => "FOREIGN",
        RunStatus::Failure => row.code.map_or("", Code::name),
        RunStatus::Success if row.is_landed() => "LANDED",
        RunStatus::Success => "ACCEPTED",
        other => other.word(),
    }
}

/// A run in one line: its short id, its age, its outcome, and its objective.
pub(super) fn line(row: &RunSummary, now: i64, width: usize) -> String {
    let short = short_id(&row.run_id);
    let age = times::age(row.began.as_deref().unwrap_or_default(), now);
    let start = format!("{short:8}  {age:>4}  {:width$}  ", outcome(row));
    let objective = headline(&row.objective, start.chars().count());
    format!("{start}{objective}\n")
}

pub(super) fn show(which: &Which) -> Outcome {
    let place = Places::look()?;
    if let Some(run_id) = place.find_refused(&which.run)? {
        return refused::show(&place, &run_id);
    }
    if let Some(id) = place.find_case(&which.run)? {
        return case::show(&place, &id);
    }
    let run_id = place.find_run(&which.run)?;
    let state = query::state(&place, &run_id)?;
    let around = Surroundings {
        part: parts::withheld(&place, &state),
        ..Surroundings::read(&place, &state, clock::now_millis())
    };
    let mut answer = report::run(&state, &place.run(&run_id), around);
    answer.exit = Exit::Yes;
    let newer = place.refused_after(&run_id);
    if let Some(newer) = newer.filter(|_| which.run == "last") {
        answer.text += &format!(
            "note: a newer contract was refused before there was a run: provost show {newer}\n"
        );
    }
    Ok(answer)
}

pub(super) fn diff(which: &Which, reader: Reader) -> Outcome {
    let place = Places::look()?;
    let run_id = match place.find_case(&which.run)? {
        Some(id) => case::run_of(&place, &id)?,
        None => place.find_run(&which.run)?,
    };
    let state = query::state(&place, &run_id)?;
    let Some(captured) = &state.captured else {
        return Err(Failure::new(
            Code::NotFound,
            format!("{run_id} captured nothing"),
        ));
    };
    let patch = place.repo.patch(&state.opened.base_tree, &captured.tree);
    // The trees may be removed from git by now; a sealed bundle has the patch.
    let sealed = || input::read(&place.run(&run_id).join(PATCH), json::LARGEST);
    let patch =
        patch.or_else(|error| sealed().map_err(|_| Failure::of(Code::GitFailed, &error)))?;
    let patch = String::from_utf8_lossy(&patch).into_owned();
    if reader == Reader::Person {
        if patch.is_empty() {
            print_message(&format!("note: {} changed nothing", short_id(&run_id)));
        }
        let text = look::painted_patch(&neutralise(&patch), &io::stdout());
        // A closed pipe (`provost diff | head`) is not our failure.
        let _ = look::page(&text);
        return Ok(Answer::silent());
    }
    Ok(Answer::data(DiffView { run_id, patch }, ""))
}
