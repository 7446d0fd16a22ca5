//! *Runs*: all runs, newest first; active ones with what they do now.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::agent::dollars;
use provost_core::foreign_text::{first_line, one_line};
use provost_engine::ports::PortError;
use provost_engine::query::{LiveView, RunStatus, short_id};
use serde::Deserialize;

use super::evidence::encoded;
use super::forms::Forms;
use super::plot::meter;
use super::{Page, age, length, pill, shown, unread};
use crate::door::Visitor;
use crate::room::{ControlRoom, RepositoryRow, RoomRow};
use crate::server::App;

/// How many runs of each repository are on one page.
const ON_A_PAGE: usize = 50;

/// Which runs are shown.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Filter {
    /// A part of the objective or the id.
    #[serde(default)]
    q: String,
    /// A word of a status; empty for all.
    #[serde(default)]
    status: String,
    #[serde(default)]
    from: usize,
}

/// How many cases are listed above the runs.
const MOST_CASES: usize = 10;

const STATUSES: [&str; 7] = [
    "RUNNING",
    "WAITING",
    "APPROVED",
    "INTERRUPTED",
    "SUCCESS",
    "FAILURE",
    "UNREADABLE",
];

impl Filter {
    /// The same filter, from another place on.
    fn at(&self, from: usize) -> String {
        format!(
            "/runs?q={}&status={}&from={from}",
            encoded(&self.q),
            encoded(&self.status)
        )
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Query(filter): Query<Filter>,
) -> Response {
    shown(app.ask(move |room| page(room, &visitor, &filter)).await)
}

fn page(room: &dyn ControlRoom, visitor: &Visitor, filter: &Filter) -> Result<Page, PortError> {
    let words = filter.q.trim().to_lowercase();
    let mut lists = Vec::new();
    let mut more = false;
    for repository in room.repositories() {
        let listing = match &repository.problem {
            Some(_) => Arc::default(),
            None => room.listing(&repository.id)?,
        };
        let kept = listing.rows.iter();
        let kept = kept.filter(|row| row.matches(&words, &filter.status));
        let mut count = 0;
        let mut rows = Vec::new();
        for row in kept {
            if (filter.from..filter.from.saturating_add(ON_A_PAGE)).contains(&count) {
                rows.push(Arc::clone(row));
            }
            count += 1;
        }
        more |= count > filter.from.saturating_add(ON_A_PAGE);
        lists.push((repository, listing, rows, count));
    }
    let body = html! {
        h1 { "Runs and cases" }
        (search(filter))
        @for (repository, listing, rows, count) in &lists {
            h2 { (one_line(&repository.name)) " " span .faint { (count) } }
            (unread(listing.unread))
            @if let Some(problem) = &repository.problem { p .bad { (one_line(problem)) } }
            @if filter.from == 0 && words.is_empty() && filter.status.is_empty() {
                ul .list { @for case in listing.cases.iter().take(MOST_CASES) {
                    li { (super::case::card(room, repository, case)) }
                } }
            }
            @if *count == 0 { p .empty { "No runs here." } }
            ul .list { @for row in rows {
                li { (card(room, repository, row, visitor)) }
            } }
        }
        @if filter.from > 0 || more {
            nav .pages aria-label="Pages" {
                @if filter.from > 0 {
                    a href=(filter.at(filter.from.saturating_sub(ON_A_PAGE))) { "Newer runs" }
                }
                @if more { a href=(filter.at(filter.from + ON_A_PAGE)) { "Older runs" } }
            }
        }
    };
    Ok(Page::of(room, "Runs", body))
}

fn search(filter: &Filter) -> Markup {
    html! {
        form .search method="get" action="/runs" role="search" {
            label { "Search all runs" input name="q" value=(filter.q) type="search"; }
            label { "Status"
                select name="status" {
                    option value="" { "all" }
                    @for word in STATUSES {
                        option value=(word) selected[filter.status == word] { (word) }
                    }
                }
            }
            button type="submit" { "Filter" }
        }
    }
}

fn card(
    room: &dyn ControlRoom,
    repository: &RepositoryRow,
    row: &RoomRow,
    visitor: &Visitor,
) -> Markup {
    let RoomRow { summary, .. } = row;
    let forms = Forms {
        repository: &repository.id,
        run: &summary.run_id,
        token: &visitor.form_token,
    };
    html! {
        @let now = (summary.status == RunStatus::Running)
            .then(|| room.live(&repository.id, &summary.run_id))
            .flatten();
        article .row {
            (status(row))
            h3 {
                a href={ "/r/" (repository.id) "/" (summary.run_id) } {
                    (first_line(&summary.objective, 160))
                }
            }
            p .faint {
                code { (short_id(&summary.run_id)) }
                " · " (age(summary.began.as_deref(), room.now())) " ago"
                @if let Some(agent) = &row.agent { " · " (first_line(agent, 60)) }
                @if row.parent.is_some() { " · a retry" }
                @if row.lost > 0 { " · " (row.lost) " lost attempts" }
                @if let Some(whole) = &row.part_of { " · part of " (short_id(whole)) }
            }
            @if let Some(now) = &now { (live(now)) }
            @if summary.status == RunStatus::Running && !summary.is_foreign() {
                (forms.line("cancel", "Cancel", "reason", "Reason"))
            }
        }
    }
}

/// The outcome of a run in a word.
pub(super) fn status(row: &RoomRow) -> Markup {
    let summary = &row.summary;
    let (class, word) = match summary.status {
        _ if summary.is_foreign() => ("faint", "FOREIGN"),
        RunStatus::Success if summary.is_landed() => ("good", "LANDED"),
        RunStatus::Success => ("good", "ACCEPTED"),
        RunStatus::Failure => ("bad", summary.code.map_or("FAILURE", |code| code.name())),
        RunStatus::Waiting | RunStatus::Interrupted | RunStatus::Approved => {
            ("wait", summary.status.word())
        }
        other => ("", other.word()),
    };
    pill(class, word)
}

/// What an active run does now.
pub(super) fn live(now: &LiveView) -> Markup {
    let step = now
        .step
        .map(|step| serde_json::to_value(step).unwrap_or_default());
    let step = step.as_ref().and_then(|it| it.as_str()).unwrap_or("-");
    let limit = now.limit;
    html! {
        dl .live {
            dt { "Step" } dd {
                (step) " · " (now.step_ms.map(length).unwrap_or_default())
                " · attempt " (now.attempt)
            }
            @if let Some(tool) = &now.last_tool { dt { "Tool" } dd { (first_line(tool, 200)) } }
            @if let Some(says) = &now.says { dt { "Says" } dd { (first_line(says, 200)) } }
            @if let Some(spent) = &now.usage {
                dt { "Spent" } dd {
                    (spent.usage.tokens())
                    @if let Some(most) = limit.tokens { " of " (most) }
                    " tokens, " (dollars(spent.usage.micro_usd))
                    @if let Some(most) = limit.micro_usd { " of " (dollars(most)) }
                    @if let Some(most) = limit.tokens { " " (meter(spent.usage.tokens(), most)) }
                }
            }
        }
    }
}
