//! *Compare*: the runs of one contract side by side.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::html;
use provost_core::agent::dollars;
use provost_core::foreign_text::first_line;
use provost_engine::query::short_id;

use super::run::tabs;
use super::{Page, length, pill, shown};
use crate::server::App;

/// How many runs are compared.
const MOST: usize = 12;

pub(crate) async fn show(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let page = app
        .ask(move |room| {
            room.run(&repository, &run)?;
            let listing = room.listing(&repository)?;
            let own = listing.rows.iter().find(|row| row.summary.run_id == run);
            let contract = own.and_then(|row| row.contract_sha256.as_ref());
            let same = listing.rows.iter().filter(|row| {
                row.summary.run_id == run
                    || (contract.is_some() && row.contract_sha256.as_ref() == contract)
            });
            let runs: Vec<String> = same.map(|row| row.summary.run_id.clone()).collect();
            let left_out = runs.len().saturating_sub(MOST);
            let shown: Vec<String> = runs.into_iter().take(MOST).collect();
            let compared = room.compare(&repository, &shown)?;
            let body = html! {
                h1 { "Runs of the contract of " (short_id(&run)) }
                (tabs(&repository, &run, "Compare"))
                div .scroll tabindex="0" { table {
                    thead { tr {
                        th { "Run" } th { "Outcome" } th { "Agent" } th .number { "Files" }
                        th .number { "Lines" } th .number { "Tokens" } th .number { "Price" }
                        th .number { "Agent worked" }
                    } }
                    tbody { @for one in &compared.runs { tr {
                        @let id = &one.summary.run_id;
                        @let usage = one.usage.as_ref().map(|it| &it.usage);
                        th scope="row" {
                            a href={ "/r/" (repository) "/" (id) } { (short_id(id)) }
                        }
                        td { @match one.summary.code {
                            Some(code) if code.name() == "OK" => (pill("good", "ACCEPTED")),
                            Some(code) => (pill("bad", code.name())),
                            None => (pill("", one.summary.status.word())),
                        } }
                        td .mono { (first_line(&one.agent, 60)) }
                        td .number { (one.changed_files) }
                        td .number { "+" (one.added) " −" (one.removed) }
                        td .number { @if let Some(usage) = usage { (usage.tokens()) } }
                        td .number { @if let Some(usage) = usage { (dollars(usage.micro_usd)) } }
                        td .number { (one.agent_ms.map(length).unwrap_or_default()) }
                    } } }
                } }
                @if compared.runs.len() < 2 { p .faint { "No other run has this contract." } }
                @if left_out > 0 { p { "and " (left_out) " older runs of the same contract" } }
            };
            Ok(Page::of(room, format!("Compare {}", short_id(&run)), body))
        })
        .await;
    shown(page)
}
