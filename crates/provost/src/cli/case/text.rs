//! Cases as text for a person.

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_engine::case::{CasePart, CaseQuestion, CaseReport, CaseRun, State};
use provost_engine::chain::is_final;
use provost_engine::chain::report::word;
use serde::Serialize;

use crate::answer::{Answer, Failure};
use crate::approval_text::objective_lines;
use crate::show::{headline, neutralise, one_line};

/// The case: its verdict first, then each part, the whole, and the next command.
pub(super) fn case(report: &CaseReport<'_>) -> String {
    let id = report.case_id;
    let mut text = match report.verdict {
        Some(verdict) => format!("{}: {id}, {}\n", word(verdict), verdict.reason),
        None if report.open_question().is_some() => format!("waiting for approval: {id}\n"),
        None => format!("active: {id}\n"),
    };
    text += &format!("  asks     {}\n", headline(report.request, 11));
    text += &format!("  agent    {}\n", one_line(report.agent));
    if let Some(reviewer) = report.reviewer {
        text += &format!("  reviewer {}\n", one_line(reviewer));
    }
    if let Some(question) = report.open_question() {
        text += &asked(question);
    }
    let width = report.parts.iter().map(|part| part.id.len()).max();
    let width = width.unwrap_or_default().max("the whole".len());
    for part in &report.parts {
        text += &rows(part, report, width);
    }
    if let Some(whole) = &report.whole {
        text += &format!("  {:width$}  {}\n", "the whole", run(whole));
    }
    if let Some(conflict) = report.integration.and_then(|it| it.conflict.as_ref()) {
        let others = conflict.with.join(", ");
        text += &format!(
            "  conflict {} with {others}: {}\n",
            conflict.part,
            conflict.paths.join(", ")
        );
    }
    if let Some(landed) = report.landed {
        text += &format!("  landed   {}\n", landed.short());
    }
    text += &format!("next: {}\n", next(report));
    neutralise(&text)
}

/// Everything that the question covers, by part.
pub(super) fn asked(question: &CaseQuestion) -> String {
    let mut text = String::new();
    for row in &question.parts {
        let name = row.part.as_deref().unwrap_or("the whole");
        text += &format!("  {name}\n");
        for line in objective_lines(&row.objective) {
            text += &format!("    | {line}\n");
        }
        let mut lines = vec![
            ("writes", row.allow.join(", ")),
            ("accept", row.accept.join("; ")),
        ];
        for widening in &row.widenings {
            let words = format!("{}: {}", widening.path, widening.problem);
            lines.push(("widens", words.trim_start_matches(": ").to_owned()));
        }
        for (name, value) in lines {
            text += &format!("    {name:7} {}\n", one_line(&value));
        }
    }
    text + &format!("  digest   {}\n", question.digest)
}

/// A part with its runs, and the paths that it brought.
fn rows(part: &CasePart<'_>, report: &CaseReport<'_>, width: usize) -> String {
    let mut text = String::new();
    let mut name = part.id;
    for one in &part.runs {
        text += &format!("  {name:width$}  {}\n", run(one));
        name = "";
    }
    if let Some(verdict) = part.not_run {
        let Verdict { code, reason, .. } = verdict;
        text += &format!("  {name:width$}  not run   {code}: {reason}\n");
    }
    let merged = report.integration.into_iter().flat_map(|it| &it.merged);
    for merged in merged.filter(|it| it.part == part.id && !it.paths.is_empty()) {
        let (first, more) = (&merged.paths[0], merged.paths.len() - 1);
        let more = match more {
            0 => String::new(),
            more => format!(" and {}", counted(more, "more path")),
        };
        text += &format!("  {:width$}  brought   {first}{more}\n", "");
    }
    text
}

fn run(run: &CaseRun<'_>) -> String {
    let fix = if run.fix { ", a fix" } else { "" };
    match run.verdict {
        None => format!("active    {}{fix}", run.run_id),
        Some(verdict) if verdict.allow => format!("accepted  {}{fix}", run.run_id),
        Some(verdict) if verdict.exit() == Exit::NotNow => {
            format!("waiting   {}{fix}  {}", run.run_id, verdict.reason)
        }
        Some(Verdict { code, reason, .. }) => {
            format!("refused   {}{fix}  {code}: {reason}", run.run_id)
        }
    }
}

/// The one command that helps now.
fn next(report: &CaseReport<'_>) -> String {
    let id = report.case_id;
    if let Some(question) = report.open_question() {
        return format!("provost approve {id} --digest {} --go", question.digest);
    }
    match report.verdict {
        None => format!("provost resume {id}"),
        Some(_) if report.landed.is_some() => format!("provost verify {id}"),
        Some(verdict) if verdict.allow => format!("provost land {id}"),
        Some(verdict) if !is_final(verdict) => {
            consent(report).map_or_else(|| format!("provost resume {id}"), str::to_owned)
        }
        Some(_) => {
            let refused = |run: &&CaseRun<'_>| run.verdict.is_some_and(|it| !it.allow);
            let runs = report.parts.iter().flat_map(|part| &part.runs);
            let mut runs = report.whole.iter().chain(runs).filter(refused);
            match runs.next() {
                Some(run) => format!(
                    "provost why {}; provost retry {id} tries again what was refused",
                    run.run_id
                ),
                None => format!("provost log {id}; provost retry {id} tries again"),
            }
        }
    }
}

/// The command that names what an interrupted part sends.
fn consent<'a>(report: &CaseReport<'a>) -> Option<&'a str> {
    let runs = report.parts.iter().flat_map(|part| &part.runs);
    let mut verdicts = runs.filter_map(|run| run.verdict);
    let open = verdicts.find(|verdict| verdict.code == Code::ConsentNeeded)?;
    open.hint()
}

/// A case in a list.
#[derive(Serialize)]
struct Row<'a> {
    case_id: &'a str,
    request: &'a str,
    status: String,
}

pub(super) fn list(cases: &[(String, Result<State, Failure>)]) -> Answer {
    let rows: Vec<Row<'_>> = cases.iter().map(|(id, state)| row(id, state)).collect();
    if rows.is_empty() {
        return Answer::data(
            &rows,
            "no cases yet; `provost case --help` says how to begin one\n",
        );
    }
    let width = rows
        .iter()
        .map(|row| row.status.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for row in &rows {
        let start = format!("{}  {:width$}  ", row.case_id, row.status);
        let request = headline(row.request, start.chars().count());
        text += &format!("{start}{request}\n");
    }
    Answer::data(&rows, neutralise(&text))
}

fn row<'a>(id: &'a str, state: &'a Result<State, Failure>) -> Row<'a> {
    let (request, status) = match state {
        Err(failure) => ("", failure.code.name().to_owned()),
        Ok(state) => {
            let asks = state.asked.as_ref().is_some_and(|it| !it.is_empty());
            let status = match &state.finished {
                Some(_) if state.landed.is_some() => "LANDED",
                Some(verdict) if verdict.allow => "ACCEPTED",
                Some(verdict) => verdict.code.name(),
                None if asks && state.answered.is_none() => "WAITING",
                None => "ACTIVE",
            };
            (state.opened.request.as_str(), status.to_owned())
        }
    };
    Row {
        case_id: id,
        request,
        status,
    }
}
