//! *Transcript*: what the agents said and did, as their programs report it; in pages.

use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::html;
use provost_core::foreign_text::neutralise;
use provost_engine::query::short_id;
use serde::Deserialize;

use super::run::tabs;
use super::{Page, shown};
use crate::server::App;

/// How many lines are on one page.
const ON_A_PAGE: usize = 300;

#[derive(Debug, Deserialize)]
pub(crate) struct From {
    #[serde(default)]
    pub(super) from: usize,
}

pub(crate) async fn show(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
    Query(From { from }): Query<From>,
) -> Response {
    let page = app
        .ask(move |room| {
            let found = room.transcript(&repository, &run, from, ON_A_PAGE)?;
            let body = html! {
                h1 { "Transcript of " (short_id(&run)) }
                (tabs(&repository, &run, "Transcript"))
                p .faint { "A claim of the agent's program. It decides nothing." }
                @if found.entries.is_empty() { p { "No lines here." } }
                @else { div .scroll tabindex="0" {
                    pre { @for entry in &found.entries {
                        @if let Some((speaker, words)) = entry.words() {
                            strong { (speaker) } " " (neutralise(words.trim())) "\n"
                        }
                    } }
                } }
                @if from > 0 {
                    p { a href={ "?from=" (from.saturating_sub(ON_A_PAGE)) } { "Earlier lines" } }
                }
                @if let Some(next) = found.next {
                    p { a href={ "?from=" (next) } { "Later lines" } }
                }
            };
            Ok(Page::of(
                room,
                format!("Transcript {}", short_id(&run)),
                body,
            ))
        })
        .await;
    shown(page)
}
