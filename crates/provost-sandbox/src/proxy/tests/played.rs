//! What models answered is kept where the user wants it, and given again without a network.

use std::sync::atomic::{AtomicUsize, Ordering};

use provost_core::secret::Known;
use provost_model_record::playback::{Playback, SealedRequest};
use provost_model_record::store::{self, BodyStore};

use super::counted::{gauge, post_with, read_body};
use super::*;

const PATH: &str = "/v1/responses";
const ASKED: &str = r#"{"model":"m-1","max_output_tokens":500,"input":"say it"}"#;
const SECRET: &str = "quince-secret-4711";

/// A model that sends `reply` and counts its requests.
fn model(reply: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let hits: Arc<AtomicUsize> = Arc::default();
    let own = Arc::clone(&hits);
    let address = server(move |mut stream| {
        if let Some(head) = read_head(&mut stream) {
            read_body(&head, &mut stream);
            own.fetch_add(1, Ordering::SeqCst);
            // In small pieces, which part characters and events.
            for piece in reply.chunks(5) {
                if stream.write_all(piece).is_err() {
                    return;
                }
            }
        }
    });
    (address.to_string(), hits)
}

/// The answer to one request for `PATH` at `place`, recorded below `directory`.
fn recorded(place: &str, directory: &std::path::Path) -> (String, Vec<SealedRequest>) {
    let known = Known::new([("TOKEN", SECRET)]);
    let file = tempfile::tempfile().unwrap();
    let store = BodyStore::open(directory, "rows", store::MOST).unwrap();
    let meter = Arc::into_inner(gauge(place, None)).unwrap();
    let meter = Arc::new(meter.with_log(file, known).with_bodies(store));
    let stage = Stage::with(&[place], |outlet| outlet.gauge = Some(meter));
    let answer = stage.ask(&post_with(place, PATH, "", ASKED));
    stage.finish();
    let exchanges = store::exchanges(directory, "rows").unwrap();
    let sealed = exchanges.iter().map(|it| SealedRequest {
        number: it.reservation.unwrap(),
        digests: Some([it.request.sha256.clone(), it.answer.body.sha256.clone()]),
    });
    (answer, sealed.collect())
}

fn content(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn playing(place: &str, directory: &std::path::Path, sealed: &[SealedRequest]) -> Stage {
    let known = Known::default();
    let playback = Playback::load(directory, "rows", sealed, known).unwrap();
    Stage::with(&[place], |outlet| {
        outlet.playback = Some(Arc::new(playback));
    })
}

#[test]
fn a_stream_is_given_again_byte_by_byte_and_nothing_is_reached() {
    let events = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"grüße 🦀\"}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5,\
        \"output_tokens\":3}}}\n\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: r1\r\n\
        Set-Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut reply = head.as_bytes().to_vec();
    for piece in events.as_bytes().chunks(31) {
        reply.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        reply.extend_from_slice(piece);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(b"0\r\n\r\n");
    let (place, hits) = model(reply);
    let directory = tempfile::tempdir().unwrap();
    let (_, sealed) = recorded(&place, directory.path());
    assert_eq!(hits.load(Ordering::SeqCst), 1);

    let stage = playing(&place, directory.path(), &sealed);
    let again = stage.ask(&post_with(&place, PATH, "", ASKED));
    assert_eq!(status(&again), "200", "{again}");
    assert_eq!(content(&again), events);
    assert!(again.contains("content-type: text/event-stream"), "{again}");
    assert!(
        again.contains("x-request-id: r1") && !again.contains("a=b"),
        "{again}"
    );
    // Its only answer was given, and the model is there.
    let twice = stage.ask(&post_with(&place, PATH, "", ASKED));
    assert_eq!(status(&twice), "403", "{twice}");
    assert!(twice.contains("REPLAY_DIFFERS"), "{twice}");
    for other in [
        stage.get(&place),
        stage.ask(&format!(
            "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n\x16\x03\x01"
        )),
        stage.ask(&post_with(&place, "/v1/files", "", ASKED)),
    ] {
        assert!(!other.contains("200 OK"), "{other}");
    }
    assert_eq!(hits.load(Ordering::SeqCst), 1, "the model was reached");
    let lines = stage.finish();
    assert!(
        lines.iter().any(|line| line.3 == Code::NetworkRefused),
        "{lines:?}"
    );
}

#[test]
fn an_answer_that_broke_off_breaks_off_again() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"half\":";
    let (place, _) = model(begun.as_bytes().to_vec());
    let directory = tempfile::tempdir().unwrap();
    let (_, sealed) = recorded(&place, directory.path());
    let stage = playing(&place, directory.path(), &sealed);
    let again = stage.ask(&post_with(&place, PATH, "", ASKED));
    assert_eq!(content(&again), "{\"half\":");
    assert!(again.contains("Content-Length: 9"), "{again}");
    stage.finish();
}

#[test]
fn a_secret_in_an_answer_is_not_kept_and_the_record_says_so() {
    let reply = sized(&format!("{{\"text\":\"{SECRET}\"}}"));
    let reply = reply.replacen("\r\n", &format!("\r\nX-Echo: {SECRET}\r\n"), 1);
    let (place, _) = model(reply.into_bytes());
    let directory = tempfile::tempdir().unwrap();
    let (answer, sealed) = recorded(&place, directory.path());
    assert!(answer.contains(SECRET));
    let exchange = &store::exchanges(directory.path(), "rows").unwrap()[0];
    assert_eq!(exchange.answer.body.removed, 2, "the body and the field");
    let body = store::read(directory.path(), &exchange.answer.body).unwrap();
    assert!(!String::from_utf8(body).unwrap().contains(SECRET));
    assert!(!format!("{exchange:?}").contains(SECRET));
    let problems = Playback::load(directory.path(), "rows", &sealed, Known::default());
    assert_eq!(
        problems.unwrap_err(),
        ["answer 1 held 2 secrets, and is not kept whole"]
    );
}
