//! Stands before every route: host, session or token, origin and form token; and the headers of
//! every answer.

use std::collections::BTreeMap;

use axum::body::{self, Body};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::door::Visitor;
use crate::pages;
use crate::server::App;
use crate::token::{TokenRow, TokenScope};

/// The largest form.
const LARGEST_FORM: usize = 64 * 1024;

pub(crate) const COOKIE: &str = "provost_session";

/// The name of the field with the form token.
pub(crate) const FORM_TOKEN: &str = "form_token";

/// Only this origin gives scripts, styles and data; nothing else is loaded, framed or sent to.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// The fields of a form whose origin and token were checked.
#[derive(Debug, Clone)]
pub(crate) struct CheckedForm(pub(crate) BTreeMap<String, String>);

/// Why a request is not answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

const fn refused(status: StatusCode, reason: &'static str) -> Refused {
    Refused { status, reason }
}

pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_api = is_api(request.uri().path());
    let response = match admit(&app, request).await {
        Ok(Admitted::Request(request)) => next.run(*request).await,
        Ok(Admitted::Entered(cookie)) => entered(&cookie),
        Err(refusal) if is_api => crate::api::refused(refusal),
        Err(refusal) => pages::refused(refusal),
    };
    let status = response.status();
    let fails = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_problem = kind.is_some_and(|it| it == "application/problem+json");
    let mut response = if is_api && fails && !is_problem {
        crate::api::unanswered(status)
    } else {
        response
    };
    protect(response.headers_mut());
    response
}

enum Admitted {
    Request(Box<Request>),
    /// A code was redeemed for this cookie.
    Entered(String),
}

async fn admit(app: &App, mut request: Request) -> Result<Admitted, Refused> {
    host(app, request.headers())?;
    if is_api(request.uri().path()) {
        let row = known_token(app, bearer(&request)?).await?;
        if !matches!(*request.method(), Method::GET | Method::HEAD)
            && row.scope != TokenScope::Command
        {
            return Err(ONLY_READS);
        }
        request
            .extensions_mut()
            .insert(ApiCaller { token: row.name });
        return Ok(Admitted::Request(Box::new(request)));
    }
    if let Some(code) = code(&request) {
        let cookie = match app.door.redeem(&code).ok().flatten() {
            None => offered(app, code).await,
            cookie => cookie,
        };
        let over = "the link was used already, or is older than a minute";
        return cookie
            .map(Admitted::Entered)
            .ok_or(refused(StatusCode::UNAUTHORIZED, over));
    }
    let visitor = session(app, request.headers())?;
    match *request.method() {
        Method::GET | Method::HEAD => {}
        Method::POST => {
            same_origin(app, request.headers())?;
            let (parts, sent) = request.into_parts();
            let form = form(sent, &visitor).await?;
            request = Request::from_parts(parts, Body::empty());
            request.extensions_mut().insert(form);
        }
        _ => {
            let other = "only GET and POST are answered";
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, other));
        }
    }
    request.extensions_mut().insert(visitor);
    Ok(Admitted::Request(Box::new(request)))
}

/// The cookie for a code that another process of the user offered for this server.
async fn offered(app: &App, code: String) -> Option<String> {
    let instance = app.door.instance().to_owned();
    let known = app.ask(move |room| Ok((room.offered_code(&instance), room.now())));
    let (offered, now) = known.await.ok()?;
    let cookie = app.door.redeem_offered(&code, &offered?, now);
    cookie.ok().flatten()
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Exactly one `Host`, the one that was given out: a name that was rebound to this address differs.
fn host(app: &App, headers: &HeaderMap) -> Result<(), Refused> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let known = hosts.next().is_some_and(|it| it == app.door.host()) && hosts.next().is_none();
    let other = "this server answers to the host name of its link only";
    known
        .then_some(())
        .ok_or(refused(StatusCode::MISDIRECTED_REQUEST, other))
}

const NO_TOKEN: Refused = refused(
    StatusCode::UNAUTHORIZED,
    "the API needs a token: provost serve token new",
);

const ONLY_READS: Refused = refused(
    StatusCode::FORBIDDEN,
    "this token only reads: provost serve token new NAME --scope command",
);

/// The program that sent a request to the API.
#[derive(Debug, Clone)]
pub(crate) struct ApiCaller {
    /// The name of its token.
    pub(crate) token: String,
}

/// The API takes a token, never the cookie: no page of a browser can send one.
fn bearer(request: &Request) -> Result<String, Refused> {
    let sent = request.headers().get(header::AUTHORIZATION);
    let token = sent.and_then(|it| it.to_str().ok()?.strip_prefix("Bearer "));
    token.map(str::to_owned).ok_or(NO_TOKEN)
}

async fn known_token(app: &App, token: String) -> Result<TokenRow, Refused> {
    let admits = app
        .ask(move |room| {
            let now = room.now();
            let known = room.tokens()?;
            Ok(known.into_iter().find(|row| row.admits(&token, now)))
        })
        .await;
    match admits {
        Ok(Some(row)) => Ok(row),
        Ok(None) | Err(_) => Err(NO_TOKEN),
    }
}

/// The code of a link, which is followed at the root only.
fn code(request: &Request) -> Option<String> {
    let is_root = request.method() == Method::GET && request.uri().path() == "/";
    let query = request.uri().query().filter(|_| is_root)?;
    let mut fields = query.split('&');
    fields.find_map(|field| Some(field.strip_prefix("code=")?.to_owned()))
}

fn session(app: &App, headers: &HeaderMap) -> Result<Visitor, Refused> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut cookies = cookies
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split("; "))
        .filter_map(|it| it.strip_prefix(COOKIE)?.strip_prefix('='));
    let visitor = cookies.find_map(|cookie| app.door.visitor(cookie));
    let none = "there is no session: follow the link that `provost serve` prints";
    visitor.ok_or(refused(StatusCode::UNAUTHORIZED, none))
}

/// Only a form of this server: a missing `Origin` is no permission.
fn same_origin(app: &App, headers: &HeaderMap) -> Result<(), Refused> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let own = origins
        .next()
        .is_some_and(|it| it.as_bytes() == app.door.origin().as_bytes())
        && origins.next().is_none();
    let site = headers.get("sec-fetch-site");
    let same = site.is_none_or(|site| site == "same-origin");
    let other = "the form was not sent by a page of this server";
    (own && same)
        .then_some(())
        .ok_or(refused(StatusCode::FORBIDDEN, other))
}

async fn form(sent: Body, visitor: &Visitor) -> Result<CheckedForm, Refused> {
    let long = refused(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long");
    let bytes = body::to_bytes(sent, LARGEST_FORM).await.map_err(|_| long)?;
    let uri = axum::http::Uri::builder()
        .path_and_query([b"/?", bytes.as_ref()].concat())
        .build();
    let unreadable = refused(StatusCode::BAD_REQUEST, "the form cannot be read");
    let fields = uri
        .ok()
        .and_then(|uri| axum::extract::Query::try_from_uri(&uri).ok())
        .map(|axum::extract::Query(fields)| fields);
    let fields: BTreeMap<String, String> = fields.ok_or(unreadable)?;
    let token = fields.get(FORM_TOKEN).map_or("", String::as_str);
    let stale = "the form has not the token of this session; load the page again";
    visitor
        .accepts(token)
        .then_some(CheckedForm(fields))
        .ok_or(refused(StatusCode::FORBIDDEN, stale))
}

/// Gives the session to the browser and removes the code from its address.
fn entered(cookie: &str) -> Response {
    let cookie = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/");
    let headers = [
        (header::SET_COOKIE, cookie.as_str()),
        (header::LOCATION, "/"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The headers of every answer. There are none of CORS: no other origin may read one.
fn protect(headers: &mut HeaderMap) {
    let all = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A form needs its `Origin`, which a browser replaces by `null` under `no-referrer`.
    headers
        .entry(header::REFERRER_POLICY)
        .or_insert(HeaderValue::from_static("same-origin"));
}
