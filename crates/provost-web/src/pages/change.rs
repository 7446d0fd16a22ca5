//! *Change*: the patch of a run, unified, in pages.

use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::one_line;
use provost_engine::query::{ChangeKind, ChangedFile, short_id};

use super::run::tabs;
use super::transcript::From;
use super::{Page, shown};
use crate::server::App;

/// How many lines are on one page.
const ON_A_PAGE: usize = 1000;

/// How many files are listed above the patch.
const MOST_FILES: usize = 200;

/// How many characters of a line are shown; the bundle has all of it.
const LONGEST: usize = 2000;

pub(crate) async fn show(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
    Query(From { from }): Query<From>,
) -> Response {
    let page = app
        .ask(move |room| {
            let view = room.run(&repository, &run)?.view;
            let patch = match view.tree {
                Some(_) => room.patch(&repository, &run)?,
                None => Vec::new(),
            };
            let patch = String::from_utf8_lossy(&patch);
            let lines = patch.lines().count();
            let body = html! {
                h1 { "Change of " (short_id(&run)) }
                (tabs(&repository, &run))
                @if lines == 0 { p { "The run has captured no change." } }
                (files(&view.changed_files))
                @if lines > 0 {
                    p .faint {
                        "Lines " (from + 1) " to " (lines.min(from + ON_A_PAGE)) " of " (lines)
                    }
                    div .scroll tabindex="0" { div .patch {
                        @for line in patch.lines().skip(from).take(ON_A_PAGE) { (patch_line(line)) }
                    } }
                }
                @if from > 0 {
                    p { a href={ "?from=" (from.saturating_sub(ON_A_PAGE)) } { "Earlier lines" } }
                }
                @if from + ON_A_PAGE < lines {
                    p { a href={ "?from=" (from + ON_A_PAGE) } { "Later lines" } }
                }
            };
            Ok(Page::of(room, format!("Change {}", short_id(&run)), body))
        })
        .await;
    shown(page)
}

fn files(changed: &[ChangedFile]) -> Markup {
    html! {
        @if !changed.is_empty() {
            ul { @for file in changed.iter().take(MOST_FILES) {
                li {
                    @match file.kind {
                        ChangeKind::Added => span .good { "added " },
                        ChangeKind::Removed => span .bad { "removed " },
                        ChangeKind::Modified => span .faint { "modified " },
                    }
                    code { (one_line(&file.path.to_string())) }
                }
            } }
            @if let Some(more) = changed.len().checked_sub(MOST_FILES + 1) {
                p { "and " (more + 1) " more files; the patch has all of them" }
            }
        }
    }
}

fn patch_line(line: &str) -> Markup {
    let class = match line.as_bytes() {
        [b'd', b'i', b'f', b'f', ..] => "file",
        [b'@', b'@', ..] => "hunk",
        [b'+', ..] => "plus",
        [b'-', ..] => "minus",
        _ => "",
    };
    let shown: String = line.chars().take(LONGEST).collect();
    let cut = line.chars().count().saturating_sub(LONGEST);
    html! {
        span class=(class) {
            (one_line(&shown.replace('\t', "    ")))
            @if cut > 0 { " … " (cut) " more characters" }
        }
    }
}
