//! A server of a stage, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use provost_testkit::stage::Stage;
use serde_json::Value;

/// A server on a port, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) link: String,
    /// The value of `Host`.
    pub(crate) host: String,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn spawn(stage: &Stage, words: &[&str]) -> Child {
    let mut command = stage.provost(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// What a server prints once it answers.
pub(crate) fn announced(child: &mut Child) -> Value {
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

impl Server {
    pub(crate) fn start(stage: &Stage) -> Self {
        let mut child = spawn(stage, &["serve", "--tcp", "--json"]);
        let at = announced(&mut child);
        let link = at["link"].as_str().unwrap().to_owned();
        let host = link.trim_start_matches("http://");
        let host = host.split('/').next().unwrap().to_owned();
        Self { child, link, host }
    }

    fn ask(&self, request: &str) -> Response {
        let port = self.host.rsplit(':').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Response {
            status: head[9..12].parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn request(&self, line: &str, headers: &str, body: &str) -> Response {
        let host = &self.host;
        self.ask(&format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// The cookie of a session.
    pub(crate) fn enter(&self) -> String {
        let path = self.link.split_once(&self.host).unwrap().1;
        let answer = self.request(&format!("GET {path}"), "", "");
        assert_eq!(answer.status, 303, "{answer:?}");
        let (_, cookie) = answer.head.split_once("set-cookie: ").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) fn get(&self, path: &str, cookie: &str) -> Response {
        self.request(&format!("GET {path}"), &format!("Cookie: {cookie}\r\n"), "")
    }

    pub(crate) fn api(&self, path: &str, token: &str) -> Response {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        self.request(&format!("GET {path}"), &bearer, "")
    }

    pub(crate) fn api_post(&self, path: &str, token: &str) -> Response {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        self.request(&format!("POST {path}"), &bearer, "{}")
    }

    /// Sends a command with these fields as JSON.
    pub(crate) fn api_send(&self, path: &str, token: &str, body: &str) -> Response {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        self.request(&format!("POST {path}"), &bearer, body)
    }

    /// Sends a form and does not wait for the answer; the connection stays open.
    pub(crate) fn send(&self, path: &str, cookie: &str, form: &str) -> TcpStream {
        let host = &self.host;
        let port = host.rsplit(':').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nCookie: {cookie}\r\n\
             Origin: http://{host}\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The body of an answer that does not end.
    pub(crate) fn stream(&self, path: &str, cookie: &str) -> TcpStream {
        self.stream_with(path, &format!("Cookie: {cookie}"))
    }

    pub(crate) fn api_stream(&self, path: &str, token: &str) -> TcpStream {
        self.stream_with(path, &format!("Authorization: Bearer {token}"))
    }

    fn stream_with(&self, path: &str, header: &str) -> TcpStream {
        let host = &self.host;
        let port = host.rsplit(':').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// How much memory the server has in use.
    pub(crate) fn memory_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let words = line.unwrap().split_whitespace().nth(1);
        words.unwrap().parse().unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn post(&self, path: &str, cookie: &str, form: &str) -> Response {
        let headers = format!("Cookie: {cookie}\r\nOrigin: http://{}\r\n", self.host);
        self.request(&format!("POST {path}"), &headers, form)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
