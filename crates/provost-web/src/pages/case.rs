//! *Case*: one request, its plan, its parts and their fixes, the merged whole and its landing.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::{first_line, neutralise, one_line};
use provost_core::verdict::Verdict;
use provost_engine::case::{CasePart, CaseQuestion, CaseReport, CaseRun, Drafted};
use provost_engine::query::{CaseStatus, CaseSummary, short_id};

use super::forms::Forms;
use super::run::steps;
use super::{Page, age, asked_commands, fact, pill, shown};
use crate::door::Visitor;
use crate::room::{CasePage, ControlRoom, RepositoryRow};
use crate::server::App;

pub(crate) async fn show(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((repository, case)): Path<(String, String)>,
) -> Response {
    let page = app
        .ask(move |room| {
            let found = room.case(&repository, &case)?;
            let forms = Forms {
                repository: &repository,
                run: &case,
                token: &visitor.form_token,
            };
            let body = body(room, &found, &forms);
            Ok(Page::of(room, format!("Case {}", short_id(&case)), body))
        })
        .await;
    shown(page)
}

/// A case in a list.
pub(super) fn card(
    room: &dyn ControlRoom,
    repository: &RepositoryRow,
    case: &CaseSummary,
) -> Markup {
    html! {
        article class={ "row edge " (class(case.status)) } {
            (status(case.status))
            h3 {
                a href={ "/c/" (repository.id) "/" (case.case_id) } {
                    "Case: " (first_line(&case.request, 160))
                }
            }
            p .faint {
                code { (short_id(&case.case_id)) }
                " · " (age(case.began.as_deref(), room.now())) " ago"
                @if case.parts > 0 {
                    " · " (case.accepted) " of " (case.parts) " parts accepted"
                }
                @if case.fixes > 0 { " · " (case.fixes) " fixes" }
            }
        }
    }
}

fn class(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Success | CaseStatus::Landed => "good",
        CaseStatus::Failure | CaseStatus::Unreadable => "bad",
        CaseStatus::Waiting | CaseStatus::Interrupted => "wait",
        CaseStatus::Running => "",
    }
}

fn status(status: CaseStatus) -> Markup {
    let word = match status {
        CaseStatus::Success => "ACCEPTED",
        other => other.word(),
    };
    pill(class(status), word)
}

fn body(room: &dyn ControlRoom, page: &CasePage, forms: &Forms<'_>) -> Markup {
    let report = CaseReport::of(&page.case_id, &page.state);
    html! {
        h1 { (first_line(report.request, 300)) }
        p .verdict {
            (status(page.status)) " "
            @if let Some(verdict) = report.verdict.filter(|it| !it.allow) {
                (verdict.code.name()) ": " (one_line(&verdict.reason))
            }
        }
        (actions(page, &report, forms))
        (asked_commands(room, forms.repository, forms.run))
        h2 { "Plan" }
        ol .list {
            (planned("Contract of the whole", page.state.planned.as_ref()))
            (planned("Division into parts", page.state.split.as_ref()))
        }
        h2 { "Parts" }
        @if report.parts.is_empty() { p .empty { "No part has begun." } }
        ul .list { @for part in &report.parts { li { (part_card(page, part, forms)) } } }
        (integration(&report))
        (whole(&report, forms))
        h2 { "Facts" }
        dl {
            (fact("Case", &page.case_id))
            (fact("Began", report.began))
            (fact("Base", &report.base_commit.to_string()))
            (fact("Agent", report.agent))
            (fact("Reviewer", report.reviewer.unwrap_or_default()))
            (fact("Latest run", page.model.source_run_id.as_deref().unwrap_or_default()))
        }
        @if !page.contract.is_empty() {
            details #contract {
                summary { "Contract of the whole" }
                div .scroll tabindex="0" { pre { (neutralise(&page.contract)) } }
            }
        }
        h2 { "Events" }
        (steps(&page.events))
    }
}

fn actions(page: &CasePage, report: &CaseReport<'_>, forms: &Forms<'_>) -> Markup {
    html! {
        section .card aria-label="Actions" {
            @match page.status {
                CaseStatus::Waiting => @if let Some(question) = report.open_question() {
                    @let needs = page.state.opened.ask.needs;
                    (asked(question)) (forms.answers(&question.digest, needs, None))
                },
                CaseStatus::Running => (forms.line("cancel", "Cancel", "reason", "Reason")),
                CaseStatus::Interrupted => div .actions {
                    (forms.button("resume", "Continue"))
                    (forms.line("cancel", "Cancel", "reason", "Reason"))
                },
                CaseStatus::Success => (forms.button("land", "Land")),
                CaseStatus::Failure => (forms.button("retry", "Try again what was refused")),
                CaseStatus::Landed | CaseStatus::Unreadable => p { "Nothing is left to decide." },
            }
        }
    }
}

/// Everything that the digest of the question covers.
fn asked(question: &CaseQuestion) -> Markup {
    html! {
        @for part in &question.parts {
            h3 { (one_line(part.part.as_deref().unwrap_or("the whole"))) }
            p { (first_line(&part.objective, 300)) }
            dl {
                (fact("Writes", &part.allow.join(", ")))
                (fact("Accepted by", &part.accept.join("; ")))
            }
            ul { @for one in &part.widenings {
                li { code { (one_line(&one.path)) } " " (one_line(&one.problem)) }
            } }
        }
        dl { dt { "Digest" } dd .mono { (question.digest) } }
    }
}

fn planned(words: &str, drafted: Option<&Drafted>) -> Markup {
    html! {
        li .row {
            @match drafted {
                Some(drafted) if drafted.verdict.allow => {
                    (pill("good", "DONE")) h3 { (words) }
                    p .faint { "by " code { (one_line(&drafted.plan_id)) } }
                },
                Some(drafted) => {
                    (pill("bad", drafted.verdict.code.name())) h3 { (words) }
                    p { (one_line(&drafted.verdict.reason)) }
                },
                None => { (pill("", "NOT YET")) h3 { (words) } },
            }
        }
    }
}

fn part_card(page: &CasePage, part: &CasePart<'_>, forms: &Forms<'_>) -> Markup {
    let keeps = |run: &CaseRun<'_>| {
        let mut fixes = page.state.fixes.iter();
        fixes
            .find(|it| it.start.run_id == run.run_id)
            .map(|it| it.start.keeps)
    };
    html! {
        article .card {
            h3 { (one_line(part.id)) }
            @if let Some(verdict) = part.not_run {
                p .bad { "Not run: " (one_line(&verdict.reason)) }
            }
            ol .tree { @for run in &part.runs { li {
                (outcome(run.verdict)) " " (link(forms.repository, run))
                @if run.fix {
                    " fixes the part because the whole was refused, "
                    @match keeps(run) {
                        Some(true) => "from its earlier result",
                        _ => "in place of its earlier result",
                    }
                } @else { " did the work" }
                @if let Some(verdict) = run.verdict.filter(|it| !it.allow) {
                    p .faint { (one_line(&verdict.reason)) }
                }
            } } }
        }
    }
}

fn link(repository: &str, run: &CaseRun<'_>) -> Markup {
    html! { a href={ "/r/" (repository) "/" (run.run_id) } { (short_id(run.run_id)) } }
}

fn outcome(verdict: Option<&Verdict>) -> Markup {
    match verdict {
        Some(verdict) if verdict.allow => pill("good", "ACCEPTED"),
        Some(verdict) => pill("bad", verdict.code.name()),
        None => pill("", "RUNNING"),
    }
}

fn integration(report: &CaseReport<'_>) -> Markup {
    html! {
        h2 { "Integration" }
        @match report.integration {
            None => p .empty { "The parts are not merged yet." },
            Some(integration) => {
                ol .tree { @for merged in &integration.merged { li {
                    strong { (one_line(&merged.part)) } " "
                    code { (merged.commit.short()) } " "
                    span .faint { (first_line(&merged.paths.join(", "), 200)) }
                } } }
                @if let Some(conflict) = &integration.conflict {
                    p .bad {
                        (one_line(&conflict.part)) " conflicts with "
                        (one_line(&conflict.with.join(", "))) ": "
                        (one_line(&conflict.paths.join(", ")))
                    }
                }
            },
        }
    }
}

fn whole(report: &CaseReport<'_>, forms: &Forms<'_>) -> Markup {
    html! {
        h2 { "The whole and its landing" }
        @match &report.whole {
            None => p .empty { "No run has judged the whole yet." },
            Some(run) => p { (outcome(run.verdict)) " judged by " (link(forms.repository, run)) },
        }
        @match report.landed {
            Some(commit) => p { (pill("good", "LANDED")) " as " code { (commit) } },
            None => p .faint { "Not landed." },
        }
    }
}
