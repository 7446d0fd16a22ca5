//! The guarantees of the parser of HTTP messages, whatever the bytes are.
//!
//! The fuzz target and the replay of its corpus share this function.

use provost_core::net::credential::Transport;
use provost_core::net::endpoint::Endpoint;
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
