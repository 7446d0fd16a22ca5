//! Requests to a model are read before they are forwarded, whatever form they come in.

use std::sync::Mutex;

use provost_core::agent::provider::BaseUrl;
use provost_core::agent::{Adapter, Budget, SpendLimits};

use super::counted::{BODY, gauge, model, post, post_with, read_body};
use super::*;
use crate::proxy::TokenMeter;
use crate::proxy::gateway::budget::{Amount, Grant};
use crate::proxy::gateway::spend_book::{SpendBook, SpendRow};

const MESSAGES: &str = "/v1/messages";
const REPLY: &str = r#"{"usage":{"input_tokens":7,"output_tokens":9}}"#;

/// A model that keeps the requests it gets, head and body.
fn keeping() -> (String, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&kept);
    let place = server(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let body = read_body(&head, &mut stream);
            own.lock().unwrap().push(format!("{head}{body}"));
            if stream.write_all(sized(REPLY).as_bytes()).is_err() {
                return;
            }
        }
    });
    (place.to_string(), kept)
}

fn meter(place: &str, set: impl FnOnce(&mut provost_core::agent::Adapted)) -> Arc<TokenMeter> {
    let mut agent = Adapter::named("claude").and_then(Adapter::plain).unwrap();
    agent.provider.as_mut().unwrap().base_url = BaseUrl::parse(&format!("http://{place}")).unwrap();
    set(&mut agent);
    Arc::new(TokenMeter::of(&agent).unwrap())
}

fn stage(place: &str, gauge: &Arc<TokenMeter>) -> Stage {
    Stage::with(&[place], |outlet| outlet.gauge = Some(Arc::clone(gauge)))
}

#[test]
fn what_cannot_be_read_is_refused_in_the_form_of_the_api_and_reaches_no_model() {
    let (place, kept) = keeping();
    let gauge = meter(&place, |_| {});
    let stage = stage(&place, &gauge);
    let plain = "http".to_owned() + "://" + &place;
    let chunks = |body: &str| {
        format!(
            "POST {plain}{MESSAGES} HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\
             \r\n{body}"
        )
    };
    let announced = post_with(&place, MESSAGES, "", BODY);
    let large = announced.replace("Content-Length: 50", "Content-Length: 104857600");
    assert_ne!(large, announced);
    let cases = [
        (
            post_with(&place, MESSAGES, "Content-Encoding: gzip\r\n", BODY),
            "415",
        ),
        (
            post_with(&place, MESSAGES, "Content-Encoding: zstd\r\n", BODY),
            "415",
        ),
        (
            post_with(&place, MESSAGES, "Content_Encoding: deflate\r\n", BODY),
            "415",
        ),
        (
            post_with(
                &place,
                MESSAGES,
                "Content-Type: application/json; charset=utf-7\r\n",
                BODY,
            ),
            "415",
        ),
        (
            post_with(
                &place,
                MESSAGES,
                "Content-Type: multipart/form-data\r\n",
                BODY,
            ),
            "415",
        ),
        (
            post_with(&place, MESSAGES, "", "{\"model\":\"a\",\"model\":\"b\"}"),
            "400",
        ),
        (post_with(&place, MESSAGES, "", "abc"), "400"),
        (post_with(&place, MESSAGES, "", ""), "400"),
        (large, "413"),
        (post_with(&place, MESSAGES, "", &"[".repeat(5000)), "400"),
        (chunks("3\r\nabcd\r\n0\r\n\r\n"), "400"),
        (chunks("ffffffffffff\r\n{}"), "413"),
    ];
    for (request, want) in cases {
        let begin: String = request.chars().take(300).collect();
        let reply = stage.ask(&request);
        assert_eq!(status(&reply), want, "{begin}: {reply}");
        let body = reply.split("\r\n\r\n").nth(1).unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["type"], "permission_error", "{reply}");
        assert!(reply.contains("MODEL_REQUEST_REFUSED"), "{reply}");
    }
    // Two lengths are refused before anything else.
    let both = "Transfer-Encoding: chunked\r\n";
    let reply = stage.ask(&post_with(&place, MESSAGES, both, BODY));
    assert_eq!(status(&reply), "400", "{reply}");
    assert!(kept.lock().unwrap().is_empty());
    assert_eq!(gauge.passed().requests, 0);
}

#[test]
fn a_body_arrives_unchanged_however_the_client_sends_it() {
    let (place, kept) = keeping();
    let gauge = meter(&place, |_| {});
    let stage = stage(&place, &gauge);
    let address = format!("POST http://{place}{MESSAGES}");
    let (front, back) = BODY.split_at(11);
    let chunked = format!(
        "{address} HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\nb\r\n{front}\r\n{:x}\r\n{back}\r\n0\r\nX: y\r\n\r\n",
        back.len()
    );
    let length = BODY.len();
    let old = format!("{address} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{BODY}");
    let expecting = post_with(&place, MESSAGES, "Expect: 100-continue\r\n", BODY);
    let typed = "content-type: Application/JSON; charset=\"UTF-8\"\r\n";
    let typed = post_with(&place, MESSAGES, typed, BODY);
    for request in [chunked, old, expecting, typed] {
        let reply = stage.ask(&request);
        let ok = reply.contains("HTTP/1.1 200") && reply.contains("output_tokens");
        assert!(ok, "{request}: {reply}");
        let got = kept.lock().unwrap().pop().unwrap();
        let (head, body) = got.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, BODY);
        assert!(
            head.contains(&format!("Content-Length: {length}")),
            "{head}"
        );
        let framed = head.to_ascii_lowercase();
        assert!(!framed.contains("transfer-encoding") && !framed.contains("expect"));
    }
    // Two requests at once on one connection, and one of them is refused.
    let one = |body: &str| {
        format!(
            "{address} HTTP/1.1\r\nHost: {place}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let three = [one(BODY), one(BODY), one("[]"), one(BODY)].concat();
    let reply = stage.ask(&three);
    assert_eq!(reply.matches("HTTP/1.1 200").count(), 2, "{reply}");
    assert_eq!(reply.matches("HTTP/1.1 400").count(), 1, "{reply}");
    assert_eq!(kept.lock().unwrap().len(), 2);
    assert_eq!(gauge.passed().requests, 6);
}

#[test]
fn an_output_limit_beyond_the_budget_is_lowered_and_nothing_else_changes() {
    let (place, kept) = keeping();
    let gauge = meter(&place, |agent| agent.budget.tokens = Some(20_000));
    let stage = stage(&place, &gauge);
    let body = |limit: u64| {
        format!("{{ \"model\":\"m\", \"max_tokens\" : {limit},\"x\":[1.0,\"\\u0041\"]}}")
    };
    let reply = stage.ask(&post_with(&place, MESSAGES, "", &body(128_000)));
    assert_eq!(status(&reply), "200", "{reply}");
    let got = kept.lock().unwrap().pop().unwrap();
    let lowered = 20_000 - (body(128_000).len() as u64 * 334).div_ceil(1000);
    assert!(got.ends_with(&body(lowered)), "{got}");
    stage.ask(&post_with(&place, MESSAGES, "", &body(500)));
    assert!(kept.lock().unwrap().pop().unwrap().ends_with(&body(500)));
    // Thoughts need their room, and 1024 more.
    let thinking = r#"{"model":"m","max_tokens":32000,"thinking":{"budget_tokens":19500}}"#;
    let reply = stage.ask(&post_with(&place, MESSAGES, "", thinking));
    assert_eq!(status(&reply), "403", "{reply}");
    assert!(
        reply.contains("TOKEN_LIMIT") && reply.contains("tokens of 20000"),
        "{reply}"
    );
    assert!(gauge.is_overspent() && kept.lock().unwrap().is_empty());
}

#[test]
fn what_a_provider_reports_beyond_a_reservation_is_recorded_and_blocks_the_next() {
    let reply = r#"{"usage":{"input_tokens":7,"output_tokens":5000}}"#;
    let place = model(sized(reply)).to_string();
    let gauge = gauge(&place, Some(100));
    let stage = stage(&place, &gauge);
    assert_eq!(status(&stage.ask(&post(&place, "/v1/responses"))), "200");
    assert_eq!(gauge.passed().overshoot, 5007 - 26);
    assert!(gauge.is_overspent());
    assert_eq!(status(&stage.ask(&post(&place, "/v1/responses"))), "403");
}

#[test]
fn money_is_counted_by_kind_and_a_model_without_a_price_is_refused_under_a_limit_of_money() {
    let (place, kept) = keeping();
    let gauge = meter(&place, |agent| agent.budget.micro_usd = Some(50_000));
    let stage = stage(&place, &gauge);
    let known = r#"{"model":"claude-sonnet-4-5","max_tokens":100}"#;
    let reply = stage.ask(&post_with(&place, MESSAGES, "", known));
    assert_eq!(status(&reply), "200", "{reply}");
    assert_eq!(gauge.passed().usage.micro_usd, 7 * 3 + 9 * 15);
    let unknown = stage.ask(&post_with(&place, MESSAGES, "", BODY));
    assert_eq!(status(&unknown), "403", "{unknown}");
    assert!(
        unknown.contains("price") && unknown.contains("max_tokens"),
        "{unknown}"
    );
    assert!(!gauge.is_overspent());
    assert_eq!(kept.lock().unwrap().len(), 1);
}

#[test]
fn a_list_of_models_or_tools_binds_and_closes_tunnels_and_other_paths() {
    let (place, kept) = keeping();
    let gauge = meter(&place, |agent| {
        agent.grants.models = Some(vec!["m".to_owned()]);
        agent.grants.tools = Some(vec!["known".to_owned()]);
    });
    let stage = stage(&place, &gauge);
    let ask = |body: &str| stage.ask(&post_with(&place, MESSAGES, "", body));
    assert_eq!(
        status(&ask(r#"{"model":"m","tools":[{"name":"Bash"}]}"#)),
        "200"
    );
    for body in [
        r#"{"model":"other"}"#,
        r#"{"model":"m","tools":[{"name":"Agent"}]}"#,
        r#"{"model":"m","tools":[{"type":"namespace","name":"g","tools":[{"name":"Bash"}]}]}"#,
        r#"{"model":"m","mcp_servers":[{"url":"http://x"}]}"#,
    ] {
        let reply = ask(body);
        assert_eq!(status(&reply), "403", "{body}: {reply}");
        assert!(reply.contains("grants it"), "{reply}");
    }
    let other = stage.ask(&post_with(&place, "/v1/files", "", BODY));
    assert_eq!(status(&other), "403", "{other}");
    let mut tunnel = stage.connect();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    tunnel.write_all(head.as_bytes()).unwrap();
    read_head(&mut tunnel).unwrap();
    tunnel.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    let mut rest = Vec::new();
    let _ = tunnel.read_to_end(&mut rest);
    assert_eq!(kept.lock().unwrap().len(), 1);
    let lines = stage.finish();
    let refused = |line: &&(String, String, bool, Code, u64)| line.3 == Code::ModelRequestRefused;
    // Each has a line of its own, because each names another line that grants it.
    assert_eq!(lines.iter().filter(refused).count(), 4, "{lines:?}");
}

#[test]
fn requests_run_at_once_while_the_budget_covers_all_of_them() {
    let slow = server(|mut stream| {
        let head = read_head(&mut stream).unwrap();
        read_body(&head, &mut stream);
        thread::sleep(Duration::from_millis(400));
        let _ = stream.write_all(sized(REPLY).as_bytes());
    });
    let place = slow.to_string();
    let gauge = gauge(&place, Some(10_000));
    let stage = stage(&place, &gauge);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| stage.ask(&post(&place, "/v1/responses")));
        }
    });
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(gauge.passed().usage.tokens(), 20 * 16);
}

#[test]
fn nothing_is_learned_that_makes_a_reservation_smaller() {
    let reply = r#"{"usage":{"input_tokens":1,"output_tokens":1}}"#;
    for answer in [
        sized(reply),
        sized("{}").replacen("200 OK", "400 Bad Request", 1),
    ] {
        let place = model(answer).to_string();
        let gauge = meter(&place, |agent| agent.budget.tokens = Some(10_000));
        let stage = stage(&place, &gauge);
        let body = |count: usize| {
            let blanks = " ".repeat(count);
            format!(r#"{{"model":"m",{blanks}"max_tokens":16}}"#)
        };
        stage.ask(&post_with(&place, MESSAGES, "", &body(20_000)));
        let reply = stage.ask(&post_with(&place, MESSAGES, "", &body(40_000)));
        assert_eq!(status(&reply), "403", "{reply}");
    }
}

/// A book in which nothing was spent.
#[derive(Debug)]
struct EmptyBook;

impl SpendBook for EmptyBook {
    fn reserve(
        &self,
        _: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> std::io::Result<Option<SpendRow>> {
        choose(Grant::default());
        Ok(None)
    }

    fn settle(&self, _: &SpendRow, _: Amount, _: bool) {}
}

#[test]
fn a_limit_of_all_agents_refuses_what_cannot_be_counted() {
    let body = r#"{"model":"m","previous_response_id":"r"}"#;
    let day = Budget {
        tokens: Some(1_000_000),
        micro_usd: None,
    };
    let limited = SpendLimits {
        day,
        ..SpendLimits::default()
    };
    for (limits, want) in [(SpendLimits::default(), "200"), (limited, "403")] {
        let (place, _) = keeping();
        let gauge = Arc::into_inner(meter(&place, |_| {})).unwrap();
        let gauge = Arc::new(gauge.with_book(Arc::new(EmptyBook), limits));
        let stage = stage(&place, &gauge);
        let reply = stage.ask(&post_with(&place, "/v1/responses", "", body));
        assert_eq!(status(&reply), want, "{reply}");
    }
}
