//! *Run*: the verdict first, then what it rests on.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::{neutralise, one_line};
use provost_engine::query::{RunStatus, RunView, Stage, short_id};
use provost_engine::why::Row;

use super::forms::Forms;
use super::{Page, fact, inbox, length, shown};
use crate::door::Visitor;
use crate::room::{ControlRoom, LedgerLine, RunPage};
use crate::server::App;

pub(crate) async fn show(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let page = app
        .ask(move |room| {
            let found = room.run(&repository, &run)?;
            let forms = Forms {
                repository: &repository,
                run: &run,
                token: &visitor.form_token,
            };
            let body = body(room, &found, &forms);
            Ok(Page::of(room, format!("Run {}", short_id(&run)), body))
        })
        .await;
    shown(page)
}

/// The pages of one run.
pub(super) fn tabs(repository: &str, run: &str) -> Markup {
    let at = format!("/r/{repository}/{run}");
    html! {
        nav .tabs aria-label="Run" {
            a href=(at) { "Run" }
            a href={ (at) "/change" } { "Change" }
            a href={ (at) "/transcript" } { "Transcript" }
            a href={ (at) "/evidence" } { "Evidence" }
        }
    }
}

fn body(room: &dyn ControlRoom, page: &RunPage, forms: &Forms<'_>) -> Markup {
    let view = &page.view;
    html! {
        h1 { "Run " (short_id(&view.run_id)) }
        (tabs(forms.repository, forms.run))
        (verdict(view))
        p { (one_line(&view.objective)) }
        (actions(room, view, forms))
        (measured(page))
        (claim(view))
        h2 { "Gates" }
        @if view.gates.is_empty() { p { "No gate has decided yet." } }
        ul .list { @for gate in &view.gates {
            li .card {
                @if gate.allow { span .good { "PASS" } } @else { span .bad { "FAIL" } }
                " " strong { (gate.gate.name()) } " " (one_line(&gate.reason))
            }
        } }
        (refused_requests(view))
        h2 { "Facts" }
        dl {
            (fact("Run", &view.run_id))
            (fact("Began", &view.began))
            (fact("Took", &view.took_ms.map(length).unwrap_or_default()))
            (fact("Base", &view.base.to_string()))
            (fact("Tree", &view.tree.as_ref().map(ToString::to_string).unwrap_or_default()))
            (fact("Branch", view.branch.as_deref().unwrap_or_default()))
            (fact("Retries", view.parent.as_deref().unwrap_or_default()))
            (fact("Attempts", &view.attempts.to_string()))
            (fact("Bundle", &view.bundle.display().to_string()))
        }
        h2 { "Steps" }
        (steps(&page.events))
        details #contract {
            summary { "Contract" }
            div .scroll tabindex="0" { pre { (neutralise(&page.contract)) } }
        }
    }
}

fn verdict(view: &RunView) -> Markup {
    let landed = view.landed().map(|landing| &landing.target);
    html! {
        p .verdict {
            @match (view.finished(), view.stage) {
                (Some(verdict), _) if verdict.allow => {
                    span .good { "PASS" } " accepted"
                    @if let Some(target) = landed { ", landed on " (one_line(target)) }
                },
                (Some(verdict), _) => {
                    span .bad { "FAIL" } " " (verdict.code.name()) ": " (one_line(&verdict.reason))
                },
                (None, Stage::Waiting) => span .wait { "Waits for your approval" },
                (None, Stage::Interrupted) => span .wait { "Has no driver: its process ended" },
                (None, _) => { span .wait { "Running" } },
            }
        }
        @if !view.own {
            p .wait { "You did not begin this run on this machine: it is shown, never continued." }
        }
    }
}

fn actions(room: &dyn ControlRoom, view: &RunView, forms: &Forms<'_>) -> Markup {
    if !view.own {
        return html! {};
    }
    html! {
        section .card aria-label="Actions" {
            @match view.status {
                RunStatus::Waiting => @if let Some(question) = &view.question {
                    (inbox::asked(question)) (forms.answers(&question.digest))
                },
                RunStatus::Running => (forms.line("cancel", "Cancel", "reason", "Reason")),
                RunStatus::Interrupted | RunStatus::Approved => div .actions {
                    (forms.button("resume", "Continue"))
                    (forms.line("cancel", "Cancel", "reason", "Reason"))
                },
                RunStatus::Success if view.landed().is_none() => (forms.button("land", "Land")),
                RunStatus::Failure => {
                    @if let Some(command) = room.remedy(forms.repository, forms.run) {
                        p { "Helps: " code { (one_line(&command)) } }
                    }
                    (inbox::again(forms))
                },
                _ => p { "Nothing is left to decide." },
            }
        }
    }
}

/// What was refused, each line of the contract beside what was measured.
fn measured(page: &RunPage) -> Markup {
    let Some(why) = page.why.as_ref().filter(|it| !it.why.refusals.is_empty()) else {
        return html! {};
    };
    html! {
        h2 { "Refused" }
        @for refusal in &why.why.refusals {
            h3 { (one_line(&refusal.by)) " " span .bad { (refusal.code.name()) } }
            @for row in &refusal.rows { (beside(row)) }
        }
    }
}

fn beside(row: &Row) -> Markup {
    html! {
        div .beside {
            div .card {
                div .faint { "Contract" }
                @match &row.contract {
                    Some(clause) => {
                        code { (one_line(&clause.pointer)) } " "
                        span .mono { (one_line(&clause.value.to_string())) }
                        @if let (Some(file), Some(line)) = (&clause.file, clause.line) {
                            " (" (one_line(file)) " line " (line) ")"
                        }
                    },
                    None => "No line of the contract permits it.",
                }
            }
            div .card {
                div .faint { "Measured" }
                @if let Some(about) = &row.about { code { (one_line(about)) } " " }
                (one_line(&row.problem))
                @if let Some(note) = &row.note { p .faint { (one_line(note)) } }
            }
        }
    }
}

/// The agent's claim beside the fact.
fn claim(view: &RunView) -> Markup {
    let tests = view.tests.as_ref();
    html! {
        h2 { "Claim and fact" }
        div .beside {
            div .card {
                div .faint { "The agent said" }
                @match &view.agent_said {
                    Some(said) => pre { (neutralise(said)) },
                    None => p { "Nothing." },
                }
            }
            div .card {
                div .faint { "Measured" }
                p { (view.changed_files.len()) " changed files" }
                @match tests {
                    Some(tests) => {
                        p { (one_line(&tests.headline)) }
                        ul { @for one in &tests.commands {
                            li { code { (one_line(&one.command)) } " · " (length(one.wall_ms)) }
                        } }
                    },
                    None => p { "No acceptance command has run." },
                }
            }
        }
        @for tail in &view.output {
            p .faint { (one_line(&tail.log.display().to_string())) }
            div .scroll tabindex="0" { pre { @for line in &tail.last_lines { (line) "\n" } } }
        }
    }
}

/// What the sandbox refused.
fn refused_requests(view: &RunView) -> Markup {
    let refused: Vec<_> = view.network.iter().filter(|row| !row.allow).collect();
    html! {
        @if !refused.is_empty() {
            h2 { "Refused by the sandbox" }
            ul .list { @for row in refused {
                li .card {
                    span .bad { (row.code.name()) } " " (one_line(&row.method)) " "
                    code { (one_line(&row.target)) } " · " (row.count) " times"
                }
            } }
        }
    }
}

/// The events of the ledger, one line each.
pub(super) fn steps(events: &[LedgerLine]) -> Markup {
    html! {
        div .scroll tabindex="0" {
            pre { @for event in events {
                (event.seq) "  " (one_line(&event.ts)) "  " (one_line(&event.event_type)) "  "
                (one_line(&event.about)) "\n"
            } }
        }
    }
}
