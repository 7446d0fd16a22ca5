//! The network of a sandbox, used by common programs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::net::traffic::Traffic;
use provost_sandbox::{How, Network, Profile};

use crate::stage::{Answer, Request, Stage, for_each_user};

/// Starts a server on the host's loopback that greets every client; returns its port.
fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                while lines.next().is_some() {
                    lines.by_ref().find(String::is_empty);
                    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
                    if (&stream).write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn granted(stage: &Stage, places: &[&str]) -> Profile {
    let mut profile = stage.profile();
    profile.grant(places.iter().map(|place| place.parse().unwrap()).collect());
    profile
}

fn python(stage: &Stage, profile: &Profile, script: &str) -> Answer {
    stage.run(profile, &["/usr/bin/python3", "-c", script])
}

/// Each target with its method, the rule that decided, and the count.
fn lines(answer: &Answer) -> Vec<(String, String, Code, u64)> {
    let line = |line: Traffic| (line.target, line.method, line.code, line.count);
    answer.ended().network.into_iter().map(line).collect()
}

fn line(target: &str, method: &str, code: Code, count: u64) -> (String, String, Code, u64) {
    (target.to_owned(), method.to_owned(), code, count)
}

#[test]
fn curl_reaches_what_was_granted_and_nothing_else() {
    if provost_testkit::lacks(&["curl"]) {
        return;
    }
    let (port, other) = (greeter(), greeter());
    let place = format!("127.0.0.1:{port}");
    for_each_user(|stage| {
        let profile = granted(stage, &[&place]);
        let script = format!(
            "curl -sS http://{place}/secret?query; curl -sS -p http://{place}/; \
             curl -s -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{other}/; \
             curl -s -o /dev/null -w '%{{http_connect}}\\n' https://example.com/; \
             curl -sS http://localhost:{port}/; test $? = 7 && echo own"
        );
        let answer = stage.shell(&profile, &script);
        assert_eq!(answer.stdout, "hello\nhello\n403\n403\nown\n", "{answer:?}");
        let mut want = vec![
            line(&place, "CONNECT", Code::Ok, 1),
            line(&place, "GET", Code::Ok, 1),
            line(
                &format!("127.0.0.1:{other}"),
                "GET",
                Code::NetworkRefused,
                1,
            ),
            line("example.com:443", "CONNECT", Code::NetworkRefused, 1),
        ];
        want.sort();
        assert_eq!(lines(&answer), want);
        assert!(!answer.value.to_string().contains("secret"), "{answer:?}");
    });
}

#[test]
fn python_reaches_what_was_granted_and_gets_the_reason_of_a_refusal() {
    let (port, other) = (greeter(), greeter());
    for_each_user(|stage| {
        let profile = granted(stage, &[&format!("127.0.0.1:{port}")]);
        let script = format!(
            "import urllib.request as r, urllib.error\n\
             print(r.urlopen('http://127.0.0.1:{port}/').read().decode().strip())\n\
             try: r.urlopen('http://127.0.0.1:{other}/')\n\
             except urllib.error.HTTPError as e: print(e.code, e.read().decode().split(':')[0])\n"
        );
        let answer = python(stage, &profile, &script);
        assert_eq!(answer.stdout, "hello\n403 NETWORK_REFUSED\n", "{answer:?}");
    });
}

#[test]
fn a_program_that_ignores_the_proxy_fails_at_once() {
    let port = greeter();
    for_each_user(|stage| {
        let script = format!(
            "import socket, time\n\
             def attempt(what):\n\
             \x20   try: what(); print('reached')\n\
             \x20   except OSError as error: print(type(error).__name__)\n\
             began = time.time()\n\
             attempt(lambda: socket.create_connection(('127.0.0.1', {port}), 9))\n\
             attempt(lambda: socket.create_connection(('1.1.1.1', 443), 9))\n\
             attempt(lambda: socket.create_connection(('::1', {port}), 9))\n\
             attempt(lambda: socket.getaddrinfo('example.com', 443))\n\
             attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\
             .sendto(b'x', ('1.1.1.1', 53)))\n\
             print(time.time() - began < 3)\n"
        );
        let grants = vec![format!("127.0.0.1:{port}").parse().unwrap()];
        for network in [Network::Loopback, Network::Proxy(grants)] {
            let mut profile = stage.profile();
            profile.network = network;
            let answer = python(stage, &profile, &script);
            let want = "ConnectionRefusedError\nOSError\nConnectionRefusedError\ngaierror\n\
                OSError\nTrue\n";
            assert_eq!(answer.stdout, want, "{answer:?}");
        }
    });
}

#[test]
fn the_loopback_of_the_sandbox_is_its_own() {
    for_each_user(|stage| {
        let profile = granted(stage, &["api.example.com:443"]);
        let script = "import http.server, threading, urllib.request\n\
            class H(http.server.SimpleHTTPRequestHandler):\n\
            \x20   def do_GET(self):\n\
            \x20       self.send_response(200); self.end_headers(); self.wfile.write(b'own')\n\
            \x20   def log_message(self, *_): pass\n\
            s = http.server.HTTPServer(('127.0.0.1', 0), H)\n\
            threading.Thread(target=s.serve_forever, daemon=True).start()\n\
            print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read().decode())\n";
        let answer = python(stage, &profile, script);
        assert_eq!(answer.stdout, "own\n", "{answer:?}");
        assert_eq!(lines(&answer), []);
    });
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let port = greeter();
    for_each_user(|stage| {
        let profile = granted(stage, &[&format!("localhost:{port}")]);
        let script = format!(
            "import concurrent.futures as c, urllib.request as r\n\
             ask = lambda _: r.urlopen('http://localhost:{port}/').read()\n\
             print(sum(b == b'hello\\n' for b in c.ThreadPoolExecutor(100).map(ask, range(200))))\n"
        );
        let answer = python(stage, &profile, &script);
        assert_eq!(answer.stdout, "200\n", "{answer:?}");
        let want = line(&format!("localhost:{port}"), "GET", Code::Ok, 200);
        assert_eq!(lines(&answer), [want]);
    });
}

#[test]
fn an_open_tunnel_does_not_outlive_its_sandbox_or_its_driver() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let script = format!(
        "import socket, time; s = socket.create_connection(('127.0.0.1', 3128)); \
         s.sendall(b'CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n'); time.sleep(60)"
    );
    let argv = ["/usr/bin/python3", "-c", &script];
    // The end of the tunnel, seen from the server.
    let ends = |what: &str| {
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(15)))
            .unwrap();
        let mut rest = Vec::new();
        let read = std::io::Read::read_to_end(&mut &stream, &mut rest);
        assert!(
            read.is_ok() || read.unwrap_err().kind() != std::io::ErrorKind::WouldBlock,
            "{what}"
        );
    };
    for_each_user(|stage| {
        let profile = granted(stage, &[&place]);
        let request = Request {
            argv: &argv,
            cancel_after: Some(Duration::from_millis(800)),
            ..Request::default()
        };
        let since = Instant::now();
        let driver = stage.drive(&profile, &request);
        ends("cancelled");
        let answer = stage.answer(driver);
        assert_eq!(answer.how(), How::Cancelled);
        assert_eq!(lines(&answer), [line(&place, "CONNECT", Code::Ok, 1)]);
        assert!(since.elapsed() < Duration::from_secs(10));

        let request = Request {
            argv: &argv,
            ..Request::default()
        };
        let mut driver = stage.drive(&profile, &request);
        let (stream, _) = listener.accept().unwrap();
        driver.kill().unwrap();
        driver.wait().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(15)))
            .unwrap();
        let read = std::io::Read::read(&mut &stream, &mut [0]);
        assert_eq!(read.unwrap_or(0), 0, "the tunnel outlived its driver");
    });
}

#[test]
fn a_sandbox_without_grants_has_no_proxy() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.network = Network::Loopback;
        let script = "import socket; socket.create_connection(('127.0.0.1', 3128), 3)";
        let answer = python(stage, &profile, script);
        assert!(
            answer.stderr.contains("ConnectionRefusedError"),
            "{answer:?}"
        );
        assert!(!profile.env.contains_key("HTTP_PROXY"));
    });
}
