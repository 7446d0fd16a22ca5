//! *Inbox*: everything that waits for the user.

use std::collections::BTreeSet;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::{first_line, one_line};
use provost_engine::query::{QuestionView, RunStatus, short_id};

use super::forms::Forms;
use super::{Page, age, shown};
use crate::door::Visitor;
use crate::room::{ControlRoom, RepositoryRow, RoomRow};
use crate::server::App;

/// How many of the newest runs of a repository are looked at.
const NEWEST: usize = 100;

/// Why a run is in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// A person has to approve or reject it.
    Approval,
    /// Its driver died.
    Lost,
    /// It was refused, and no newer run retries it.
    Refused,
    /// It was accepted and has not landed.
    Landing,
}

impl Waits {
    fn of(row: &RoomRow, retried: &BTreeSet<String>) -> Option<Self> {
        let summary = &row.summary;
        if summary.is_foreign() {
            return None;
        }
        match summary.status {
            RunStatus::Waiting => Some(Self::Approval),
            RunStatus::Interrupted | RunStatus::Approved => Some(Self::Lost),
            RunStatus::Failure if retried.contains(&summary.run_id) => None,
            RunStatus::Failure => Some(Self::Refused),
            RunStatus::Success if !summary.is_landed() => Some(Self::Landing),
            _ => None,
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Approval => ("wait", "waits for your approval"),
            Self::Lost => ("wait", "has no driver: its process ended"),
            Self::Refused => ("bad", "was refused"),
            Self::Landing => ("good", "is accepted and has not landed"),
        }
    }
}

/// What waits in one repository.
fn waiting(room: &dyn ControlRoom, repository: &RepositoryRow) -> Vec<(Waits, RoomRow)> {
    let rows = room.rows(&repository.id, 0, NEWEST).unwrap_or_default();
    let retried: BTreeSet<String> = rows.iter().filter_map(|row| row.parent.clone()).collect();
    let rows = rows.into_iter();
    let waits = rows.filter_map(|row| Some((Waits::of(&row, &retried)?, row)));
    waits.collect()
}

pub(super) fn count(room: &dyn ControlRoom) -> usize {
    let all = room.repositories();
    all.iter().map(|it| waiting(room, it).len()).sum()
}

pub(crate) async fn show(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let page = app.ask(move |room| Ok(page(room, &visitor))).await;
    shown(page)
}

fn page(room: &dyn ControlRoom, visitor: &Visitor) -> Page {
    let repositories = room.repositories();
    let mut count = 0;
    let all: Vec<_> = repositories
        .iter()
        .map(|repository| {
            let rows = waiting(room, repository);
            count += rows.len();
            (repository, rows)
        })
        .collect();
    let body = html! {
        h1 { "Inbox" }
        @if count == 0 { p { "Nothing waits for you." } }
        @for (repository, rows) in &all {
            @if let Some(problem) = &repository.problem {
                p .bad { (one_line(&repository.name)) ": " (one_line(problem)) }
            }
            @if !rows.is_empty() {
                h2 { (one_line(&repository.name)) }
                ul .list { @for (waits, row) in rows {
                    li { (card(room, repository, *waits, row, visitor)) }
                } }
            }
        }
    };
    Page {
        title: "Inbox".to_owned(),
        waiting: count,
        body,
    }
}

fn card(
    room: &dyn ControlRoom,
    repository: &RepositoryRow,
    waits: Waits,
    row: &RoomRow,
    visitor: &Visitor,
) -> Markup {
    let run = &row.summary.run_id;
    let forms = Forms {
        repository: &repository.id,
        run,
        token: &visitor.form_token,
    };
    let (class, words) = waits.words();
    html! {
        article .card {
            h3 {
                a href={ "/r/" (repository.id) "/" (run) } { (short_id(run)) }
                " " span class=(class) { (words) }
            }
            p { (first_line(&row.summary.objective, 200)) }
            p .faint {
                (age(row.summary.began.as_deref(), room.now())) " ago"
                @if let Some(code) = row.summary.code { " · " (code.name()) }
            }
            @match waits {
                Waits::Approval => @if let Some(question) = &row.question {
                    (asked(question)) (forms.answers(&question.digest))
                },
                Waits::Lost => div .actions {
                    (forms.button("resume", "Continue"))
                    (forms.line("cancel", "Cancel", "reason", "Reason"))
                },
                Waits::Refused => {
                    @if let Some(command) = room.remedy(&repository.id, run) {
                        p { "Helps: " code { (one_line(&command)) } }
                    }
                    (again(&forms))
                },
                Waits::Landing => (forms.button("land", "Land")),
            }
        }
    }
}

/// The ways to try a run again.
pub(super) fn again(forms: &Forms<'_>) -> Markup {
    html! {
        (forms.line("retry", "Retry", "words", "What else is to be done (empty: the same again)"))
        (forms.button("keep-work", "Judge the same work under a wider contract"))
    }
}

/// Everything that the digest of a question covers.
pub(super) fn asked(question: &QuestionView) -> Markup {
    html! {
        ul { @for one in &question.widenings {
            li { code { (one_line(&one.path)) } " " (one_line(&one.problem)) }
        } }
        dl {
            dt { "Agent" } dd .mono { (one_line(&question.agent)) }
            @if let Some(reviewer) = &question.reviewer {
                dt { "Reviewer" } dd .mono { (one_line(reviewer)) }
            }
            dt { "Base" } dd .mono { (question.base_commit) }
            @if let Some(target) = &question.target {
                dt { "Target" } dd .mono { (one_line(target)) }
            }
            dt { "Digest" } dd .mono { (question.digest) }
        }
    }
}
