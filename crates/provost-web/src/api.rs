//! `/api/v1`: the same views as JSON, for programs with a token.
//!
//! A list is continued by its cursor, which names the last item, so that new runs shift nothing.
//! Every answer has an `ETag`. Every error is `application/problem+json`.

pub(crate) mod answers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_engine::case::CaseReport;
use provost_engine::ports::PortError;
use serde::{Deserialize, Serialize};

use self::answers::{
    ApiCase, ApiCaseDetail, ApiChange, ApiCommand, ApiDone, ApiEvidence, ApiGround, ApiList,
    ApiLive, ApiProblem, ApiRepository, ApiRun, ApiRunDetail, ApiStep, ApiTranscript, ApiWaiting,
    value, word,
};
use crate::commands;
use crate::guard::{ApiCaller, Refused};
use crate::pages::status_of;
use crate::room::{AskedBy, ControlRoom, RoomListing};
use crate::server::App;

/// How long a look at the files of a repository is good for, at least.
const PAUSE: Duration = Duration::from_millis(25);

/// The most rows of one answer.
const MOST: usize = 200;

/// Which part of a long answer.
#[derive(Deserialize)]
pub(crate) struct Window {
    cursor: Option<String>,
    limit: Option<usize>,
    /// A part of the objective or the id.
    #[serde(default)]
    q: String,
    /// A word of a status; empty for all.
    #[serde(default)]
    status: String,
}

impl Window {
    fn most(&self) -> usize {
        self.limit.unwrap_or(MOST).clamp(1, MOST)
    }

    /// The cursor as a number of lines.
    fn line(&self) -> Result<usize, PortError> {
        let cursor = self.cursor.as_deref().unwrap_or("0");
        cursor.parse().map_err(|_| unknown_cursor())
    }
}

fn unknown_cursor() -> PortError {
    PortError::new(Code::UsageError, "the cursor is not one of this list")
}

fn problem(status: StatusCode, code: Code, detail: &str, hint: Option<String>) -> Response {
    let problem = ApiProblem {
        kind: "about:blank",
        title: status.canonical_reason().unwrap_or("error").to_owned(),
        status: status.as_u16(),
        code: code.name().to_owned(),
        detail: detail.to_owned(),
        hint,
    };
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    let text = serde_json::to_string(&problem).unwrap_or_default();
    (status, kind, text).into_response()
}

pub(crate) fn refused(Refused { status, reason }: Refused) -> Response {
    problem(status, Code::SessionRefused, reason, None)
}

/// An answer of the router itself, as a problem.
pub(crate) fn unanswered(status: StatusCode) -> Response {
    let (code, detail) = match status {
        StatusCode::NOT_FOUND => (Code::NotFound, "there is no such route"),
        StatusCode::METHOD_NOT_ALLOWED => (Code::UsageError, "the route has not this method"),
        _ => (Code::UsageError, "the request cannot be read"),
    };
    problem(
        status,
        code,
        detail,
        Some("GET /api/v1/openapi.json".to_owned()),
    )
}

fn answer<T: Serialize>(headers: &HeaderMap, found: Result<T, PortError>) -> Response {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            return problem(status_of(error.code), error.code, &error.reason, error.hint);
        }
    };
    let Ok(text) = serde_json::to_string(&found) else {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return problem(status, Code::Bug, "the answer cannot be written", None);
    };
    let tag = format!("\"{}\"", &sha256(text.as_bytes())[..32]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    if known.any(|it| it.trim() == tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let kind = (header::CONTENT_TYPE, "application/json".to_owned());
    ([kind, (header::ETAG, tag)], text).into_response()
}

pub(crate) async fn openapi(headers: HeaderMap) -> Response {
    answer(&headers, Ok(crate::openapi::openapi()))
}

pub(crate) async fn repositories(State(app): State<App>, headers: HeaderMap) -> Response {
    let found = app
        .ask(|room| {
            let all = room.repositories().into_iter();
            let items = all.map(ApiRepository::from).collect();
            Ok(ApiList { items, next: None })
        })
        .await;
    answer(&headers, found)
}

/// The page of `items` (newest first) after the cursor. Ids sort by time, so the cursor may name an
/// item that is gone.
fn page<I, T>(
    items: impl Iterator<Item = I>,
    window: &Window,
    id: impl Fn(&I) -> &str,
    shown: impl Fn(&I) -> T,
) -> Result<ApiList<T>, PortError> {
    let cursor = window.cursor.as_deref();
    if cursor.is_some_and(|it| !it.starts_with("run_") && !it.starts_with("case_")) {
        return Err(unknown_cursor());
    }
    let later = |item: &I| cursor.is_none_or(|cursor| id(item) < cursor);
    let mut rest = items.filter(later);
    let taken: Vec<I> = rest.by_ref().take(window.most()).collect();
    let next = taken.last().filter(|_| rest.next().is_some());
    Ok(ApiList {
        next: next.map(|item| id(item).to_owned()),
        items: taken.iter().map(shown).collect(),
    })
}

/// The listing once everything in it is read: a program is given no part of a list as the whole.
fn whole_listing(room: &dyn ControlRoom, repository: &str) -> Result<Arc<RoomListing>, PortError> {
    loop {
        let listing = room.listing(repository)?;
        if listing.unread == 0 {
            return Ok(listing);
        }
        // What is read meanwhile by another request counts too.
        thread::sleep(PAUSE);
    }
}

pub(crate) async fn runs(
    State(app): State<App>,
    headers: HeaderMap,
    Path(repository): Path<String>,
    Query(window): Query<Window>,
) -> Response {
    let rows = app
        .ask(move |room| {
            let listing = whole_listing(room, &repository)?;
            let words = window.q.trim().to_lowercase();
            let rows = listing.rows.iter();
            let rows = rows.filter(|row| row.matches(&words, &window.status));
            page(
                rows,
                &window,
                |row| &row.summary.run_id,
                |row| ApiRun::from(row.as_ref()),
            )
        })
        .await;
    answer(&headers, rows)
}

pub(crate) async fn cases(
    State(app): State<App>,
    headers: HeaderMap,
    Path(repository): Path<String>,
    Query(window): Query<Window>,
) -> Response {
    let rows = app
        .ask(move |room| {
            let listing = whole_listing(room, &repository)?;
            let cases = listing.cases.iter();
            page(
                cases,
                &window,
                |case| &case.case_id,
                |case| ApiCase::from(case.as_ref()),
            )
        })
        .await;
    answer(&headers, rows)
}

pub(crate) async fn case(
    State(app): State<App>,
    headers: HeaderMap,
    Path((repository, case)): Path<(String, String)>,
) -> Response {
    let found = app
        .ask(move |room| {
            let page = room.case(&repository, &case)?;
            Ok(ApiCaseDetail {
                report: value(&CaseReport::of(&page.case_id, &page.state)),
                workflow_case_read_model: value(&page.model),
                events: page.events,
                commands: room.commands(&repository, &case),
            })
        })
        .await;
    answer(&headers, found)
}

pub(crate) async fn inbox(State(app): State<App>, headers: HeaderMap) -> Response {
    let found = app
        .ask(|room| {
            let mut items = Vec::new();
            for repository in room.repositories() {
                let Ok(listing) = whole_listing(room, &repository.id) else {
                    continue;
                };
                items.extend(listing.waiting_cases().map(|case| ApiWaiting {
                    repository: repository.id.clone(),
                    reason: "case".to_owned(),
                    digest: None,
                    questions: value(&[(); 0]),
                    run: None,
                    case: Some(ApiCase::from(case)),
                }));
                items.extend(listing.waiting.iter().map(|(reason, row)| ApiWaiting {
                    repository: repository.id.clone(),
                    reason: word(*reason).to_owned(),
                    digest: row.question.as_ref().map(|it| it.digest.clone()),
                    questions: value(&row.questions),
                    run: Some(ApiRun::from(row.as_ref())),
                    case: None,
                }));
            }
            Ok(ApiList { items, next: None })
        })
        .await;
    answer(&headers, found)
}

pub(crate) async fn ground(
    State(app): State<App>,
    headers: HeaderMap,
    Path(repository): Path<String>,
) -> Response {
    let found = app
        .ask(move |room| Ok(ApiGround::of(room.ground(&repository)?, room.spend()?)))
        .await;
    answer(&headers, found)
}

pub(crate) async fn run(
    State(app): State<App>,
    headers: HeaderMap,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let found = app
        .ask(move |room| {
            let page = room.run(&repository, &run)?;
            Ok(ApiRunDetail {
                view: value(&page.view),
                why: value(&page.why),
                events: page.events,
                steps: page.steps.iter().map(ApiStep::from).collect(),
                live: page.live.as_ref().map(ApiLive::from),
                commands: room.commands(&repository, &run),
            })
        })
        .await;
    answer(&headers, found)
}

pub(crate) async fn transcript(
    State(app): State<App>,
    headers: HeaderMap,
    Path((repository, run)): Path<(String, String)>,
    Query(window): Query<Window>,
) -> Response {
    let page = app
        .ask(move |room| {
            let page = room.transcript(&repository, &run, window.line()?, window.most())?;
            Ok(ApiTranscript {
                items: value(&page.entries),
                next: page.next.map(|line| line.to_string()),
            })
        })
        .await;
    answer(&headers, page)
}

pub(crate) async fn change(
    State(app): State<App>,
    headers: HeaderMap,
    Path((repository, run)): Path<(String, String)>,
    Query(window): Query<Window>,
) -> Response {
    let page = app
        .ask(move |room| {
            let from = window.line()?;
            let patch = room.patch(&repository, &run)?;
            let patch = String::from_utf8_lossy(&patch);
            let total = patch.lines().count();
            let lines = patch.lines().skip(from).take(window.most());
            let to = from.saturating_add(window.most());
            Ok(ApiChange {
                lines: lines.map(str::to_owned).collect(),
                total,
                next: (to < total).then(|| to.to_string()),
            })
        })
        .await;
    answer(&headers, page)
}

pub(crate) async fn evidence(
    State(app): State<App>,
    headers: HeaderMap,
    Path((repository, run)): Path<(String, String)>,
) -> Response {
    let found = app
        .ask(move |room| Ok(ApiEvidence(value(&room.evidence(&repository, &run)?))))
        .await;
    answer(&headers, found)
}

/// Carries out a command; the guard has seen that the token may command.
pub(crate) async fn command(
    State(app): State<App>,
    headers: HeaderMap,
    Extension(ApiCaller { token }): Extension<ApiCaller>,
    Path((repository, id, name)): Path<(String, String, String)>,
    body: Bytes,
) -> Response {
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    let unread = |error: json::ReadError| PortError::new(Code::InputInvalid, error.to_string());
    let command = json::parse_as::<ApiCommand>(body).map_err(unread);
    let command = command.and_then(|sent| {
        let fields = [
            ("digest", sent.digest),
            ("reason", sent.reason),
            ("words", sent.words),
        ];
        let fields = fields.into_iter();
        let fields: BTreeMap<String, String> = fields
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        commands::parse(&name, &fields)
    });
    let command = match command {
        Ok(command) => command,
        Err(error) => return answer::<ApiDone>(&headers, Err(error)),
    };
    let asked = AskedBy::Token { name: token };
    let done = app
        .ask(move |room| room.carry_out(&repository, &id, &command, &asked))
        .await;
    answer(&headers, done.map(|done| ApiDone { done }))
}
