//! *Evidence*: what verification answers, the chain, the signature, and the files.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use provost_core::foreign_text::one_line;
use provost_engine::bundle::verify::{ProofAnswer, Report, Signer};
use provost_engine::query::short_id;
use serde::Deserialize;

use super::run::{steps, tabs};
use super::{Page, fact, failed, shown};
use crate::room::EvidenceView;
use crate::server::App;

/// How many findings are listed.
const MOST: usize = 200;

pub(crate) async fn show(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let page = app
        .ask(move |room| {
            let found = room.evidence(&repository, &run)?;
            let body = html! {
                h1 { "Evidence of " (short_id(&run)) }
                (tabs(&repository, &run))
                (answers(&found.report))
                (chain(&found))
                h2 { "Files" }
                ul { @for file in &found.files {
                    @let query = encoded(&file.name);
                    li {
                        a href={ "/r/" (repository) "/" (run) "/file?name=" (query) } {
                            (one_line(&file.name))
                        }
                    }
                } }
                h2 { "Events" }
                (steps(&found.events))
            };
            Ok(Page::of(room, format!("Evidence {}", short_id(&run)), body))
        })
        .await;
    shown(page)
}

fn answers(report: &Report) -> Markup {
    let verdict = report.verdict();
    let answer = |it: ProofAnswer| match it {
        ProofAnswer::Yes => html! { span .good { "yes" } },
        ProofAnswer::No => html! { span .bad { "no" } },
        ProofAnswer::Open => html! { span .wait { "unknown" } },
    };
    html! {
        p .verdict {
            @if verdict.allow { span .good { "PASS" } " the evidence holds" }
            @else { span .bad { (verdict.code.name()) } " " (one_line(&verdict.reason)) }
        }
        dl {
            dt { "Intact" } dd { (answer(report.proof.intact)) }
            dt { "Complete" } dd { (answer(report.proof.complete)) }
            dt { "Authentic" } dd { (answer(report.proof.authentic)) }
        }
        @if !report.proof.findings.is_empty() {
            ul { @for one in report.proof.findings.iter().take(MOST) {
                li { code { (one_line(&one.path)) } " " (one_line(&one.problem)) }
            } }
        }
        @if let Some(more) = report.proof.findings.len().checked_sub(MOST + 1) {
            p { "and " (more + 1) " more: provost verify --json lists all" }
        }
    }
}

fn chain(found: &EvidenceView) -> Markup {
    let signer = match &found.report.proof.signer {
        Signer::Trusted(key) => format!("{key}, a key that you trust"),
        Signer::Another(key) => format!("{key}, not the key asked for"),
        Signer::Unknown(key) => format!("{key}, a key that you do not trust"),
        Signer::Unsigned => "no signature that holds".to_owned(),
    };
    html! {
        h2 { "Chain and signature" }
        dl {
            (fact("Events", &found.events.len().to_string()))
            (fact("Head", found.head.as_deref().unwrap_or_default()))
            (fact("Signed by", &signer))
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Named {
    name: String,
}

/// A file of a bundle, always as a download: a browser shows none of it.
pub(crate) async fn file(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
    Query(Named { name }): Query<Named>,
) -> Response {
    let safe = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => letter,
        _ => '_',
    };
    let saved: String = format!("{}_{name}", short_id(&run))
        .chars()
        .map(safe)
        .collect();
    let bytes = app
        .ask(move |room| room.file(&repository, &run, &name))
        .await;
    let disposition = format!("attachment; filename=\"{saved}\"");
    match bytes {
        Ok(bytes) => {
            let headers = [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CONTENT_DISPOSITION, disposition.as_str()),
            ];
            (headers, bytes).into_response()
        }
        Err(error) => failed(&error),
    }
}

/// A name as a value of a query.
fn encoded(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(letter).collect()
}
