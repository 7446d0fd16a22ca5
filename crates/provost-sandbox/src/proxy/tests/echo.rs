//! Requests that a server could answer with the request itself.

use provost_core::code::Code;
use provost_core::net::credential::Credential;

use super::{Stage, replies, sized, status};
use crate::proxy::Secret;

#[test]
fn what_a_server_would_send_back_goes_out_without_a_secret_or_not_at_all() {
    let place = replies(sized).to_string();
    let other = replies(sized).to_string();
    let stage = Stage::with(&[&place, &other], |outlet| {
        let credential = format!("http://{place} Authorization: Bearer $NAME");
        let credential = Credential::parse(&credential).unwrap();
        outlet
            .secrets
            .push(Secret::of(credential, "s3cret").unwrap());
    });
    let tunnel = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    let cases = [
        ("TRACE", ""),
        ("trace", ""),
        ("TRACK", ""),
        ("DEBUG", ""),
        ("connect", ""),
        ("GET", "Max-Forwards: 0\r\n"),
        ("OPTIONS", "max-forwards: 1\r\n"),
        ("POST", "X-HTTP-Method-Override: TRACE\r\n"),
        ("GET", "X-Method-Override: trace\r\n"),
        ("POST", "X_HTTP_Method_Override: TRACE\r\n"),
        ("GET", "X-HTTP-Method-Override: POST\r\n"),
    ];
    let tail = |place: &str, fields: &str| {
        format!("HTTP/1.1\r\nHost: {place}\r\n{fields}Connection: close\r\n\r\n")
    };
    for (method, fields) in cases {
        let reply = stage.ask(&format!(
            "{method} http://{place}/ {}",
            tail(&place, fields)
        ));
        assert_eq!(status(&reply), "403", "{method} {fields}: {reply}");
        assert!(!reply.contains("s3cret"), "{reply}");
        let within = stage.ask(&format!("{tunnel}{method} / {}", tail(&place, fields)));
        assert!(!within.contains("s3cret"), "{within}");
        // In a tunnel only what looks like a method is read; the rest gets no secret.
        let is_read = method.starts_with(|first: char| first.is_ascii_uppercase());
        assert_eq!(within.contains("403 Forbidden"), is_read, "{within}");
        // Where no secret is added, such a request is like any other.
        let free = stage.ask(&format!(
            "{method} http://{other}/ {}",
            tail(&other, fields)
        ));
        assert_eq!(status(&free), "200", "{method} {fields}: {free}");
    }
    let fields = "X-HTTP-Method-Override: PATCH\r\n";
    let reply = stage.ask(&format!("POST http://{place}/ {}", tail(&place, fields)));
    assert!(reply.contains("Bearer s3cret"), "{reply}");
    let refused = (place, "TRACE".to_owned(), false, Code::NetworkRefused, 2);
    let traffic = stage.finish();
    assert!(traffic.contains(&refused), "{traffic:?}");
}
