//! *Evidence*: what verification answers, the chain, the signature, and the files.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use provost_core::bundle::layout::ATTESTATION;
use provost_core::foreign_text::{neutralise, one_line};
use provost_engine::bundle::verify::{ProofAnswer, Report, Signer};
use provost_engine::query::short_id;
use serde::Deserialize;

use super::run::{steps, tabs};
use super::{Page, fact, failed, shown};
use crate::room::{EvidenceView, RunPage};
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
                (tabs(&repository, &run, "Evidence"))
                (answers(&found.report))
                div .actions {
                    @if found.files.iter().any(|file| file.name == ATTESTATION) {
                        a .button href={
                            "/r/" (repository) "/" (run) "/file?name=" (ATTESTATION)
                        } { "Download the attestation" }
                    }
                    a .button.plain href={ "/r/" (repository) "/" (run) "/evidence.html" } {
                        "One file for an auditor"
                    }
                }
                (chain(&found))
                h2 { "Files" }
                ul .files { @for file in &found.files {
                    @let query = encoded(&file.name);
                    li {
                        a href={ "/r/" (repository) "/" (run) "/file?name=" (query) } {
                            (one_line(&file.name))
                        }
                        @if let Some(digest) = &file.sha256 { " " span .faint.mono { (digest) } }
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

/// The style of the file for an auditor, which has to do without this server.
const PRINT: &str = "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\
    pre,code,.mono{font:13px/1.4 monospace;white-space:pre-wrap;overflow-wrap:anywhere}\
    dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em}dd{margin:0}\
    td,th{text-align:left;vertical-align:top;padding:.2em .6em;border-bottom:1px solid #ccc}\
    .good{color:#146c2e}.bad{color:#b3261e}.wait{color:#8a5000}.faint{color:#555}";

/// Everything about the evidence of a run in one file that needs nothing else.
pub(crate) async fn whole(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let saved = format!("provost_{}.html", short_id(&run));
    let text = app
        .ask(move |room| {
            let found = room.evidence(&repository, &run)?;
            let page = room.run(&repository, &run)?;
            Ok(auditor(&run, &found, &page).into_string())
        })
        .await;
    let disposition = format!("attachment; filename=\"{saved}\"");
    match text {
        Ok(text) => {
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CONTENT_DISPOSITION, disposition.as_str()),
            ];
            (headers, text).into_response()
        }
        Err(error) => failed(&error),
    }
}

fn auditor(run: &str, found: &EvidenceView, page: &RunPage) -> Markup {
    let view = &page.view;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Evidence of " (run) }
                style { (PreEscaped(PRINT)) }
            }
            body {
                h1 { "Evidence of " (run) }
                p { (one_line(&view.objective)) }
                (answers(&found.report))
                p .faint {
                    "This file repeats what the bundle says. The bundle is the evidence: "
                    code { "provost verify " (run) } " checks it."
                }
                (chain(found))
                h2 { "Gates" }
                table { tbody { @for gate in &view.gates { tr {
                    td { @if gate.allow { "PASS" } @else { "FAIL" } }
                    td { (gate.gate.name()) } td { (gate.code.name()) }
                    td { (one_line(&gate.reason)) }
                } } } }
                h2 { "Changed files" }
                ul { @for file in &view.changed_files {
                    li { code { (one_line(&file.path.to_string())) } }
                } }
                h2 { "Contract" }
                pre { (neutralise(&page.contract)) }
                h2 { "Files of the bundle" }
                table { tbody { @for file in &found.files { tr {
                    td { code { (one_line(&file.name)) } }
                    td .mono { (file.sha256.as_deref().unwrap_or_default()) }
                } } } }
                h2 { "Events" }
                pre { @for event in &found.events {
                    (event.seq) "  " (one_line(&event.ts)) "  " (one_line(&event.event_type)) "  "
                    (one_line(&event.about)) "\n"
                } }
            }
        }
    }
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
pub(super) fn encoded(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(letter).collect()
}
