//! *Inbox*: everything that waits for the user.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::{first_line, one_line};
use provost_engine::query::{QuestionView, WaitReason, short_branch, short_id};

use super::forms::Forms;
use super::{NavigationEntry, Page, age, asked_command, shown, unread};
use crate::door::Visitor;
use crate::room::{ControlRoom, RepositoryRow, RoomRow};
use crate::server::App;

/// How many things of one repository are on the page; the count names all.
const ON_THE_PAGE: usize = 50;

fn words(reason: WaitReason) -> (&'static str, &'static str) {
    match reason {
        WaitReason::Question => ("wait", "asks you something"),
        WaitReason::Approval => ("wait", "waits for your approval"),
        WaitReason::LostDriver => ("wait", "has no driver: its process ended"),
        WaitReason::Budget => ("bad", "reached its budget"),
        WaitReason::Refused => ("bad", "was refused"),
        WaitReason::TargetMoved => ("wait", "is accepted, and its target has moved"),
        WaitReason::Landing => ("good", "is accepted and has not landed"),
    }
}

pub(super) fn count(room: &dyn ControlRoom) -> usize {
    let all = room.repositories();
    let listed = all.iter().filter_map(|it| room.listing(&it.id).ok());
    listed
        .map(|it| it.waiting.len() + it.waiting_cases().count())
        .sum()
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
    let all: Vec<_> = repositories
        .iter()
        .map(|repository| (repository, room.listing(&repository.id).unwrap_or_default()))
        .collect();
    let count = count(room);
    let body = html! {
        h1 { "Inbox" }
        @if count == 0 {
            p .empty { "Nothing waits for you." }
            p .faint {
                "Questions, refusals, lost runs and accepted work that has not landed appear here."
            }
        }
        @for (repository, listing) in &all {
            @let (rows, cases) = (&listing.waiting, listing.waiting_cases().count());
            @if let Some(problem) = &repository.problem {
                p .bad { (one_line(&repository.name)) ": " (one_line(problem)) }
            }
            (unread(listing.unread))
            @if rows.len() + cases > 0 {
                h2 { (one_line(&repository.name)) " " span .faint { (rows.len() + cases) } }
                ul .list {
                    @for case in listing.waiting_cases().take(ON_THE_PAGE) {
                        li { (super::case::card(room, repository, case)) }
                    }
                    @for (reason, row) in rows.iter().take(ON_THE_PAGE) {
                        li { (card(room, repository, *reason, row, visitor)) }
                    }
                }
                @if let Some(more) = rows.len().checked_sub(ON_THE_PAGE + 1) {
                    p { "and " (more + 1) " more: " a href="/runs" { "all runs" } }
                }
            }
        }
    };
    Page {
        title: "Inbox".to_owned(),
        place: NavigationEntry::Inbox,
        waiting: count,
        body,
    }
}

fn card(
    room: &dyn ControlRoom,
    repository: &RepositoryRow,
    reason: WaitReason,
    row: &RoomRow,
    visitor: &Visitor,
) -> Markup {
    let run = &row.summary.run_id;
    let forms = Forms {
        repository: &repository.id,
        run,
        token: &visitor.form_token,
    };
    let (class, words) = words(reason);
    html! {
        article class={ "card edge " (class) } {
            h3 {
                a href={ "/r/" (repository.id) "/" (run) } {
                    (first_line(&row.summary.objective, 200))
                }
            }
            p .faint {
                code { (short_id(run)) } " " span class=(class) { (words) }
                " · " (age(row.summary.began.as_deref(), room.now())) " ago"
                @if let Some(code) = row.summary.code.filter(|_| class == "bad") {
                    " · " (code.name())
                }
            }
            @if let Some(last) = room.commands(&repository.id, run).first() {
                div .faint { (asked_command(last)) }
            }
            @match reason {
                WaitReason::Question => (forms.questions(&row.questions)),
                WaitReason::Approval => @if let Some(question) = &row.question {
                    (asked(question)) (forms.answers(&question.digest, question.needs, None))
                },
                WaitReason::LostDriver => div .actions {
                    (forms.button("resume", "Continue"))
                    (forms.line("cancel", "Cancel", "reason", "Reason"))
                },
                WaitReason::Refused | WaitReason::Budget => {
                    @let remedy = room.remedy(&repository.id, run);
                    @if let Some(command) = &remedy {
                        p { "Helps: " code { (one_line(command)) } }
                    }
                    (again(&forms, remedy.as_deref()))
                },
                WaitReason::Landing | WaitReason::TargetMoved => {
                    (landing_on(row))
                    div .actions {
                        (forms.button("land", "Land"))
                        a .button.plain href={ "/r/" (repository.id) "/" (run) "/change" } {
                            "Read the change"
                        }
                    }
                },
            }
        }
    }
}

/// Where a landing goes.
fn landing_on(row: &RoomRow) -> Markup {
    html! {
        @if let Some(target) = &row.target {
            p .faint {
                "To " code { (one_line(short_branch(target))) }
                @if row.target_moved {
                    ", which has moved: the merge is judged again before it lands"
                }
            }
        }
    }
}

/// The ways to try a run again; its work is judged again only where `remedy` says that this helps.
pub(super) fn again(forms: &Forms<'_>, remedy: Option<&str>) -> Markup {
    let keeps_work = remedy.is_some_and(|command| command.contains(" --keep-work"));
    html! {
        (forms.line("retry", "Retry", "words", "What else is to be done (empty: the same again)"))
        @if keeps_work {
            (forms.button("keep-work", "Judge the same work under a wider contract"))
        }
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
