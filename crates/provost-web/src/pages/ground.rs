//! *Ground*: what runs share: held paths, shared checkouts, conflicts, policy and spending.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use provost_core::agent::{Budget, dollars};
use provost_core::foreign_text::{first_line, neutralise, one_line};
use provost_core::path::RepoPath;
use provost_engine::query::{DeniedWrite, GroundView, short_id};

use super::plot::bars;
use super::{NavigationEntry, Page, pill, shown};
use crate::room::{ChangeRow, RepositoryRow, SpendView, SpentRow};
use crate::server::App;

/// How many days of spending are drawn.
const DAYS: usize = 30;

/// How many paths of a row are named.
const MOST_PATHS: usize = 8;

pub(crate) async fn show(State(app): State<App>) -> Response {
    let page = app
        .ask(|room| {
            let mut all = Vec::new();
            for repository in room.repositories() {
                if repository.problem.is_none() {
                    let ground = room.ground(&repository.id);
                    all.push((repository, ground));
                }
            }
            let spend = room.spend();
            let body = html! {
                h1 { "Ground" }
                @for (repository, ground) in &all {
                    section {
                        h2 { (one_line(&repository.name)) }
                        @match ground {
                            Ok(ground) => (shared(repository, ground)),
                            Err(error) => p .bad { (one_line(&error.reason)) },
                        }
                    }
                }
                h2 { "Spending" }
                @match &spend {
                    Ok(spend) => (spent(spend)),
                    Err(error) => p .bad { (one_line(&error.reason)) },
                }
            };
            let page = Page::of(room, "Ground", body);
            Ok(Page {
                place: NavigationEntry::Ground,
                ..page
            })
        })
        .await;
    shown(page)
}

/// What the hooks of agents in shared checkouts denied, the newest first.
fn denied(rows: Option<&[DeniedWrite]>) -> Markup {
    html! {
        @match rows {
            None => p .bad { "The denied writes cannot be read." },
            Some([]) => p .empty { "No hook has denied a write." },
            Some(rows) => ul .plain-list { @for row in rows { li {
                span .faint {
                    (one_line(&row.at)) " "
                    @if let Some(agent) = &row.agent { (one_line(agent)) " " }
                }
                @let paths: Vec<&str> = row.paths.iter().map(String::as_str).collect();
                (names(&paths)) " " span .bad { (first_line(&row.reason, 300)) }
            } } },
        }
    }
}

fn shared(repository: &RepositoryRow, ground: &GroundView<ChangeRow>) -> Markup {
    html! {
        div .beside {
            div .card {
                h3 { "Held paths" }
                @if ground.leases.is_empty() { p .empty { "No run holds a path." } }
                ul .plain-list { @for lease in &ground.leases {
                    @let paths: Vec<&str> =
                        lease.scope.entries().iter().map(RepoPath::as_str).collect();
                    li {
                        a href={ "/r/" (repository.id) "/" (lease.run_id) } {
                            (short_id(&lease.run_id))
                        }
                        " " (names(&paths))
                    }
                } }
            }
            div .card {
                h3 { "Shared checkouts" }
                @match &ground.changes {
                    None => p .bad { "The declared changes cannot be read." },
                    Some(changes) if changes.is_empty() => {
                        p .empty { "No agent has declared a change." }
                    },
                    Some(changes) => ul .plain-list { @for one in changes {
                        li { (change(one)) }
                    } },
                }
            }
            div .card {
                h3 { "Denied writes" }
                (denied(ground.denied.as_deref()))
            }
            div .card {
                h3 { "Conflicting work" }
                @if ground.conflicts.is_empty() {
                    p .empty {
                        @match ground.compared {
                            0 | 1 => "No two runs have work that has not landed.",
                            _ => "The open work of all runs can be merged.",
                        }
                    }
                }
                ul .plain-list { @for one in &ground.conflicts { li {
                    @for (index, run) in one.runs.iter().enumerate() {
                        @if index > 0 { " and " }
                        a href={ "/r/" (repository.id) "/" (run) } { (short_id(run)) }
                    }
                    @let paths: Vec<String> = one.paths.iter().map(ToString::to_string).collect();
                    " " (names(&paths))
                } } }
                @if ground.left_out > 0 {
                    p .faint { (ground.left_out) " older runs were not compared." }
                }
            }
        }
        details #{ "policy-" (repository.id) } {
            summary { "Policy of the commit that is checked out" }
            @match &ground.policy {
                Some(text) => div .scroll tabindex="0" { pre { (neutralise(text)) } },
                None => p .empty { "There is no provost.toml: the defaults apply." },
            }
        }
    }
}

fn names<T: AsRef<str>>(paths: &[T]) -> Markup {
    let shown: Vec<String> = paths
        .iter()
        .take(MOST_PATHS)
        .map(|it| one_line(it.as_ref()))
        .collect();
    html! {
        code { (shown.join(", ")) }
        @if let Some(more) = paths.len().checked_sub(MOST_PATHS + 1) {
            " and " (more + 1) " more"
        }
    }
}

fn change(one: &ChangeRow) -> Markup {
    let class = match one.state.as_str() {
        "active" => "good",
        "queued" => "wait",
        _ => "",
    };
    html! {
        (pill(class, &one.state.to_uppercase())) " " strong { (first_line(&one.agent, 60)) }
        " " (names(&one.paths))
        p .faint {
            (first_line(&one.intent, 200)) " · " (one_line(&one.ownership))
            " · until " (one_line(&one.expires))
        }
    }
}

fn spent(spend: &SpendView) -> Markup {
    let by_price = spend.days.iter().any(|day| day.micro_usd > 0);
    let amount = |row: &SpentRow| if by_price { row.micro_usd } else { row.tokens };
    let limit = if by_price {
        spend.day_limit.micro_usd
    } else {
        spend.day_limit.tokens
    };
    let rows = |rows: &[SpentRow]| -> Vec<(String, u64, String)> {
        let words = |row: &SpentRow| {
            let price = dollars(row.micro_usd);
            format!(
                "{price} · {} tokens · {} requests",
                row.tokens, row.requests
            )
        };
        let row = |row: &SpentRow| (one_line(&row.name), amount(row), words(row));
        rows.iter().map(row).collect()
    };
    let newest = spend.days.len().saturating_sub(DAYS);
    html! {
        @if spend.days.is_empty() {
            p .empty { "No agent of yours has spent anything through the gateway yet." }
        } @else {
            h3 { "By day" }
            (bars(&rows(&spend.days[newest..]), limit))
            h3 { "By model" }
            (bars(&rows(&spend.models), None))
        }
        dl {
            dt { "Limit of a day" } dd { (budget(spend.day_limit)) }
            dt { "Limit of a run" } dd { (budget(spend.run_limit)) }
        }
    }
}

fn budget(budget: Budget) -> String {
    let tokens = budget.tokens.map(|it| format!("{it} tokens"));
    let price = budget.micro_usd.map(dollars);
    let parts: Vec<String> = tokens.into_iter().chain(price).collect();
    match parts.as_slice() {
        [] => "none".to_owned(),
        parts => parts.join(", "),
    }
}
