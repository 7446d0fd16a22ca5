//! `/api/v1`: the same views as JSON, for programs with a token.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use provost_core::code::Code;
use provost_engine::ports::PortError;
use serde::{Deserialize, Serialize};

use crate::guard::Refused;
use crate::pages::status_of;
use crate::server::App;

/// The most rows of one answer.
const MOST: usize = 200;

/// An error, as RFC 9457 has it.
#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    code: Code,
    detail: &'a str,
}

/// Which lines of a long answer.
#[derive(Deserialize)]
pub(crate) struct Window {
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
}

impl Window {
    fn most(&self) -> usize {
        self.limit.unwrap_or(MOST).min(MOST)
    }
}

/// Rows, and where the next ones begin.
#[derive(Serialize)]
struct Listed<T> {
    items: Vec<T>,
    next: Option<usize>,
}

fn problem(status: StatusCode, code: Code, detail: &str) -> Response {
    let problem = Problem {
        kind: "about:blank",
        title: status.canonical_reason().unwrap_or("error"),
        status: status.as_u16(),
        code,
        detail,
    };
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (
        status,
        kind,
        serde_json::to_string(&problem).unwrap_or_default(),
    )
        .into_response()
}

pub(crate) fn refused(Refused { status, reason }: Refused) -> Response {
    problem(status, Code::SessionRefused, reason)
}

fn answer<T: Serialize>(found: Result<T, PortError>) -> Response {
    match found {
        Ok(found) => Json(found).into_response(),
        Err(error) => problem(status_of(error.code), error.code, &error.reason),
    }
}

pub(crate) async fn repositories(State(app): State<App>) -> Response {
    answer(app.ask(|room| Ok(room.repositories())).await)
}

pub(crate) async fn runs(
    State(app): State<App>,
    Path(repository): Path<String>,
    Query(window): Query<Window>,
) -> Response {
    let rows = app
        .ask(move |room| {
            let items = room.rows(&repository, window.from, window.most())?;
            let full = items.len() == window.most() && !items.is_empty();
            let next = full.then(|| window.from + items.len());
            Ok(Listed { items, next })
        })
        .await;
    answer(rows)
}

pub(crate) async fn run(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    answer(app.ask(move |room| room.run(&repository, &run)).await)
}

pub(crate) async fn transcript(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
    Query(window): Query<Window>,
) -> Response {
    let page = app
        .ask(move |room| room.transcript(&repository, &run, window.from, window.most()))
        .await;
    answer(page)
}

pub(crate) async fn evidence(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    answer(app.ask(move |room| room.evidence(&repository, &run)).await)
}
