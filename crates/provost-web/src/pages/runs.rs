//! *Runs*: all runs, newest first; active ones with what they do now.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::agent::dollars;
use provost_core::foreign_text::{first_line, one_line};
use provost_engine::ports::PortError;
use provost_engine::query::{LiveView, RunStatus, short_id};
use serde::Deserialize;

use super::forms::Forms;
use super::{Page, age, length, shown};
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
    fn keeps(&self, row: &RoomRow) -> bool {
        let words = self.q.trim().to_lowercase();
        let RoomRow { summary, .. } = row;
        let found = summary.objective.to_lowercase().contains(&words)
            || summary.run_id.to_lowercase().contains(&words);
        found && (self.status.is_empty() || summary.status.word() == self.status)
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
    let mut lists = Vec::new();
    let mut more = false;
    for repository in room.repositories() {
        let mut rows = match &repository.problem {
            Some(_) => Vec::new(),
            None => room.rows(&repository.id, filter.from, ON_A_PAGE)?,
        };
        more |= rows.len() == ON_A_PAGE;
        rows.retain(|row| filter.keeps(row));
        lists.push((repository, rows));
    }
    let body = html! {
        h1 { "Runs" }
        form method="get" action="/runs" role="search" {
            label { "Search" input name="q" value=(filter.q); }
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
        @for (repository, rows) in &lists {
            h2 { (one_line(&repository.name)) }
            @if let Some(problem) = &repository.problem { p .bad { (one_line(problem)) } }
            @else if rows.is_empty() { p { "No runs here." } }
            ul .list { @for row in rows { li { (card(room, repository, row, visitor)) } } }
        }
        p .faint {
            "The filter looks at the " (ON_A_PAGE) " runs of each repository on this page."
        }
        @if more {
            p { a href={ "/runs?from=" (filter.from + ON_A_PAGE) } { "Older runs" } }
        }
    };
    Ok(Page::of(room, "Runs", body))
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
        article .card {
            h3 {
                a href={ "/r/" (repository.id) "/" (summary.run_id) } {
                    (short_id(&summary.run_id))
                }
                " " (status(row))
            }
            p { (first_line(&summary.objective, 200)) }
            p .faint {
                (age(summary.began.as_deref(), room.now())) " ago"
                @if let Some(agent) = &row.agent { " · " (first_line(agent, 80)) }
            }
            @if let Some(now) = &row.live { (live(now)) }
            @if summary.status == RunStatus::Running && !summary.is_foreign() {
                (forms.line("cancel", "Cancel", "reason", "Reason"))
            }
        }
    }
}

/// The outcome of a run in a word.
fn status(row: &RoomRow) -> Markup {
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
    html! { span class=(class) { (word) } }
}

/// What an active run does now.
pub(super) fn live(now: &LiveView) -> Markup {
    let step = now
        .step
        .map(|step| serde_json::to_value(step).unwrap_or_default());
    let step = step.as_ref().and_then(|it| it.as_str()).unwrap_or("-");
    let limit = now.limit;
    html! {
        dl {
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
                }
            }
        }
    }
}
