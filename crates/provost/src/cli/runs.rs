//! `provost runs`, `show`, `diff` and `status`: past and active runs.

use clap::Args;
use provost_change::intent::{Intent, Ownership, Viewer};
use provost_change::tools::answers::IntentPayload;
use provost_core::bundle::layout::PATCH;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_engine::query::{
    self, DiffView, RunStatus, RunSummary, Stage, StatusView, Surroundings,
};
use provost_host::{clock, process_owner};

use super::run::refused;
use super::{case, change};

use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::{headline, neutralise};
use crate::{input, parts, report, session, stores, times};

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
    let now = clock::now_millis();
    let longest = rows.iter().map(|row| outcome(row).len()).max();
    let width = longest.unwrap_or_default().max(USUAL_OUTCOME);
    let rows = rows.iter().map(|row| line(row, now, width));
    format!(
        "{:12}  {:>4}  {:width$}  OBJECTIVE\n",
        "RUN", "AGE", "OUTCOME"
    ) + &rows.collect::<String>()
}

/// The most informative word about a run.
fn outcome(row: &RunSummary) -> &'static str {
    match row.status {
        _ if row.is_foreign() => "FOREIGN",
        RunStatus::Failure => row.code.map_or("", Code::name),
        RunStatus::Success if row.is_landed() => "LANDED",
        RunStatus::Success => "ACCEPTED",
        other => other.word(),
    }
}

/// A run in one line: the end of its id, which is enough to name it, its age, its outcome, and its
/// objective.
fn line(row: &RunSummary, now: i64, width: usize) -> String {
    let run = row.run_id.as_str();
    let (_, short) = run.rsplit_once('_').unwrap_or(("", run));
    let age = times::age(row.began.as_deref().unwrap_or_default(), now);
    let start = format!("{short:12}  {age:>4}  {:width$}  ", outcome(row));
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

pub(super) fn diff(which: &Which) -> Outcome {
    let place = Places::look()?;
    let run_id = place.find_run(&which.run)?;
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
    let text = neutralise(&patch);
    Ok(Answer::data(DiffView { run_id, patch }, text))
}

/// Shows runs that have not ended.
pub(super) fn status() -> Outcome {
    let place = Places::look()?;
    let mut open = place.runs()?;
    open.retain(|run_id| {
        query::stage(&place, run_id) != Stage::Sealed && !query::never_began(&place, run_id)
    });
    open.reverse();
    let open = query::summaries(&place, &open);
    let foreign = if place.is_foreign() {
        place.runs()?.len() + place.all_refused()?.len()
    } else {
        open.iter().filter(|row| row.is_foreign()).count()
    };
    // Runs are listed even if the changes cannot be read.
    let changes = changes(&place);
    let known = changes.as_deref().unwrap_or_default();
    let mut text = match (open.as_slice(), known) {
        ([], []) if changes.is_err() || foreign > 0 => String::new(),
        ([], []) => "no active runs or changes\n".to_owned(),
        ([], _) => String::new(),
        (rows, _) => table(rows),
    };
    match &changes {
        Ok(known) if known.is_empty() => {}
        Ok(known) => {
            text += "changes of this checkout:\n";
            text += &known
                .iter()
                .map(|(it, _)| change::row(it))
                .collect::<String>();
        }
        Err(failure) => text += &format!("changes cannot be read: {}\n", failure.reason),
    }
    if foreign > 0 {
        text += &place.foreign_note(foreign);
    }
    text += &next_commands(&open);
    let view = StatusView {
        open,
        changes: changes.as_ref().ok().map(|all| {
            let all = all.iter();
            all.map(|(intent, whose)| IntentPayload::of(intent, *whose))
                .collect()
        }),
        foreign,
    };
    Ok(Answer::data(view, neutralise(&text)))
}

/// The commands that continue the open runs of this user.
fn next_commands(open: &[RunSummary]) -> String {
    let own = |status: RunStatus| {
        let rows = open.iter().filter(|row| !row.is_foreign());
        rows.filter(move |row| row.status == status)
    };
    let mut text = String::new();
    for row in own(RunStatus::Waiting) {
        text += &format!("next: {}\n", report::go_on(&row.run_id, Stage::Waiting));
    }
    for row in own(RunStatus::Approved) {
        let next = report::go_on(&row.run_id, Stage::Interrupted);
        text += &format!("next: {next}\n");
    }
    if own(RunStatus::Interrupted).next().is_some() {
        text += "next: provost resume\n";
    }
    text
}

/// The controlled changes that are active or wait, as `provost change list` shows them.
///
/// Nothing is changed: expired intents are left for the agents that work here.
fn changes(place: &Places) -> Result<Vec<(Intent, Ownership)>, Failure> {
    let path = place.registry_path();
    if place.is_foreign() || !path.exists() {
        return Ok(Vec::new());
    }
    let me = session::owner()?;
    let viewer = Viewer {
        me: &me,
        now: clock::now_millis(),
        alive: &process_owner::alive,
    };
    let known = stores::look_at_intents(&path, |intents| Ok(intents.look(None)?.intents))?;
    let reported = known.into_iter().filter_map(|intent| {
        let ownership = intent.ownership(&viewer);
        let is_active = intent.state.is_open() && ownership != Ownership::Expired;
        is_active.then_some((intent, ownership))
    });
    Ok(reported.collect())
}
