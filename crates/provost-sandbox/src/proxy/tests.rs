//! A proxy between sockets of this process. `tests/sandboxes` test it from inside a sandbox.

mod counted;
mod echo;
mod encrypted;
mod gateway;
mod interleaved;
mod login;
mod pipelined;
mod played;
mod settled;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::net::credential::Credential;
use provost_core::net::endpoint::{Endpoint, Name};
use provost_core::net::traffic::Traffic;

use super::timeouts::Stop;
use super::{Outlet, Proxy, Resolve, ResolveError, Secret, Timeouts};

/// A resolver that knows only these names.
#[derive(Debug, Default)]
struct FixedNames(BTreeMap<String, Vec<IpAddr>>);

impl Resolve for FixedNames {
    fn resolve(&self, name: &Name, _: Duration, _: &Stop) -> Result<Vec<IpAddr>, ResolveError> {
        self.0
            .get(name.as_str())
            .cloned()
            .ok_or(ResolveError::Unknown)
    }
}

/// Starts a server that serves each connection by `serve`; returns its address.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A server that reads one head after the other and replies with `reply`.
fn replies(reply: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    server(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if stream.write_all(reply(&head).as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).ok()? == 1).then(|| head.push(byte[0]))?;
    }
    String::from_utf8(head).ok()
}

fn sized(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

struct Stage {
    proxy: Proxy,
    address: SocketAddr,
}

impl Stage {
    fn new(grants: &[&str]) -> Self {
        Self::with(grants, |_| {})
    }

    fn with(grants: &[&str], change: impl FnOnce(&mut Outlet)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let grants = grants.iter().map(|text| Endpoint::parse(text).unwrap());
        let mut outlet = Outlet {
            resolver: Arc::new(FixedNames::default()),
            ..Outlet::default()
        };
        change(&mut outlet);
        let proxy = Proxy::start(listener, grants.collect(), outlet).unwrap();
        Self { proxy, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// Everything that the proxy sends back for `text`.
    fn ask(&self, text: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    }

    /// The reply to a single request.
    fn get(&self, place: &str) -> String {
        self.ask(&format!(
            "GET http://{place}/x HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"
        ))
    }

    fn finish(self) -> Vec<(String, String, bool, Code, u64)> {
        let line = |line: Traffic| (line.target, line.method, line.allow, line.code, line.count);
        self.proxy.finish().into_iter().map(line).collect()
    }
}

fn status(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or(reply)
}

#[test]
fn a_granted_place_answers_and_any_other_is_refused_and_counted() {
    let place = replies(sized).to_string();
    let other = replies(|_| sized("never")).to_string();
    let stage = Stage::new(&[&place]);
    let reply = stage.get(&place);
    assert_eq!(status(&reply), "200");
    let passed = format!("GET /x HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    assert!(reply.ends_with(&passed), "{reply}");
    for _ in 0..2 {
        let reply = stage.get(&other);
        assert_eq!(status(&reply), "403");
        assert!(reply.contains(&format!("NETWORK_REFUSED: `{other}` is not granted")));
        assert!(reply.contains(&format!("--net {other}")));
    }
    assert_eq!(status(&stage.get("example.com")), "403");
    let mut want = vec![
        (place, "GET".to_owned(), true, Code::Ok, 1),
        (other, "GET".to_owned(), false, Code::NetworkRefused, 2),
        (
            "example.com:80".to_owned(),
            "GET".to_owned(),
            false,
            Code::NetworkRefused,
            1,
        ),
    ];
    want.sort();
    assert_eq!(stage.finish(), want);
}

#[test]
fn a_tunnel_carries_bytes_both_ways_and_half_of_it_can_close() {
    let place = server(|mut stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stream.write_all(text.to_uppercase().as_bytes()).unwrap();
    });
    let stage = Stage::new(&[&place.to_string()]);
    let mut stream = stage.connect();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\nearly ");
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut stream).unwrap()), "200");
    let long = "more".repeat(100_000);
    stream.write_all(long.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, format!("EARLY {}", long.to_uppercase()));
    let want = (place.to_string(), "CONNECT".to_owned(), true, Code::Ok, 1);
    assert_eq!(stage.finish(), [want]);
}

#[test]
fn a_name_is_dialled_at_the_address_that_was_checked() {
    let port = replies(|_| sized("here")).port();
    let names = |outlet: &mut Outlet| {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let names = ["inner.test", "granted.test"].map(|name| (name.to_owned(), vec![loopback]));
        outlet.resolver = Arc::new(FixedNames(names.into()));
    };
    let inner = format!("inner.test:{port}");
    let stage = Stage::with(&[&inner, &format!("nowhere.test:{port}")], names);
    let reply = stage.get(&inner);
    assert_eq!(status(&reply), "403");
    assert!(reply.contains("loopback address 127.0.0.1"), "{reply}");
    assert_eq!(status(&stage.get(&format!("nowhere.test:{port}"))), "502");
    // What is not granted is not resolved.
    assert_eq!(status(&stage.get(&format!("granted.test:{port}"))), "403");
    let stage = Stage::with(&[&inner, &format!("127.0.0.1:{port}")], names);
    assert!(stage.get(&inner).ends_with("here"));
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let one = replies(|head| sized(head.split(' ').nth(1).unwrap())).to_string();
    let two = replies(|_| sized("two")).to_string();
    let stage = Stage::new(&[&one, &two]);
    // Three at once, as from a client that does not wait: each is checked on its own.
    let ask = |place: &str, path: &str| {
        format!("GET http://{place}{path} HTTP/1.1\r\nHost: {place}\r\n\r\n")
    };
    let reply = stage.ask(
        &[
            ask(&one, "/a"),
            ask(&one, "/b"),
            ask(&two, "/c"),
            ask("10.9.8.7", "/d"),
            ask(&one, "/never"),
        ]
        .concat(),
    );
    let bodies: Vec<&str> = reply
        .split("HTTP/1.1 ")
        .filter_map(|part| part.split("\r\n\r\n").nth(1))
        .collect();
    assert_eq!(bodies[..3], ["/a", "/b", "two"]);
    assert!(bodies[3].starts_with("NETWORK_REFUSED"));
    assert_eq!(bodies.len(), 4, "{reply}");
}

#[test]
fn bodies_are_passed_on_whole_and_nothing_after_them() {
    let place = server(|mut stream| {
        let head = read_head(&mut stream).unwrap();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        let length = if head.contains("chunked") { 15 } else { 5 };
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let text = String::from_utf8(body).unwrap();
        stream.write_all(sized(&text).as_bytes()).unwrap();
    })
    .to_string();
    let stage = Stage::new(&[&place]);
    for (field, body) in [
        ("Content-Length: 5", "hello"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let mut stream = stage.connect();
        let head = format!(
            "POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\nExpect: 100-continue\r\n\
             Connection: close\r\n{field}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(status(&read_head(&mut stream).unwrap()), "100");
        stream
            .write_all(format!("{body}GET /smuggled HTTP/1.1\r\n\r\n").as_bytes())
            .unwrap();
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        assert!(reply.ends_with(&format!("\r\n\r\n{body}")), "{reply}");
    }
    let chunks = format!(
        "POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n\r\nzz"
    );
    assert!(stage.ask(&chunks).contains("400 Bad Request"));
}

#[test]
fn a_reply_ends_where_it_says_or_with_its_connection() {
    let cases = [
        ("HTTP/1.0 200 OK\r\n\r\nall", "all"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nrest",
            "1\r\na\r\n0\r\n\r\n",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", "ab"),
        ("HTTP/1.1 204 No Content\r\n\r\nabc", ""),
    ];
    for (reply, want) in cases {
        let place = server(move |mut stream| {
            read_head(&mut stream);
            let _ = stream.write_all(reply.as_bytes());
        })
        .to_string();
        let got = Stage::new(&[&place]).get(&place);
        assert_eq!(got.split_once("\r\n\r\n").unwrap().1, want, "{reply}");
    }
}

#[test]
fn what_does_not_answer_properly_is_an_answer_at_once() {
    let silent = server(|_| {}).to_string();
    let nonsense = replies(|_| "SSH-2.0-x\r\n\r\n".to_owned()).to_string();
    let upgrade = replies(|_| "HTTP/1.1 101 Switching\r\n\r\n".to_owned()).to_string();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let places = [silent, nonsense, upgrade, closed];
    let stage = Stage::new(&places.each_ref().map(String::as_str));
    for place in &places {
        let reply = stage.get(place);
        assert_eq!(status(&reply), "502", "{reply}");
        assert!(reply.contains("NETWORK_UNREACHABLE"), "{reply}");
    }
    for line in stage.finish() {
        assert!(line.2 && line.3 == Code::NetworkUnreachable, "{line:?}");
    }
}

#[test]
fn what_is_malformed_is_refused_and_counted() {
    let stage = Stage::new(&["a.example:80"]);
    let long = format!(
        "GET http://a.example/{} HTTP/1.1\r\n\r\n",
        "x".repeat(40_000)
    );
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "400"),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
            "400",
        ),
        ("GET http://a.example/ HTTP/1.1\nHost: a.example\n\n", "400"),
        (
            "GET http://a.example/ HTTP/2\r\nHost: a.example\r\n\r\n",
            "505",
        ),
        ("\x16\x03\x01\x02\x00\r\n\r\n", "400"),
        (&long, "431"),
    ];
    for (text, want) in cases {
        assert_eq!(status(&stage.ask(text)), want, "{text:.60}");
    }
    let want = ("-".to_owned(), "-".to_owned(), false, Code::InputInvalid, 6);
    assert_eq!(stage.finish(), [want]);
}

#[test]
fn no_client_blocks_the_proxy() {
    let stage = Stage::with(&["127.0.0.1:1"], |outlet| {
        outlet.patience = Timeouts {
            head: Duration::from_millis(300),
            next: Duration::from_millis(300),
            idle: Duration::from_millis(300),
            ..Timeouts::default()
        };
    });
    let began = Instant::now();
    // One client sends nothing, and one keeps sending a little.
    let mut silent = stage.connect();
    let mut slow = stage.connect();
    let dripping = thread::spawn(move || {
        for _ in 0..100 {
            if slow.write_all(b"G").is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let mut reply = String::new();
        let _ = slow.read_to_string(&mut reply);
        reply
    });
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    let reply = dripping.join().unwrap();
    assert!(reply.is_empty() || status(&reply) == "408", "{reply}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn many_are_served_at_once_and_too_many_are_refused() {
    let place = replies(|_| sized("here")).to_string();
    let stage = Stage::new(&[&place]);
    thread::scope(|scope| {
        let asking: Vec<_> = (0..200)
            .map(|_| scope.spawn(|| stage.get(&place)))
            .collect();
        for asked in asking {
            assert!(asked.join().unwrap().ends_with("here"));
        }
    });
    let waiting: Vec<TcpStream> = (0..300).map(|_| stage.connect()).collect();
    let turned_away = waiting.iter().rev().filter(|stream| {
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut reply = [0; 12];
        let mut stream: &TcpStream = stream;
        stream.read_exact(&mut reply).is_ok() && &reply == b"HTTP/1.1 503"
    });
    let turned_away = turned_away.take(44).count();
    assert_eq!(turned_away, 44);
}

#[test]
fn when_it_is_stopped_every_connection_ends_and_is_counted() {
    let place = server(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    })
    .to_string();
    let stage = Stage::new(&[&place]);
    let mut tunnels: Vec<TcpStream> = (0..8).map(|_| stage.connect()).collect();
    for tunnel in &mut tunnels {
        let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
        tunnel.write_all(head.as_bytes()).unwrap();
        read_head(tunnel).unwrap();
    }
    let mut waiting = stage.connect();
    waiting.write_all(b"GET http").unwrap();
    let began = Instant::now();
    let want = (place, "CONNECT".to_owned(), true, Code::Ok, 8);
    assert_eq!(stage.finish(), [want]);
    assert!(began.elapsed() < Duration::from_secs(5));
    for mut stream in tunnels.into_iter().chain([waiting]) {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
}

#[test]
fn a_secret_is_added_outside_and_only_for_its_place() {
    let place = replies(sized).to_string();
    let other = replies(sized).to_string();
    let credential = format!("http://{place} Authorization: Bearer $NAME");
    let stage = Stage::with(&[&place, &other], |outlet| {
        let credential = Credential::parse(&credential).unwrap();
        let secret = Secret::of(credential, "s3cret").unwrap();
        assert!(!format!("{secret:?}").contains("s3cret"));
        outlet.secrets.push(secret);
    });
    let ask = |place: &str| {
        stage.ask(&format!(
            "GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\nauthorization: dummy\r\n\
             Connection: close\r\n\r\n"
        ))
    };
    let reply = ask(&place);
    assert!(reply.contains("Authorization: Bearer s3cret\r\n") && !reply.contains("dummy"));
    let reply = ask(&other);
    assert!(reply.contains("authorization: dummy\r\n") && !reply.contains("s3cret"));
}

#[test]
fn a_tunnel_that_is_plain_gets_the_secret_of_its_place_and_leads_nowhere_else() {
    let place = replies(sized).to_string();
    let other = replies(|_| sized("never")).to_string();
    let credential = format!("http://{place} X-Key: $NAME");
    let stage = Stage::with(&[&place, &other], |outlet| {
        let credential = Credential::parse(&credential).unwrap();
        let secret = Secret::of(credential, "s3cret").unwrap();
        outlet.secrets.push(secret);
    });
    let connect = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    let one = |host: &str| format!("GET /x HTTP/1.1\r\nHost: {host}\r\nX-Key: dummy\r\n");
    let reply = stage.ask(&format!(
        "{connect}{}Connection: close\r\n\r\n",
        one(&place)
    ));
    assert!(
        reply.contains("200 Connection established") && reply.contains("X-Key: s3cret"),
        "{reply}"
    );
    assert!(!reply.contains("dummy"), "{reply}");
    let reply = stage.ask(&format!("{connect}{}\r\n", one(&other)));
    assert!(reply.contains("400 Bad Request"), "{reply}");
    // Encrypted bytes are forwarded as they are, without the secret.
    let reply = stage.ask(&format!(
        "{connect}\x16{}Connection: close\r\n\r\n",
        one(&place)
    ));
    assert!(!reply.contains("s3cret"), "{reply}");
    let traffic = stage.finish();
    let request = (place.clone(), "GET".to_owned(), true, Code::Ok, 1);
    assert!(traffic.contains(&request), "{traffic:?}");
}
