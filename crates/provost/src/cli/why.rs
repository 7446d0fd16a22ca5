//! `provost why RUN`: shows what was refused, by which line of the contract, and what would permit
//! it.

use clap::Args;
use provost_core::code::Code;
use provost_core::document::Format;
use provost_core::document::lines::Lines;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::run::State;
use provost_core::run::fact::{ContractSource, Ending};
use provost_core::wording::counted;
use provost_engine::query::{self, ContractLines, RunArchive as _, Stage, WhyView};
use provost_engine::why::{Clause, Edit, Row, Why, Widening};
use serde_json::Value;

use super::case;
use super::run::refused;
use super::runs::Which;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::report::RunDirectory;
use crate::show::one_line;
use crate::{input, missing_text, parts, permit, report};

/// How many rows of one refusal the text output lists.
const MOST_SHOWN: usize = 40;

/// Show what was refused, by which line of the contract, and what would permit it.
#[derive(Args)]
#[command(after_help = "\
Everything is read from the ledger of the run. The change that would permit a refused action is the
smallest one: exact paths, one permission, one place of the network. This command widens nothing.

Example:
  provost why last")]
pub(super) struct Asked {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(asked: &Asked) -> Outcome {
    let place = Places::look()?;
    if let Some(run_id) = place.find_refused(&asked.which.run)? {
        return refused::show(&place, &run_id);
    }
    let run_id = match place.find_case(&asked.which.run)? {
        Some(id) => case::run_of(&place, &id)?,
        None => place.find_run(&asked.which.run)?,
    };
    let view = view(&place, &run_id)?;
    let own = view.own;
    let mut answer = Answer::data(&view, text(&view));
    if !own {
        answer.text +=
            "note: you did not begin this run on this machine; provost explain RUN_FOREIGN\n";
    }
    if view.why.verdict.is_none() && own {
        let reached = query::stage(&place, &run_id);
        answer.text += &format!("next: {}\n", report::go_on(&run_id, reached));
        if reached == Stage::Waiting {
            answer.exit = Exit::NotNow;
        }
    }
    Ok(answer)
}

/// Why the run `run_id` was refused, with the command that permits the same work if there is one.
pub(super) fn view(place: &Places, run_id: &str) -> Result<WhyView, Failure> {
    let records = place.records(run_id)?;
    let why = Why::of(&records).map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
    let folded = query::state(place, run_id)?;
    let opened = &folded.opened;
    let source = contract_lines(place, run_id, opened.contract_source.as_ref());
    let own = query::is_own(place, run_id);
    let bundle = place.run(run_id);
    let project = query::project(place, &folded);
    let view = WhyView::of(why, &source, opened.typed, own);
    let mut view = view.with_missing(&folded, &RunDirectory(&bundle), &project);
    if own && query::stage(place, run_id) == Stage::Sealed && folded.kept_work().is_ok() {
        let widening = view.widening.as_deref().filter(|it| !it.is_empty());
        view.permit_with = widening.and_then(|it| permit::words(run_id, it));
    }
    if own && view.permit_with.is_none() && view.missing.is_empty() {
        view.continue_with = continue_with(place, &folded);
    }
    Ok(view)
}

/// The lines of the contract file in the bundle of `run_id`; a missing one has none.
fn contract_lines(place: &Places, run_id: &str, kept: Option<&ContractSource>) -> ContractLines {
    let Some(ContractSource { path, .. }) = kept else {
        return ContractLines::default();
    };
    let bytes = input::read(&place.run(run_id).join(path), json::LARGEST);
    let format = Format::of_name(path).unwrap_or(Format::Json);
    ContractLines {
        file: path.clone(),
        lines: Lines::of(format, &bytes.unwrap_or_default()),
    }
}

fn text(view: &WhyView) -> String {
    let why = &view.why;
    let mut text = match &why.verdict {
        None => format!("run {} has not ended\n", why.run_id),
        Some(verdict) if verdict.allow => {
            format!("accepted: {}\nnothing was refused\n", why.run_id)
        }
        Some(verdict) => format!("refused[{}]: {}\n", verdict.code, one_line(&verdict.reason)),
    };
    for refusal in &why.refusals {
        text += &format!("{}: {}\n", refusal.by, refusal.code);
        for row in refusal.rows.iter().take(MOST_SHOWN) {
            text += &shown(view, row);
        }
        let more = refusal.rows.len().saturating_sub(MOST_SHOWN);
        if more > 0 {
            text += &format!("  and {more} more; --json lists all\n");
        }
    }
    if !why.model_requests.is_empty() {
        text += "model: asked for and not granted\n";
    }
    for row in why.model_requests.iter().take(MOST_SHOWN) {
        text += &shown(view, row);
    }
    text += &missing_text::missing(&view.missing);
    let (background, asked): (Vec<&Row>, Vec<&Row>) =
        why.network.iter().partition(|row| row.is_background());
    if !asked.is_empty() {
        text += "network: asked for and not granted\n";
    }
    for row in asked.iter().take(MOST_SHOWN) {
        text += &shown(view, row);
    }
    if !background.is_empty() {
        let names: Vec<&str> = background
            .iter()
            .take(MOST_SHOWN)
            .filter_map(|row| row.about.as_deref())
            .collect();
        text += "network: asked for by the program itself, for updates or telemetry; not granted\n";
        text += &format!("  {}\n", one_line(&names.join(", ")));
    }
    text + &together(view) + &next(view)
}

/// The command after a refusal that a wider contract would not have changed.
fn continue_with(place: &Places, state: &State) -> Option<String> {
    let run = &state.names.run_id;
    state.finished.as_ref().filter(|end| !end.allow)?;
    let sealed = query::stage(place, run) == Stage::Sealed;
    if !sealed || parts::refuse_retry(place, state).is_err() {
        return None;
    }
    let agent = state.agent.as_ref();
    if agent.is_some_and(|agent| agent.ending == Ending::NotStarted) {
        return Some(format!("provost log --agent {run}"));
    }
    let continues = !state.opened.agent.is_empty() && state.kept_work().is_ok();
    let words = if continues {
        " 'what is still to be done'"
    } else {
        ""
    };
    Some(format!("provost retry {run}{words}"))
}

/// The line with that command.
fn next(view: &WhyView) -> String {
    let command = view.continue_with.as_ref();
    command.map_or_else(String::new, |it| format!("next: {it}\n"))
}

fn shown(view: &WhyView, row: &Row) -> String {
    let about = row.about.as_deref().unwrap_or_default();
    let mut text = match about {
        "" => format!("  {}\n", one_line(&row.problem)),
        about => format!("  {}: {}\n", one_line(about), one_line(&row.problem)),
    };
    if let Some(clause) = &row.contract {
        text += &format!("    contract  {}\n", said(clause));
    }
    for one in permits(view, row) {
        text += &format!("    permit with: {}\n", one_line(&one));
    }
    if let Some(note) = &row.note {
        text += &format!("    note      {}\n", one_line(note));
    }
    text
}

/// The value of a clause, and where it is written.
fn said(clause: &Clause) -> String {
    let value = match &clause.value {
        Value::Null => "says nothing".to_owned(),
        value => format!("is {}", short(&value.to_string())),
    };
    let line = match (&clause.file, clause.line) {
        (Some(file), Some(line)) => format!(" ({file} line {line})"),
        _ => String::new(),
    };
    format!("`{}` {}{line}", clause.pointer, one_line(&value))
}

/// The most characters of a value that the text output shows.
const LONGEST: usize = 200;

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST).collect();
    format!("{kept}…")
}

/// What permits a row: the command that judges the same work again, the flag of a new run, or the
/// change of the contract.
fn permits(view: &WhyView, row: &Row) -> Vec<String> {
    let again = view.permit_with.as_ref();
    let again = again.and_then(|_| permit::retry(&view.why.run_id, &row.widening));
    if let Some(command) = again {
        return vec![command];
    }
    let each = row.widening.iter();
    each.map(|one| change(one, view.typed)).collect()
}

fn change(widening: &Widening, typed: bool) -> String {
    let Widening { pointer, edit } = widening;
    let flag = permit::flag(widening).filter(|_| typed);
    let flag = flag.map(|flag| format!(" ({flag})"));
    let flag = flag.unwrap_or_default();
    match edit {
        Edit::Add(entry) => format!("`{entry}` in `{pointer}`{flag}"),
        Edit::Remove(entry) => format!("`{pointer}` without `{entry}`{flag}"),
        Edit::Set(value) => format!("`{pointer}` of {value}{flag}"),
    }
}

/// All widenings in one line, for the next run.
fn together(view: &WhyView) -> String {
    if view.why.refusals.is_empty() {
        return String::new();
    }
    let Some(all) = &view.widening else {
        return "more than a wider contract is needed\n".to_owned();
    };
    let flags: Vec<String> = all.iter().filter_map(permit::flag).collect();
    let count = counted(all.len(), "change");
    let mut text = format!("{count} of the contract would have permitted it\n");
    if let Some(words) = &view.permit_with {
        return text + &format!("permit with: {}\n", permit::pasted(words));
    }
    if flags.len() < all.len() && all.iter().any(permit::is_unseen) {
        return text + "  a name holds characters that cannot be seen, so no command is offered\n";
    }
    if view.typed && flags.len() == all.len() {
        text += &format!(
            "  the same `provost run` with: {}\n",
            one_line(&flags.join(" "))
        );
    }
    text
}
