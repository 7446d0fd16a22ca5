//! One test for each hole through which servers on localhost were broken into.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use tower_service::Service as _;

use self::empty_room::EmptyRoom;
use crate::door::offered_code;
use crate::room::{AskedBy, ControlRoom, RoomChange, RoomChangeKind, RoomCommand};
use crate::server::{App, router};
use crate::token::{NewToken, TokenRow, TokenScope, new_token};

mod api;
mod empty_room;

const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[2J\u{202e}evil";

struct Site {
    app: App,
    room: Arc<EmptyRoom>,
    router: Router,
    runtime: tokio::runtime::Runtime,
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Site {
    fn new(tokens: Vec<TokenRow>) -> Self {
        let room = Arc::new(EmptyRoom {
            tokens,
            ..EmptyRoom::default()
        });
        let app = App::new(Arc::clone(&room) as Arc<dyn ControlRoom>, Some(4321)).unwrap();
        let router = router(app.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        Self {
            app,
            room,
            router,
            runtime: runtime.unwrap(),
        }
    }

    fn ask(&mut self, request: Request<Body>) -> Answered {
        let router = &mut self.router;
        self.runtime.block_on(async {
            let response = router.call(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let bytes = to_bytes(body, 1 << 20).await.unwrap();
            Answered {
                status: parts.status,
                headers: parts.headers,
                text: String::from_utf8(bytes.to_vec()).unwrap(),
            }
        })
    }

    /// A GET with the right host and these headers.
    fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Answered {
        let host = self.app.door.host().to_owned();
        let mut request = Request::get(path).header(header::HOST, host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(request.body(Body::empty()).unwrap())
    }

    /// The cookie of a new session.
    fn enter(&mut self) -> String {
        let link = self.app.door.link().unwrap();
        let (_, path) = link.split_once(":4321").unwrap();
        let answer = self.get(path, &[]);
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Sends the form that cancels a run.
    fn post(&mut self, cookie: &str, origin: Option<&str>, site: Option<&str>, body: &str) -> u16 {
        let host = self.app.door.host().to_owned();
        let mut request = Request::post("/r/0123456789abcdef/run_1/cancel")
            .header(header::HOST, host)
            .header(header::COOKIE, cookie);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        if let Some(site) = site {
            request = request.header("sec-fetch-site", site);
        }
        let answer = self.ask(request.body(Body::from(body.to_owned())).unwrap());
        answer.status.as_u16()
    }

    fn form(&self, cookie: &str) -> String {
        let cookie = cookie.split_once('=').unwrap().1;
        let token = self.app.door.visitor(cookie).unwrap().form_token;
        format!("form_token={token}&reason=enough")
    }

    fn done(&self) -> usize {
        self.room.done.lock().unwrap().len()
    }
}

const ROUTES: [&str; 16] = [
    "/",
    "/runs",
    "/live",
    "/assets/app.js",
    "/health",
    "/r/0123456789abcdef/run_1",
    "/r/0123456789abcdef/run_1/evidence",
    "/r/0123456789abcdef/run_1/file?name=events.jsonl",
    "/api/v1/repositories",
    "/api/v1/runs/0123456789abcdef",
    "/ground",
    "/c/0123456789abcdef/case_1",
    "/r/0123456789abcdef/run_1/evidence.html",
    "/api/v1/inbox",
    "/api/v1/events",
    "/api/v1/openapi.json",
];

#[test]
fn nothing_is_answered_without_a_session_and_no_refusal_names_a_secret() {
    let mut site = Site::new(Vec::new());
    let link = site.app.door.link().unwrap();
    let code = link.split_once("code=").unwrap().1.to_owned();
    for path in ROUTES {
        for headers in [&[][..], &[("cookie", "provost_session=guess")]] {
            let answer = site.get(path, headers);
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(!answer.text.contains(&code), "{path}");
            assert!(!answer.headers.contains_key(header::SET_COOKIE), "{path}");
        }
    }
}

#[test]
fn no_answer_permits_another_origin() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    for path in ["/", "/runs", "/api/v1/repositories", "/nowhere"] {
        let asked = [
            ("cookie", cookie.as_str()),
            ("origin", "http://evil.example"),
        ];
        let answer = site.get(path, &asked);
        let mut names = answer.headers.keys();
        assert!(
            !names.any(|name| name.as_str().starts_with("access-control")),
            "{path}"
        );
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(
            answer.headers["x-content-type-options"], "nosniff",
            "{path}"
        );
    }
}

#[test]
fn a_name_that_was_rebound_is_not_answered() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    let own = site.app.door.host().to_owned();
    for host in [
        "127.0.0.1:4321",
        "localhost:4321",
        "evil.example:4321",
        "",
        &own[..16],
    ] {
        let request = Request::get("/")
            .header(header::HOST, host)
            .header(header::COOKIE, &cookie);
        let answer = site.ask(request.body(Body::empty()).unwrap());
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    let absent = Request::get("/").header(header::COOKIE, &cookie);
    let answer = site.ask(absent.body(Body::empty()).unwrap());
    assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "no host");
    assert_eq!(site.get("/", &[("cookie", &cookie)]).status, StatusCode::OK);
}

#[test]
fn a_code_opens_one_session_within_a_minute() {
    let mut site = Site::new(Vec::new());
    let link = site.app.door.link().unwrap();
    let (_, path) = link.split_once(":4321").unwrap();
    let first = site.get(path, &[]);
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    assert_eq!(first.headers[header::LOCATION], "/");
    assert_eq!(first.headers[header::REFERRER_POLICY], "no-referrer");
    let cookie = first.headers[header::SET_COOKIE].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    assert_eq!(
        site.get(path, &[]).status,
        StatusCode::UNAUTHORIZED,
        "a second use"
    );
    let late = site.app.door.link().unwrap();
    let (_, path) = late.split_once(":4321").unwrap();
    site.app.door.expire();
    assert_eq!(
        site.get(path, &[]).status,
        StatusCode::UNAUTHORIZED,
        "too late"
    );
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let answer = site.get("/", &[("cookie", &cookie)]);
    assert_eq!(
        answer.status,
        StatusCode::UNAUTHORIZED,
        "a session that is over"
    );
}

#[test]
fn a_code_that_another_process_offered_opens_one_session_of_this_server_within_a_minute() {
    let mut site = Site::new(Vec::new());
    let instance = site.app.door.instance().to_owned();
    // The room says that it is 1 000 000 milliseconds after 1970.
    let cases = [
        ("another server", "0123456789abcdef", 1_000_000, true, false),
        ("another code", &instance, 1_000_000, false, false),
        ("too late", &instance, 930_000, true, false),
        ("from the future", &instance, 1_100_000, true, false),
        ("good", &instance, 1_000_000, true, true),
    ];
    for (name, wanted, made, same, opens) in cases {
        let (code, offered) = offered_code(made).unwrap();
        *site.room.offered.lock().unwrap() = Some((wanted.to_owned(), offered));
        let sent = if same { code } else { "0".repeat(32) };
        let answer = site.get(&format!("/?code={sent}"), &[]);
        assert_eq!(answer.status == StatusCode::SEE_OTHER, opens, "{name}");
        let again = site.get(&format!("/?code={sent}"), &[]);
        assert_eq!(
            again.status,
            StatusCode::UNAUTHORIZED,
            "{name}: a second use"
        );
    }
}

#[test]
fn words_are_kept_when_the_page_is_left_and_belong_to_one_run() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    let token = site.form(&cookie);
    let token = token.split('&').next().unwrap().to_owned();
    let post = |site: &mut Site, path: &str, origin: &str, body: &str| {
        let host = site.app.door.host().to_owned();
        let request = Request::post(path)
            .header(header::HOST, host)
            .header(header::COOKIE, &cookie)
            .header(header::ORIGIN, origin);
        site.ask(request.body(Body::from(body.to_owned())).unwrap())
    };
    let own = site.app.door.origin();
    let path = "/r/0123456789abcdef/run_1/words";
    let form = format!("{token}&words=a%3A1%3A+mind+the+gap");
    let denied = post(&mut site, path, "http://evil.example", &form);
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    assert_eq!(site.app.drafts.of("0123456789abcdef", "run_1"), "");
    // A run that does not exist has no words; the room of these tests knows none in detail.
    let absent = post(&mut site, path, &own, &form);
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
    assert_eq!(site.app.drafts.of("0123456789abcdef", "run_1"), "");

    let about = ("0123456789abcdef".to_owned(), "run_1".to_owned());
    site.app.drafts.keep(about, "keep me");
    let retry = "/r/0123456789abcdef/run_1/retry";
    let sent = post(&mut site, retry, &own, &format!("{token}&words=keep+me"));
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    assert_eq!(site.app.drafts.of("0123456789abcdef", "run_1"), "", "sent");
    assert_eq!(site.done(), 1);
}

#[test]
fn the_inbox_shows_what_came_of_the_last_command() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    let page = site.get("/", &[("cookie", &cookie)]);
    for part in [
        "LAND_CONFLICT",
        "by serve-session 0a",
        "&lt;script&gt;alert(1)",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
}

#[test]
fn a_form_of_another_page_changes_nothing() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    let own = site.app.door.origin();
    let form = site.form(&cookie);
    let same = Some("same-origin");
    let cases = [
        ("no origin", None, same, form.clone()),
        (
            "another origin",
            Some("http://evil.example"),
            same,
            form.clone(),
        ),
        ("the null origin", Some("null"), same, form.clone()),
        (
            "another port",
            Some("http://127.0.0.1:4321"),
            same,
            form.clone(),
        ),
        (
            "cross-site",
            Some(own.as_str()),
            Some("cross-site"),
            form.clone(),
        ),
        ("no token", Some(own.as_str()), same, "reason=x".to_owned()),
        (
            "a wrong token",
            Some(own.as_str()),
            same,
            "form_token=x".to_owned(),
        ),
    ];
    for (name, origin, fetched, body) in cases {
        assert_eq!(site.post(&cookie, origin, fetched, &body), 403, "{name}");
        assert_eq!(site.done(), 0, "{name}");
    }
    let other = site.enter();
    let mixed = site.form(&other);
    assert_eq!(
        site.post(&cookie, Some(&own), same, &mixed),
        403,
        "another session's token"
    );
    assert_eq!(site.post("", Some(&own), same, &form), 401, "no session");
    assert_eq!(site.done(), 0);
    assert_eq!(site.post(&cookie, Some(&own), same, &form), 303);
    let reason = "enough".to_owned();
    let done = site.room.done.lock().unwrap().clone();
    assert_eq!(done, [RoomCommand::Cancel { reason }]);
}

#[test]
fn a_get_changes_nothing_and_no_connection_is_upgraded() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    let answer = site.get("/r/0123456789abcdef/run_1/cancel", &[("cookie", &cookie)]);
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    let upgrade = [
        ("cookie", cookie.as_str()),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    assert_ne!(
        site.get("/live2", &upgrade).status,
        StatusCode::SWITCHING_PROTOCOLS
    );
    assert_eq!(site.done(), 0);
}

#[test]
fn the_api_takes_tokens_and_never_the_cookie() {
    let good = new_token("good", TokenScope::Read, 0, 2_000_000).unwrap();
    let over = new_token("over", TokenScope::Read, 0, 1_000_000).unwrap();
    assert!(
        !serde_json::to_string(&good.row)
            .unwrap()
            .contains(&good.token)
    );
    let mut site = Site::new(vec![good.row.clone(), over.row.clone()]);
    let cookie = site.enter();
    let path = "/api/v1/repositories";
    let bearer = format!("Bearer {}", good.token);
    assert_eq!(
        site.get(path, &[("authorization", &bearer)]).status,
        StatusCode::OK
    );
    assert_eq!(
        site.get("/", &[("authorization", &bearer)]).status,
        StatusCode::UNAUTHORIZED
    );
    let digest = format!("Bearer {}", good.row.sha256);
    let late = format!("Bearer {}", over.token);
    for (name, headers) in [
        ("the cookie", ("cookie", cookie.as_str())),
        (
            "what is kept of a token",
            ("authorization", digest.as_str()),
        ),
        ("a token that is over", ("authorization", late.as_str())),
        ("an empty one", ("authorization", "Bearer ")),
    ] {
        let answer = site.get(path, &[headers]);
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "application/problem+json",
            "{name}"
        );
    }
}

#[test]
fn text_of_others_is_neutralised_and_escaped() {
    let mut site = Site::new(Vec::new());
    let cookie = site.enter();
    for path in ["/runs", "/r/0123456789abcdef/run_1", "/ground"] {
        let answer = site.get(path, &[("cookie", &cookie)]);
        assert!(
            answer.text.contains("&lt;script&gt;alert(1)"),
            "{path}: {}",
            answer.text
        );
        for raw in ["<script>alert", "\u{1b}", "\u{202e}"] {
            assert!(!answer.text.contains(raw), "{path}: {raw:?}");
        }
    }
}
