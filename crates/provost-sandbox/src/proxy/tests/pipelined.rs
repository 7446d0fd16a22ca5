//! Several requests to a model in the same bytes: each is read for itself, whatever came before it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use provost_core::agent::Adapter;
use provost_core::agent::provider::BaseUrl;

use super::counted::{gauge, read_body};
use super::*;
use crate::proxy::TokenMeter;

const PATH: &str = "/v1/responses";
const REPLY: &str = r#"{"usage":{"input_tokens":7,"output_tokens":9}}"#;
const GRANTED: &str = r#"{"model":"granted","max_output_tokens":9}"#;
const OTHER: &str = r#"{"model":"other","max_output_tokens":9}"#;

/// A model that keeps the bodies it gets.
fn keeping() -> (String, Arc<Mutex<Vec<String>>>) {
    let kept: Arc<Mutex<Vec<String>>> = Arc::default();
    let own = Arc::clone(&kept);
    let place = server(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            own.lock().unwrap().push(read_body(&head, &mut stream));
            if stream.write_all(sized(REPLY).as_bytes()).is_err() {
                return;
            }
        }
    });
    (place.to_string(), kept)
}

/// A stage whose agent may ask one model alone.
fn stage(place: &str) -> (Stage, Arc<TokenMeter>) {
    let mut agent = Adapter::named("codex").and_then(Adapter::plain).unwrap();
    agent.provider.as_mut().unwrap().base_url = BaseUrl::parse(&format!("http://{place}")).unwrap();
    agent.grants.models = Some(vec!["granted".to_owned()]);
    let gauge = Arc::new(TokenMeter::of(&agent).unwrap());
    let own = Arc::clone(&gauge);
    (
        Stage::with(&[place], |outlet| outlet.gauge = Some(own)),
        gauge,
    )
}

/// A request after which the connection stays open.
fn open(first: &str, place: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {first} HTTP/1.1\r\nHost: {place}\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[test]
fn each_of_several_requests_in_the_same_bytes_is_read_for_itself() {
    let (place, kept) = keeping();
    let whole = format!("http://{place}{PATH}");
    let granted = |first: &str| open(first, &place, GRANTED);
    let other = |first: &str| open(first, &place, OTHER);
    let tunnel = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    // The length ends within the body: what follows is a request of its own.
    let short = open(&whole, &place, &format!("{GRANTED}{}", other(&whole)));
    let length = format!("Content-Length: {}\r\n", GRANTED.len());
    let short = short.replacen(
        &format!(
            "Content-Length: {}\r\n",
            GRANTED.len() + other(&whole).len()
        ),
        &length,
        1,
    );
    let chunks = format!(
        "POST {whole} HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{GRANTED}\r\n0\r\n\r\n{}",
        GRANTED.len(),
        other(&whole)
    );
    let cases = [
        ("one", other(&whole), 0),
        (
            "after two others",
            granted(&whole) + &granted(&whole) + &other(&whole),
            2,
        ),
        ("behind a length that is too short", short, 1),
        ("behind the last chunk", chunks, 1),
    ];
    for (name, bytes, passed) in cases {
        kept.lock().unwrap().clear();
        let (stage, gauge) = stage(&place);
        let reply = stage.ask(&bytes);
        assert_eq!(
            reply.matches("HTTP/1.1 200 OK").count(),
            passed,
            "{name}: {reply}"
        );
        assert!(reply.contains("MODEL_REQUEST_REFUSED"), "{name}: {reply}");
        assert_eq!(*kept.lock().unwrap(), vec![GRANTED; passed], "{name}");
        assert_eq!(gauge.passed().requests, passed as u64, "{name}");
        stage.finish();
    }
    // A list of models closes tunnels to the host of the model.
    let (closed, _) = stage(&place);
    kept.lock().unwrap().clear();
    let reply = closed.ask(&(tunnel + &other(PATH)));
    assert!(!reply.contains("\"usage\""), "{reply}");
    assert_eq!(kept.lock().unwrap().len(), 0);
    closed.finish();
}

#[test]
fn nothing_follows_a_request_of_the_older_version() {
    let (place, kept) = keeping();
    let (stage, gauge) = stage(&place);
    let length = GRANTED.len();
    let old = format!("POST http://{place}{PATH} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    let next = open(&format!("http://{place}{PATH}"), &place, OTHER);
    let reply = stage.ask(&format!("{old}{GRANTED}{next}"));
    assert_eq!(reply.matches("HTTP/1.1 ").count(), 1, "{reply}");
    assert_eq!(*kept.lock().unwrap(), [GRANTED]);
    assert_eq!(gauge.passed().requests, 1);
    stage.finish();
}

#[test]
fn a_body_of_a_hundred_megabytes_in_small_chunks_is_refused_at_its_limit() {
    let (place, kept) = keeping();
    let gauge = gauge(&place, None);
    let stage = Stage::with(&[&place], |outlet| outlet.gauge = Some(Arc::clone(&gauge)));
    let mut client = stage.connect();
    let head = format!(
        "POST http://{place}{PATH} HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    client.write_all(head.as_bytes()).unwrap();
    let mut reading = client.try_clone().unwrap();
    let refused = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&refused);
    let reader = thread::spawn(move || {
        let mut reply = Vec::new();
        let _ = reading.read_to_end(&mut reply);
        seen.store(true, Ordering::SeqCst);
        String::from_utf8_lossy(&reply).into_owned()
    });
    let piece = vec![b' '; 32 << 10];
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    let mut sent = 0_usize;
    while sent < 100 << 20 && client.write_all(&chunk).is_ok() {
        sent += piece.len();
        if refused.load(Ordering::SeqCst) {
            break;
        }
    }
    let reply = reader.join().unwrap();
    assert!(reply.contains("413") && reply.contains("16 MiB"), "{reply}");
    assert!(sent < 40 << 20, "{sent} bytes were taken");
    assert_eq!(kept.lock().unwrap().len(), 0);
    stage.finish();
}
