//! `provost runs`, `show`, `diff` and `status`: past and active runs.

use clap::Args;
use provost_change::intent::{Intent, Ownership, Viewer};
use provost_change::ports::IntentRegistry as _;
use provost_change::tools::answers as payload;
use provost_core::bundle::layout::PATCH;
use provost_core::code::Code;
use provost_core::json;
use provost_host::{clock, process_owner};
use provost_store::registry::Registry;
use serde_json::{Value, json};

use super::change;
use super::run::refused;

use crate::answer::{Answer, Failure, Outcome};
use crate::history::{Beside, Landed, Stage};
use crate::places::Places;
use crate::show::{headline, neutralise};
use crate::{history, input, parts, report, session, times};

// Names a run.
#[derive(Args)]
pub(super) struct Which {
    /// The run: its id, a part of it, or `last`.
    #[arg(default_value = "last")]
    pub(super) run: String,
}

pub(super) fn list() -> Outcome {
    let place = Places::look()?;
    let runs = place.runs()?;
    let mut rows = rows(&place, &runs);
    let refused = place.all_refused()?;
    rows.extend(refused.iter().map(|run_id| refused::row(&place, run_id)));
    rows.sort_by(|one, other| other["run_id"].as_str().cmp(&one["run_id"].as_str()));
    let foreign = rows.iter().filter(|row| is_foreign(row)).count();
    let text = match rows.as_slice() {
        [] => "no runs yet; `provost run --help` says how to begin one\n".to_owned(),
        rows if foreign > 0 => table(rows) + &place.foreign_note(foreign),
        rows => table(rows),
    };
    Ok(Answer::data(Value::Array(rows), text))
}

/// Whether another user began the run of this row.
fn is_foreign(row: &Value) -> bool {
    row["own"] == false
}

fn rows(place: &Places, runs: &[String]) -> Vec<Value> {
    let names: Vec<&str> = runs.iter().map(String::as_str).collect();
    let landed = history::landed(place, &names);
    let row = |run_id: &String| row(place, run_id, landed.get(run_id));
    runs.iter().map(row).collect()
}

/// The row of one run; a run that cannot be read has a row that says so.
fn row(place: &Places, run_id: &str, landed: Option<&Landed>) -> Value {
    match history::state(place, run_id) {
        Err(_) if history::never_began(place, run_id) => json!({ "run_id": run_id,
            "status": "NOT_BEGUN", "code": null, "objective": "" }),
        Err(failure) => json!({ "run_id": run_id, "status": "UNREADABLE", "code": failure.code,
            "objective": failure.reason }),
        Ok(state) => json!({
            "run_id": run_id,
            "status": report::status(&state, history::stage(place, run_id)),
            "own": history::is_own(place, run_id),
            "code": state.finished.as_ref().map(|verdict| verdict.code),
            "objective": state.opened.contract.inputs.spec,
            "began": state.began,
            "landed": landed.map(|landed| &landed.landing),
            "held": landed.and_then(|landed| landed.held),
        }),
    }
}

/// The usual width of an outcome.
const USUAL_OUTCOME: usize = 18;

/// The rows as a table with a header.
fn table(rows: &[Value]) -> String {
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
fn outcome(row: &Value) -> &str {
    match row["status"].as_str().unwrap_or_default() {
        _ if is_foreign(row) => "FOREIGN",
        "FAILURE" => row["code"].as_str().unwrap_or_default(),
        // A branch that was reset does not hold the result, and the run can land again.
        "SUCCESS" if row["landed"].is_object() && row["held"] != false => "LANDED",
        "SUCCESS" => "ACCEPTED",
        other => other,
    }
}

/// A run in one line: the end of its id, which is enough to name it, its age, its outcome, and its
/// objective.
fn line(row: &Value, now: i64, width: usize) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let run = text("run_id");
    let (_, short) = run.rsplit_once('_').unwrap_or(("", run));
    let age = times::age(text("began"), now);
    let start = format!("{short:12}  {age:>4}  {:width$}  ", outcome(row));
    let objective = headline(text("objective"), start.chars().count());
    format!("{start}{objective}\n")
}

pub(super) fn show(which: &Which) -> Outcome {
    let place = Places::look()?;
    if let Some(run_id) = place.find_refused(&which.run)? {
        return refused::show(&place, &run_id);
    }
    let run_id = place.find_run(&which.run)?;
    let state = history::state(&place, &run_id)?;
    let beside = Beside {
        part: parts::withheld(&place, &state),
        ..history::beside(&place, &state)
    };
    let mut answer = report::run(&state, &place.run(&run_id), &beside);
    answer.exit = provost_core::exit::Exit::Yes;
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
    let state = history::state(&place, &run_id)?;
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
    let text = String::from_utf8_lossy(&patch).into_owned();
    Ok(Answer::data(
        json!({ "run_id": run_id, "patch": text }),
        neutralise(&text),
    ))
}

/// Shows runs that have not ended.
pub(super) fn status() -> Outcome {
    let place = Places::look()?;
    let mut open = place.runs()?;
    open.retain(|run_id| {
        history::stage(&place, run_id) != Stage::Sealed && !history::never_began(&place, run_id)
    });
    open.reverse();
    let open = rows(&place, &open);
    let foreign = if place.is_foreign() {
        place.runs()?.len() + place.all_refused()?.len()
    } else {
        open.iter().filter(|row| is_foreign(row)).count()
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
    let own = |row: &&Value| !is_foreign(row);
    if foreign > 0 {
        text += &place.foreign_note(foreign);
    }
    for row in open
        .iter()
        .filter(own)
        .filter(|row| row["status"] == "WAITING")
    {
        let run_id = row["run_id"].as_str().unwrap_or_default();
        text += &format!("next: {}\n", history::go_on(run_id, Stage::Waiting));
    }
    for row in open
        .iter()
        .filter(own)
        .filter(|row| row["status"] == "APPROVED")
    {
        let run_id = row["run_id"].as_str().unwrap_or_default();
        text += &format!("next: {}\n", history::go_on(run_id, Stage::Interrupted));
    }
    if open
        .iter()
        .filter(own)
        .any(|row| row["status"] == "INTERRUPTED")
    {
        text += "next: provost resume\n";
    }
    let got = |(intent, whose): &(Intent, Ownership)| payload::got(intent, *whose);
    let changes = changes
        .ok()
        .map(|all| all.iter().map(got).collect::<Vec<_>>());
    let mut json = json!({ "open": open, "changes": changes });
    if foreign > 0 {
        json["foreign"] = json!(foreign);
    }
    Ok(Answer::data(json, neutralise(&text)))
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
    let known = Registry::glance(&path, |registry| {
        Ok::<_, Failure>(registry.look(None)?.intents)
    })?;
    let reported = known.into_iter().filter_map(|intent| {
        let ownership = intent.ownership(&viewer);
        let is_active = intent.state.is_open() && ownership != Ownership::Expired;
        is_active.then_some((intent, ownership))
    });
    Ok(reported.collect())
}
