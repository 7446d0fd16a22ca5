//! Traffic to a model is counted and limited, for every client and every form of reply.

use std::sync::atomic::{AtomicU64, Ordering};

use provost_core::agent::Adapter;
use provost_core::agent::event::Usage;
use provost_core::agent::provider::BaseUrl;

use super::*;
use crate::proxy::TokenMeter;

/// A reply of seven tokens read and nine written.
const REPLY: &str = r#"{"usage":{"prompt_tokens":7,"completion_tokens":9}}"#;

/// A request that may cost 17 tokens read and 9 written.
pub(super) const BODY: &str = r#"{"model":"m","max_tokens":9,"max_output_tokens":9}"#;
/// A request without an output limit.
const OPEN: &str = r#"{"model":"m"}"#;

pub(super) fn gauge(place: &str, most: Option<u64>) -> Arc<TokenMeter> {
    let mut agent = Adapter::named("codex").and_then(Adapter::plain).unwrap();
    agent.provider.as_mut().unwrap().base_url = BaseUrl::parse(&format!("http://{place}")).unwrap();
    agent.budget.tokens = most;
    Arc::new(TokenMeter::of(&agent).unwrap())
}

pub(super) fn post(place: &str, path: &str) -> String {
    post_with(place, path, "", BODY)
}

/// A request with further `fields`, each with its line end.
pub(super) fn post_with(place: &str, path: &str, fields: &str, body: &str) -> String {
    format!(
        "POST http://{place}{path} HTTP/1.1\r\nHost: {place}\r\nAccept-Encoding: gzip, br\r\n\
         Content-Length: {}\r\n{fields}Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Reads the body that the head of a request announces, as the proxy forwards it.
pub(super) fn read_body(head: &str, stream: &mut TcpStream) -> String {
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |digits| digits.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

/// A server that sends `reply` after the head and the body of each request.
pub(super) fn model(reply: String) -> SocketAddr {
    server(move |mut stream| {
        let head = read_head(&mut stream).unwrap();
        if head.starts_with("POST") {
            assert!(head.contains("Accept-Encoding: identity\r\n"), "{head}");
            assert!(!head.contains("gzip"), "{head}");
            // If a connection is closed with unread bytes, the client loses the reply.
            read_body(&head, &mut stream);
        }
        // In small parts, none of which is a complete reply.
        for part in reply.as_bytes().chunks(5) {
            if stream.write_all(part).is_err() {
                return;
            }
            let _ = stream.flush();
        }
    })
}

fn chunked(body: &str) -> String {
    let (front, back) = body.split_at(20);
    format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n\
         14\r\n{front}\r\n{:x};x=y\r\n{back}\r\n0\r\n\r\n",
        back.len()
    )
}

#[test]
fn replies_are_counted_however_they_come() {
    let closed = format!("HTTP/1.1 200 OK\r\n\r\n{REPLY}");
    let stream =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {REPLY}\n\n");
    for reply in [sized(REPLY), chunked(REPLY), closed, stream] {
        let place = model(reply.clone()).to_string();
        let gauge = gauge(&place, Some(1000));
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        thread::scope(|scope| {
            // Several at once.
            for _ in 0..4 {
                scope.spawn(|| stage.ask(&post(&place, "/v1/chat/completions")));
            }
        });
        stage.finish();
        let passed = gauge.passed();
        assert_eq!((passed.requests, passed.estimated), (4, 0), "{reply}");
        let usage = Usage {
            input_tokens: 28,
            output_tokens: 36,
            ..Usage::default()
        };
        assert_eq!(passed.usage, usage, "{reply}");
    }
}

#[test]
fn a_reply_that_breaks_off_or_is_compressed_is_estimated() {
    let coded = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 300\r\n\r\n";
    let coded = format!("{coded}{}", "z".repeat(300));
    let broken = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{}",
        "z".repeat(300)
    );
    for reply in [coded, broken] {
        let place = model(reply).to_string();
        let gauge = gauge(&place, None);
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        stage.ask(&post(&place, "/v1/chat/completions"));
        stage.finish();
        let passed = gauge.passed();
        assert_eq!((passed.requests, passed.estimated), (1, 1));
        assert_eq!(passed.usage.output_tokens, 100);
        assert_eq!(passed.usage.input_tokens, 17, "{passed:?}");
    }
}

#[test]
fn nothing_passes_beyond_the_limit_and_nothing_that_cannot_be_counted() {
    let place = model(sized(REPLY)).to_string();
    let gauge = gauge(&place, Some(30));
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    for path in ["/v1/messages/batches", "/v1/files"] {
        let reply = stage.ask(&post(&place, path));
        assert_eq!(status(&reply), "403", "{reply}");
        assert!(reply.contains("TOKEN_LIMIT"), "{reply}");
    }
    // What is encrypted cannot be read.
    let mut tunnel = stage.connect();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    tunnel.write_all(head.as_bytes()).unwrap();
    assert!(read_head(&mut tunnel).unwrap().contains(" 200 "));
    tunnel.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    let mut rest = Vec::new();
    let _ = tunnel.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("usage"));
    assert!(!gauge.is_overspent());
    assert_eq!(status(&stage.ask(&post(&place, "/v1/responses"))), "200");
    assert!(!gauge.is_overspent() || gauge.passed().estimated > 0);
    let refused = stage.ask(&post(&place, "/v1/responses"));
    assert_eq!(status(&refused), "403", "{refused}");
    assert!(refused.contains("tokens of 30"), "{refused}");
    assert!(gauge.is_overspent());
    let lines = stage.finish();
    let tunnel = (
        place.clone(),
        "CONNECT".to_owned(),
        false,
        Code::TokenLimit,
        1,
    );
    assert!(lines.contains(&tunnel), "{lines:?}");
    assert_eq!(gauge.passed().requests, 1);
}

#[test]
fn a_refused_key_and_an_unreachable_place_differ_from_a_busy_model() {
    let busy = "HTTP/1.1 529 Overloaded\r\nContent-Length: 0\r\n\r\n".to_owned();
    let place = model(busy).to_string();
    let busy = gauge(&place, None);
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&busy)));
    for _ in 0..6 {
        stage.ask(&post(&place, "/v1/responses"));
    }
    assert_eq!(busy.passed().trouble, None);
    assert!(busy.note().unwrap().contains("529"));
    let body = r#"{"error":{"message":"no go"}}"#;
    let length = body.len();
    let denied = format!("HTTP/1.1 401 No\r\nContent-Length: {length}\r\n\r\n{body}");
    let place = model(denied).to_string();
    let denied = gauge(&place, None);
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&denied)));
    // A refusal of a request that is not for a model does not count.
    stage.get(&place);
    assert_eq!(denied.passed().trouble, None);
    stage.ask(&post(&place, "/v1/responses"));
    let trouble = denied.passed().trouble.unwrap();
    assert_eq!(trouble.code, Code::ModelUnauthorized);
    assert!(trouble.reason.contains("401 (no go)"), "{}", trouble.reason);
    assert!(
        trouble.reason.contains("$OPENAI_API_KEY"),
        "{}",
        trouble.reason
    );
    let place = "127.0.0.1:9".to_owned();
    let gone = gauge(&place, None);
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gone)));
    let began = Instant::now();
    while gone.passed().trouble.is_none() {
        stage.ask(&post(&place, "/v1/responses"));
        assert!(began.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(100));
    }
    assert!(
        began.elapsed() > Duration::from_secs(1),
        "a moment is no failure"
    );
    assert_eq!(gone.passed().trouble.unwrap().code, Code::ModelUnreachable);
}

#[test]
fn another_model_that_is_granted_counts_too_and_other_places_do_not() {
    let place = model(sized(REPLY)).to_string();
    let other = model(sized(REPLY)).to_string();
    let gauge = gauge(&place, Some(42));
    let grants = [place.as_str(), other.as_str()];
    let stage = Stage::with(&grants, |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    for _ in 0..2 {
        let reply = stage.ask(&post(&other, "/v1/chat/completions"));
        assert_eq!(status(&reply), "200", "{reply}");
    }
    assert_eq!(gauge.passed().usage.tokens(), 32);
    for place in grants {
        let reply = stage.ask(&post(place, "/v1/chat/completions"));
        assert_eq!(status(&reply), "403", "{reply}");
    }
}

/// A model that says `tokens` written in each reply, after a moment, and adds up what it served.
fn slow_model(tokens: u64) -> (String, Arc<AtomicU64>) {
    let served = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&served);
    let body = format!(r#"{{"usage":{{"prompt_tokens":0,"completion_tokens":{tokens}}}}}"#);
    let place = server(move |mut stream| {
        let head = read_head(&mut stream).unwrap();
        read_body(&head, &mut stream);
        sum.fetch_add(tokens, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(100));
        let _ = stream.write_all(sized(&body).as_bytes());
    });
    (place.to_string(), served)
}

#[test]
fn requests_at_once_do_not_pass_the_limit_together() {
    let (place, served) = slow_model(16);
    let gauge = gauge(&place, Some(100));
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| stage.ask(&post(&place, "/v1/chat/completions")));
        }
    });
    stage.finish();
    // Each reserves 26 and costs 16: the fifth began with 64 spent, for a sixth too little is left.
    assert_eq!(served.load(Ordering::SeqCst), 5 * 16);
    assert_eq!(gauge.passed().usage.tokens(), 5 * 16);
    assert_eq!(gauge.passed().refused, 15);
}

#[test]
fn a_request_that_waits_too_long_is_answered_429() {
    let (place, _) = slow_model(16);
    let gauge = gauge(&place, Some(30));
    let stage = Stage::with(&[&place], |outlet| {
        outlet.gauge = Some(Arc::clone(&gauge));
        outlet.patience.turn = Duration::ZERO;
    });
    let replies: Vec<String> = thread::scope(|scope| {
        let ask = || stage.ask(&post(&place, "/v1/chat/completions"));
        let both = [scope.spawn(ask), scope.spawn(ask)];
        both.map(|one| one.join().unwrap()).into()
    });
    let mut statuses: Vec<&str> = replies.iter().map(|reply| status(reply)).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["200", "429"], "{replies:?}");
    let later = replies.iter().find(|it| status(it) == "429").unwrap();
    let body: serde_json::Value =
        serde_json::from_str(later.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["error"]["type"], "rate_limit_exceeded", "{body}");
    assert!(!gauge.is_overspent(), "it may ask again");
}

/// A model that streams `pieces` of three bytes each, as tokens, and then says `tokens` of them.
fn streaming(pieces: usize, tokens: u64) -> (String, Arc<AtomicU64>) {
    let last =
        format!("data: {{\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens}}}}}\n\n");
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"abc\"}}]}\n\n";
    flowing("text/event-stream", piece, pieces, last)
}

/// A model that sends `piece` as often as `times` says, and then `last`; with the pieces sent.
fn flowing(
    kind: &'static str,
    piece: &'static str,
    times: usize,
    last: String,
) -> (String, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let place = server(move |mut stream| {
        let head = read_head(&mut stream).unwrap();
        read_body(&head, &mut stream);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..times {
            if stream.write_all(piece.as_bytes()).is_err() {
                return;
            }
            count.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
        }
        let _ = stream.write_all(last.as_bytes());
    });
    (place.to_string(), sent)
}

#[test]
fn a_client_that_leaves_early_does_not_lower_the_count() {
    let (place, _) = streaming(300, 5000);
    let gauge = gauge(&place, Some(100_000));
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    let mut client = stage.connect();
    let request = post_with(&place, "/v1/chat/completions", "", OPEN);
    client.write_all(request.as_bytes()).unwrap();
    read_head(&mut client).unwrap();
    drop(client);
    let began = Instant::now();
    while gauge.passed().requests == 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(10));
    }
    let passed = gauge.passed();
    assert_eq!((passed.usage.tokens(), passed.estimated), (5001, 0));
    stage.finish();
}

#[test]
fn a_stream_is_cut_when_it_has_used_up_what_is_left() {
    let (place, sent) = streaming(5000, 5000);
    let gauge = gauge(&place, Some(1500));
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    let reply = stage.ask(&post_with(&place, "/v1/chat/completions", "", OPEN));
    let pieces = reply.matches("abc").count();
    assert!(pieces <= 1501, "{pieces}");
    assert!(
        reply.contains("data: {\"error\":"),
        "it ends with an error of the API"
    );
    assert!(reply.contains("TOKEN_LIMIT"), "{pieces}");
    assert!(gauge.is_overspent());
    // The model has less than a second to see that its client is gone.
    thread::sleep(Duration::from_millis(500));
    assert!(sent.load(Ordering::SeqCst) < 5000);
    let refused = stage.ask(&post(&place, "/v1/chat/completions"));
    assert_eq!(status(&refused), "403", "{refused}");
    stage.finish();
}

#[test]
fn a_stream_is_cut_whatever_it_has_reported_and_in_whatever_form_it_comes() {
    // A count in every piece; and a list of pieces in place of events.
    let counting = "data: {\"choices\":[{\"delta\":{\"content\":\"abcabcabc\"}}],\
         \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    let listed = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"abcabcabc\"}]}}]},";
    let cases = [
        ("/v1/chat/completions", "text/event-stream", counting),
        (
            "/v1beta/models/m:streamGenerateContent",
            "application/json",
            listed,
        ),
    ];
    for (path, kind, piece) in cases {
        let (place, sent) = flowing(kind, piece, 4000, String::new());
        let gauge = gauge(&place, Some(1500));
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        let reply = stage.ask(&post_with(&place, path, "", OPEN));
        let pieces = reply.matches("abcabcabc").count();
        assert!(pieces <= 510, "{path}: {pieces}");
        assert!(gauge.is_overspent(), "{path}: {:?}", gauge.passed());
        thread::sleep(Duration::from_millis(500));
        assert!(sent.load(Ordering::SeqCst) < 4000, "{path}");
        stage.finish();
    }
}

#[test]
fn a_complete_reply_without_a_count_costs_at_least_what_was_reserved_for_it() {
    let stream =
        |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{body}");
    let uncounted = [
        sized(r#"{"id":"r1","status":"queued","usage":null}"#),
        sized(
            r#"{"status":"in_progress","usage":{"input_tokens":0,"output_tokens":0,"x":"yyyyy"}}"#,
        ),
        sized(""),
        stream("data: {\"type\":\"response.output_text.delta\",\"delta\":\"abc\"}\n\n"),
        stream("data: {\"type\":\"response.queued\",\"response\":{\"usage\":null}}\n\n"),
    ];
    for reply in uncounted {
        let place = model(reply.clone()).to_string();
        let gauge = gauge(&place, Some(1000));
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        let first = stage.ask(&post(&place, "/v1/responses"));
        assert_eq!(status(&first), "200", "{first}");
        let passed = gauge.passed();
        assert!(passed.usage.tokens() >= 26, "{reply}: {passed:?}");
        assert_eq!(passed.estimated, 1, "{reply}");
        let second = stage.ask(&post(&place, "/v1/responses"));
        assert_eq!(status(&second), "200", "{second}");
        assert!(!gauge.is_overspent());
        stage.finish();
    }
    // What broke off, and what the provider says failed, is estimated by its bytes.
    let broken = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{}",
        "z".repeat(300)
    );
    let failed = stream("data: {\"type\":\"error\",\"error\":{\"message\":\"overloaded\"}}\n\n");
    for reply in [broken, failed] {
        let place = model(reply.clone()).to_string();
        let gauge = gauge(&place, Some(1000));
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        stage.ask(&post(&place, "/v1/responses"));
        stage.finish();
        let passed = gauge.passed();
        assert_eq!(passed.estimated, 1, "{reply}");
        assert!(passed.usage.tokens() < 300, "{reply}: {passed:?}");
    }
}

#[test]
fn under_a_limit_a_model_host_gets_known_calls_only() {
    let place = model(sized(REPLY)).to_string();
    let get = |method: &str, path: &str| {
        format!(
            "{method} http://{place}{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"
        )
    };
    let fetches = [
        ("GET", "/v1/conversations/c1/items"),
        ("GET", "/v1/responses/r1"),
        ("GET", "/v1/files/f1/content"),
        ("GET", "/v1/chat/completions/c1"),
        ("GET", "/v1/conversations/c1/items%3f/models"),
        ("GET", "/"),
        ("OPTIONS", "/v1/responses"),
        ("DELETE", "/v1/responses/r1"),
    ];
    for most in [Some(1000), None] {
        let gauge = gauge(&place, most);
        let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
        for (method, path) in fetches {
            let reply = stage.ask(&get(method, path));
            if most.is_none() {
                assert_eq!(status(&reply), "200", "{method} {path}: {reply}");
                continue;
            }
            assert_eq!(status(&reply), "403", "{method} {path}: {reply}");
            let body = reply.split("\r\n\r\n").nth(1).unwrap();
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["error"]["type"], "permission_error", "{reply}");
            assert!(reply.contains("TOKEN_LIMIT"), "{reply}");
        }
        let models = stage.ask(&get("GET", "/v1/models?limit=5"));
        assert_eq!(status(&models), "200", "{models}");
        assert!(!gauge.is_overspent());
        stage.finish();
    }
}

#[test]
fn no_field_gives_a_request_to_a_model_another_method() {
    let place = model(sized(REPLY)).to_string();
    let other = replies(sized).to_string();
    let ask = |stage: &Stage, place: &str, field: &str| {
        stage.ask(&format!(
            "GET http://{place}/v1/models HTTP/1.1\r\nHost: {place}\r\n{field}: POST\r\n\
             Connection: close\r\n\r\n"
        ))
    };
    for most in [Some(1000), None] {
        let gauge = gauge(&place, most);
        let stage = Stage::with(&[&place, &other], |outlet| {
            outlet.gauge = Some(Arc::clone(&gauge));
        });
        for field in [
            "X-HTTP-Method-Override",
            "x-http-method",
            "X_Method_Override",
        ] {
            let reply = ask(&stage, &place, field);
            assert_eq!(status(&reply), "403", "{field}: {reply}");
            assert!(reply.contains("another method"), "{reply}");
            assert_eq!(status(&ask(&stage, &other, field)), "200");
        }
        stage.finish();
    }
}
