//! *Run*: the verdict first, then what it rests on.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::{first_line, neutralise, one_line};
use provost_core::tally::Tally;
use provost_engine::query::{CommandView, RunStatus, RunView, Stage, short_id};
use provost_engine::why::Row;

use super::forms::Forms;
use super::plot::waterfall;
use super::runs::{live, status};
use super::{Page, asked_commands, fact, inbox, length, pill, shown};
use crate::door::Visitor;
use crate::room::{ControlRoom, LedgerLine, RoomRow, RunPage};
use crate::server::App;

/// How many tests of a command are named.
const MOST_TESTS: usize = 100;

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

/// The pages of one run; `here` is the one that is shown.
pub(super) fn tabs(repository: &str, run: &str, here: &str) -> Markup {
    let at = format!("/r/{repository}/{run}");
    let pages = [
        ("Run", ""),
        ("Change", "/change"),
        ("Transcript", "/transcript"),
        ("Evidence", "/evidence"),
        ("Compare", "/compare"),
    ];
    html! {
        nav .tabs aria-label="Run" { @for (words, path) in pages {
            a href={ (at) (path) } aria-current=[(words == here).then_some("page")] { (words) }
        } }
    }
}

fn body(room: &dyn ControlRoom, page: &RunPage, forms: &Forms<'_>) -> Markup {
    let view = &page.view;
    html! {
        h1 { (first_line(&view.objective, 300)) }
        (tabs(forms.repository, forms.run, "Run"))
        (verdict(view))
        @if let Some(now) = &page.live { section .card aria-label="Now" { (live(now)) } }
        (actions(room, view, forms))
        (asked_commands(room, forms.repository, forms.run))
        (measured(page))
        (claim(view))
        (turned(view))
        h2 { "Gates" }
        @if view.gates.is_empty() { p .empty { "No gate has decided yet." } }
        table .gates { tbody { @for gate in &view.gates { tr {
            td { @if gate.allow { (pill("good", "PASS")) } @else { (pill("bad", "FAIL")) } }
            th scope="row" { (gate.gate.name()) }
            td { (one_line(&gate.reason)) }
        } } } }
        (refused_requests(view))
        h2 { "Steps" }
        (waterfall(&page.steps))
        (family(room, view, forms.repository))
        h2 { "Facts" }
        dl {
            (fact("Run", &view.run_id))
            (fact("Began", &view.began))
            (fact("Took", &view.took_ms.map(length).unwrap_or_default()))
            (fact("Base", &view.base.to_string()))
            (fact("Tree", &view.tree.as_ref().map(ToString::to_string).unwrap_or_default()))
            (fact("Branch", view.branch.as_deref().unwrap_or_default()))
            (fact("Attempts", &view.attempts.to_string()))
            (fact("Bundle", &view.bundle.display().to_string()))
        }
        details #events {
            summary { "Events (" (page.events.len()) ")" }
            (steps(&page.events))
        }
        details #contract {
            summary { "Contract" }
            div .scroll tabindex="0" { pre { (neutralise(&page.contract)) } }
        }
    }
}

/// The run that it retries, and the runs that retry it, as a tree.
fn family(room: &dyn ControlRoom, view: &RunView, repository: &str) -> Markup {
    let Ok(listing) = room.listing(repository) else {
        return html! {};
    };
    let of = |parent: &str| -> Vec<&RoomRow> {
        let rows = listing.rows.iter().map(AsRef::as_ref);
        rows.filter(|row| row.parent.as_deref() == Some(parent))
            .collect()
    };
    let children = of(&view.run_id);
    if children.is_empty() && view.parent.is_none() {
        return html! {};
    }
    let link = |id: &str| html! { a href={ "/r/" (repository) "/" (id) } { (short_id(id)) } };
    html! {
        h2 { "Retries" }
        ul .tree {
            @if let Some(parent) = &view.parent { li { "retries " (link(parent)) } }
            @for child in children { li {
                (status(child)) " " (link(&child.summary.run_id))
                @let below = of(&child.summary.run_id);
                @if !below.is_empty() { ul .tree { @for one in below {
                    li { (status(one)) " " (link(&one.summary.run_id)) }
                } } }
            } }
        }
    }
}

/// Tests whose outcome differs from the base, by name where the runner gives names.
fn turned(view: &RunView) -> Markup {
    let commands = view.tests.as_ref().map(|tests| tests.commands.as_slice());
    let commands = commands.unwrap_or_default();
    let names = |tally: Option<&Tally>| -> Vec<String> {
        let names = tally.and_then(|it| it.failed_names.clone());
        names.unwrap_or_default()
    };
    let red_to_green = |one: &CommandView| -> Vec<String> {
        let now = names(one.tests.as_ref());
        let mut before = names(one.tests_on_base.as_ref());
        before.retain(|name| !now.contains(name));
        before
    };
    let green_to_red = |one: &CommandView| -> Vec<String> {
        let before = names(one.tests_on_base.as_ref());
        let mut now = names(one.tests.as_ref());
        now.retain(|name| !before.contains(name));
        now
    };
    html! {
        @if commands.iter().any(|one| one.tests.is_some()) {
            h2 { "Tests" }
            @for one in commands {
                p { code { (one_line(&one.command)) } " " (counts(one)) }
                ul .plain-list {
                    @for name in red_to_green(one).iter().take(MOST_TESTS) { li {
                        (pill("bad", "RED")) " → " (pill("good", "GREEN")) " "
                        code { (one_line(name)) }
                    } }
                    @for name in green_to_red(one).iter().take(MOST_TESTS) { li {
                        (pill("bad", "RED")) " now " code { (one_line(name)) }
                    } }
                }
            }
        }
    }
}

fn counts(one: &CommandView) -> Markup {
    let words = |tally: &Tally| format!("{} passed, {} failed", tally.passed, tally.failed);
    html! {
        span .faint {
            @if let Some(base) = &one.tests_on_base { (words(base)) " on the base, " }
            @if let Some(now) = &one.tests { (words(now)) " on the change" }
        }
    }
}

fn verdict(view: &RunView) -> Markup {
    let landed = view.landed().map(|landing| &landing.target);
    html! {
        p .verdict {
            @match (view.finished(), view.stage) {
                (Some(verdict), _) if verdict.allow => {
                    (pill("good", "PASS")) " accepted"
                    @if let Some(target) = landed { ", landed on " (one_line(target)) }
                },
                (Some(verdict), _) => {
                    (pill("bad", "FAIL")) " " (verdict.code.name()) ": "
                    (one_line(&verdict.reason))
                },
                (None, Stage::Waiting) => (pill("wait", "Waits for your approval")),
                (None, Stage::Interrupted) => {
                    (pill("wait", "Has no driver")) " its process ended"
                },
                (None, _) => (pill("", "Running")),
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
            @for grant in &view.given.granted {
                p .bad { "Given by a person: " (one_line(&grant.words())) }
            }
            (forms.questions(&view.given.questions))
            @match view.status {
                RunStatus::Waiting => @if let Some(question) = &view.question {
                    (inbox::asked(question)) (forms.answers(&question.digest, question.needs, None))
                },
                RunStatus::Running => (forms.line("cancel", "Cancel", "reason", "Reason")),
                RunStatus::Interrupted | RunStatus::Approved => div .actions {
                    (forms.button("resume", "Continue"))
                    (forms.line("cancel", "Cancel", "reason", "Reason"))
                },
                RunStatus::Success if view.landed().is_none() => div .actions {
                    (forms.button("land", "Land"))
                    a .button.plain href={ "/r/" (forms.repository) "/" (forms.run) "/change" } {
                        "Read the change"
                    }
                },
                RunStatus::Failure => {
                    @let remedy = room.remedy(forms.repository, forms.run);
                    @if let Some(command) = &remedy {
                        p { "Helps: " code { (one_line(command)) } }
                    }
                    (inbox::again(forms, remedy.as_deref()))
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
