//! The guarantees of the readers of HTTP messages, of requests to models and of streams of events,
//! whatever the bytes are.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use provost_core::net::credential::Transport;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::ModelApi;
use provost_sandbox::proxy::gateway;
use provost_sandbox::proxy::gateway::events::EventReader;
use provost_sandbox::proxy::http::field::LONGEST_HEAD;
use provost_sandbox::proxy::http::framing::Framing;
use provost_sandbox::proxy::http::{reply, request};

/// A message to or from the proxy has one reading, whatever follows it and however it is split.
pub(crate) fn message(bytes: &[u8]) {
    if let Ok(Some((request, length))) = request::parse(bytes) {
        assert!(length <= bytes.len() && length <= LONGEST_HEAD);
        let alone = request::parse(&bytes[..length]);
        assert_eq!(alone, Ok(Some((request.clone(), length))));
        assert!(!matches!(request::parse(&bytes[..length - 1]), Ok(Some(_))));
        let place = request.target.to_string();
        assert_eq!(Endpoint::parse(&place).as_ref(), Ok(&request.target));
        let head = request.render(Transport::Plain, &[("X-Key", "secret")]);
        let head = String::from_utf8_lossy(&head);
        let lines: Vec<&str> = head
            .strip_suffix("\r\n\r\n")
            .unwrap()
            .split("\r\n")
            .collect();
        assert!(
            lines
                .iter()
                .all(|line| !line.is_empty() && !line.contains(['\r', '\n']))
        );
        let named = |name: &str| {
            let name = format!("{name}:");
            let starts = |line: &&&str| line.to_ascii_lowercase().starts_with(&name);
            lines.iter().skip(1).filter(starts).count()
        };
        assert_eq!(
            (named("host"), named("x-key"), named("proxy-authorization")),
            (1, 1, 0)
        );
        assert!(named("content-length") + named("transfer-encoding") <= 1);
    }
    for method in ["GET", "HEAD"] {
        if let Ok(Some((reply, length))) = reply::parse(bytes, method) {
            assert!(length <= bytes.len());
            let head = reply.render(true);
            let again = reply::parse(&head, method).unwrap().unwrap();
            assert_eq!((again.0.status, again.1), (reply.status, head.len()));
        }
    }
    let (mut whole, mut pieces) = (Framing::chunked(), Framing::chunked());
    let (front, back) = bytes.split_at(bytes.len() / 2);
    let at_once = whole.advance(bytes);
    let in_two = pieces
        .advance(front)
        .and_then(|taken| Ok(taken + pieces.advance(back)?));
    assert_eq!(at_once, in_two);
}

/// A request to a model has one reading, and a lowered output limit changes nothing else of it.
fn model_request(api: ModelApi, bytes: &[u8]) {
    let path = "/v1beta/models/m:generateContent";
    let Ok(request) = gateway::request::read(api, path, bytes) else {
        return;
    };
    assert!(!request.model.is_empty() && request.answers > 0);
    let lowered = gateway::with_output_limit(api, bytes, 7);
    assert_eq!(lowered.is_some(), request.output_limit.is_some());
    if let Some(lowered) = lowered {
        let mut again = gateway::request::read(api, path, &lowered).unwrap();
        assert_eq!(again.output_limit, Some(7));
        again.output_limit = request.output_limit;
        assert_eq!(again, request);
    }
}

pub(crate) fn model_messages(bytes: &[u8]) {
    model_request(ModelApi::Messages, bytes);
}

pub(crate) fn model_responses(bytes: &[u8]) {
    model_request(ModelApi::Responses, bytes);
}

pub(crate) fn model_chat(bytes: &[u8]) {
    model_request(ModelApi::Chat, bytes);
}

pub(crate) fn model_content(bytes: &[u8]) {
    model_request(ModelApi::Content, bytes);
}

/// Events do not depend on how a stream is split.
pub(crate) fn model_events(bytes: &[u8]) {
    let read = |size: usize| {
        let mut events: Vec<Vec<u8>> = Vec::new();
        let mut reader = EventReader::default();
        for piece in bytes.chunks(size) {
            reader.push(piece, &mut |data| events.push(data.to_vec()));
        }
        reader.finish(&mut |data| events.push(data.to_vec()));
        events
    };
    let whole = read(bytes.len().max(1));
    assert!(whole.iter().map(Vec::len).sum::<usize>() <= bytes.len());
    for size in [1, 2, 3, 7] {
        assert_eq!(read(size), whole, "in pieces of {size}");
    }
}
