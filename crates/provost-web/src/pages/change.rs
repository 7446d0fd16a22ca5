//! *Change*: the patch of a run by groups of files, unified or side by side, in pages. Comments on
//! its lines are the words of the next attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use provost_core::foreign_text::one_line;
use provost_core::run::cross_tests::CrossRound;
use provost_engine::query::{ChangeGroup, ChangeKind, RunStatus, short_branch, short_id};
use serde::Deserialize;

use super::forms::Forms;
use super::patch::{self, PatchLine, PatchPage};
use super::run::tabs;
use super::{Page, fact, pill, shown};
use crate::door::Visitor;
use crate::room::{ControlRoom, RunPage};
use crate::server::App;

/// How many lines are on one page.
const ON_A_PAGE: usize = 1000;

/// How many files of a group are listed above the patch.
const MOST_FILES: usize = 200;

/// The longest place of a comment, in characters.
const LONGEST_PLACE: usize = 5000;

/// What of a change is shown.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ShownChange {
    #[serde(default)]
    from: usize,
    /// `split` for both sides beside each other.
    #[serde(default)]
    view: String,
    /// The word of a group; empty for all.
    #[serde(default)]
    group: String,
    /// The place that the words of the next attempt are to be about.
    #[serde(default)]
    comment: String,
}

impl ShownChange {
    fn is_split(&self) -> bool {
        self.view == "split"
    }

    fn link(view: &str, group: &str, from: usize) -> String {
        format!("?view={view}&group={group}&from={from}")
    }

    fn view(&self) -> &'static str {
        if self.is_split() { "split" } else { "unified" }
    }
}

fn group_words(group: ChangeGroup) -> (&'static str, &'static str) {
    match group {
        ChangeGroup::Outside => ("outside", "Outside the contract"),
        ChangeGroup::Protected => ("protected", "Protected"),
        ChangeGroup::Scope => ("scope", "In scope"),
        ChangeGroup::Tests => ("tests", "Tests"),
        ChangeGroup::Generated => ("generated", "Generated"),
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((repository, run)): Path<(String, String)>,
    Query(what): Query<ShownChange>,
) -> Response {
    let drafts = app.drafts.clone();
    let page = app
        .ask(move |room| {
            let found = room.run(&repository, &run)?;
            let patch = match found.view.tree {
                Some(_) => room.patch(&repository, &run)?,
                None => Arc::default(),
            };
            let forms = Forms {
                repository: &repository,
                run: &run,
                token: &visitor.form_token,
            };
            let patch = String::from_utf8_lossy(&patch);
            let words = words(drafts.of(&repository, &run), &what.comment);
            let body = html! {
                h1 { "Change of " (short_id(&run)) }
                (tabs(&repository, &run, "Change"))
                (files(&found, &what))
                (cross_tests(&found))
                (landing(room, &found, &forms))
                (lines(&patch, &found, &what))
                @if found.view.own && found.view.is_finished {
                    h2 { "Words for the next attempt" }
                    p .faint {
                        "The number of a line puts its place here. The agent starts from the files \
                         that this run left. The words are kept if you leave the page."
                    }
                    (forms.words(&words))
                }
            };
            Ok(Page::of(room, format!("Change {}", short_id(&run)), body))
        })
        .await;
    shown(page)
}

/// The kept words, with a new line for `place`.
fn words(mut kept: String, place: &str) -> String {
    let place: String = place.chars().take(LONGEST_PLACE).collect();
    if !place.is_empty() {
        if !kept.is_empty() && !kept.ends_with('\n') {
            kept.push('\n');
        }
        kept += &format!("{}: ", one_line(&place));
    }
    kept
}

fn files(page: &RunPage, what: &ShownChange) -> Markup {
    let changed = &page.view.changed_files;
    let all = || changed.iter().zip(&page.groups);
    html! {
        @if changed.is_empty() { p .empty { "The run has captured no change." } }
        @for group in ChangeGroup::ALL {
            @let count = all().filter(|(_, it)| **it == group).count();
            @let (word, words) = group_words(group);
            @if count > 0 {
                details id={ "group-" (word) } open[what.group == word || changed.len() <= 20] {
                    summary { (words) " " span .faint { (count) } }
                    p { a href=(ShownChange::link(what.view(), word, 0)) { "Only these" } }
                    ul .plain-list {
                        @for (file, _) in all().filter(|(_, it)| **it == group).take(MOST_FILES) {
                            li {
                                @match file.kind {
                                    ChangeKind::Added => span .good { "added " },
                                    ChangeKind::Removed => span .bad { "removed " },
                                    ChangeKind::Modified => span .faint { "modified " },
                                }
                                code { (one_line(&file.path.to_string())) }
                            }
                        }
                    }
                    @if let Some(more) = count.checked_sub(MOST_FILES + 1) {
                        p { "and " (more + 1) " more; the patch has all of them" }
                    }
                }
            }
        }
    }
}

/// The tests of the base on the change, and the tests of the change on the base.
fn cross_tests(page: &RunPage) -> Markup {
    let crossed = page
        .view
        .tests
        .as_ref()
        .and_then(|it| it.two_sided.as_ref());
    let Some(crossed) = crossed else {
        return html! {};
    };
    let round = |words: &str, round: Option<&CrossRound>| {
        html! {
            @if let Some(round) = round {
                dt { (words) }
                dd { @match round {
                    CrossRound::Ran { passed: true, .. } => (pill("good", "PASS")),
                    CrossRound::Ran { passed: false, .. } => (pill("wait", "FAIL")),
                    CrossRound::Missing { missing, .. } => (one_line(missing)),
                } }
            }
        }
    };
    html! {
        section .card aria-label="Cross-tests" {
            h2 { "Cross-tests" }
            p .faint { (crossed.test_files.len()) " test files changed. No verdict depends on it." }
            dl {
                (round("Tests of the base on the change", crossed.base_tests_on_candidate.as_ref()))
                (round("Tests of the change on the base", crossed.candidate_tests_on_base.as_ref()))
            }
        }
    }
}

/// Where the change would land, and what signs for it.
fn landing(room: &dyn ControlRoom, page: &RunPage, forms: &Forms<'_>) -> Markup {
    let view = &page.view;
    let is_open = view.status == RunStatus::Success && view.landed().is_none() && view.own;
    if !is_open {
        return html! {};
    }
    let listing = room.listing(forms.repository).unwrap_or_default();
    let row = listing
        .rows
        .iter()
        .find(|row| row.summary.run_id == view.run_id);
    let target = row.and_then(|row| row.target.as_deref()).map(short_branch);
    let moved = row.is_some_and(|row| row.target_moved);
    let signer = room.signer(forms.repository, forms.run).unwrap_or_default();
    html! {
        section .card aria-label="Landing" {
            h2 { "Land" }
            dl {
                (fact("Branch", target.unwrap_or_default()))
                (fact("Expected at", &view.base.to_string()))
                (fact("Commit", &view.commit.as_ref().map(ToString::to_string).unwrap_or_default()))
                (fact("Evidence signed by", &signer))
            }
            @if moved {
                p .wait { "The branch has moved: the merge is judged again before it lands." }
            }
            (forms.button("land", "Land"))
        }
    }
}

fn lines(text: &str, page: &RunPage, what: &ShownChange) -> Markup {
    let changed = page.view.changed_files.iter().zip(&page.groups);
    let groups: BTreeMap<&[u8], &str> = changed
        .map(|(file, group)| (file.path.as_bytes(), group_words(*group).0))
        .collect();
    let keeps = |path: &str| {
        what.group.is_empty() || groups.get(path.as_bytes()) == Some(&what.group.as_str())
    };
    let PatchPage {
        lines,
        paths,
        from,
        total,
    } = patch::page(text, keeps, what.from, ON_A_PAGE);
    let lines: Vec<&PatchLine<'_>> = lines.iter().collect();
    let to = from + lines.len();
    let place = ShownChange::link(what.view(), what.group_word(), from);
    html! {
        @if !lines.is_empty() {
            nav .pages aria-label="View" {
                @let here = |view: &str| (what.view() == view).then_some("true");
                a href=(ShownChange::link("unified", what.group_word(), from))
                    aria-current=[here("unified")] { "Unified" }
                a href=(ShownChange::link("split", what.group_word(), from))
                    aria-current=[here("split")] { "Side by side" }
                @if !what.group.is_empty() { a href=(ShownChange::link(what.view(), "", 0)) { "All files" } }
                span .faint { "Lines " (from + 1) " to " (to) " of " (total) }
            }
            div .scroll tabindex="0" {
                @if what.is_split() { (patch::split(&lines, &paths, &place)) }
                @else { (patch::unified(&lines, &paths, &place)) }
            }
            nav .pages aria-label="Pages" {
                @if from > 0 {
                    @let earlier = from.saturating_sub(ON_A_PAGE);
                    a href=(ShownChange::link(what.view(), what.group_word(), earlier)) { "Earlier lines" }
                }
                @if to < total {
                    a href=(ShownChange::link(what.view(), what.group_word(), to)) { "Later lines" }
                }
            }
        }
    }
}

impl ShownChange {
    /// The group, if it is one.
    fn group_word(&self) -> &'static str {
        let words = ChangeGroup::ALL.map(|group| group_words(group).0);
        let mut words = words.into_iter();
        words.find(|word| *word == self.group).unwrap_or_default()
    }
}
