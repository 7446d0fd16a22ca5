//! Encrypted servers, while the sandbox sends plain requests.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use provost_core::net::credential::Credential;

use super::super::{Secret, tls};
use super::{Stage, status};

/// A server with a self-signed certificate that replies with the key it got; its port, and the file
/// with the certificate. `None` without the programs for it.
fn encrypted_server(directory: &Path) -> Option<(u16, PathBuf, Child)> {
    let (certificate, key) = (directory.join("certificate"), directory.join("key"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext"])
        .args(["basicConstraints=critical,CA:FALSE", "-keyout"])
        .args([&key, Path::new("-out"), &certificate])
        .output();
    let script = "import http.server, ssl, sys\n\
        class H(http.server.BaseHTTPRequestHandler):\n\
        \x20   protocol_version = 'HTTP/1.1'\n\
        \x20   def do_GET(self):\n\
        \x20       body = (self.headers['Host'] + ' ' + self.headers['X-Key']).encode() * 5000\n\
        \x20       self.send_response(200)\n\
        \x20       self.send_header('Content-Length', str(len(body)))\n\
        \x20       self.end_headers(); self.wfile.write(body)\n\
        \x20   def log_message(self, *_): pass\n\
        s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n\
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(*sys.argv[1:3])\n\
        s.socket = c.wrap_socket(s.socket, server_side=True)\n\
        print(s.server_port, flush=True); s.serve_forever()\n";
    let server = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .args([&certificate, &key])
        .stdout(Stdio::piped())
        .spawn();
    let (Ok(made), Ok(mut server)) = (made, server) else {
        provost_testkit::skip("there is no openssl or no python3");
        return None;
    };
    assert!(made.status.success(), "{made:?}");
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    Some((line.trim().parse().unwrap(), certificate, server))
}

#[test]
fn what_is_plain_in_the_sandbox_is_encrypted_outside() {
    let directory = tempfile::tempdir().unwrap();
    let Some((port, certificate, mut server)) = encrypted_server(directory.path()) else {
        return;
    };
    let ask = |host: &str, trusted: Vec<PathBuf>| {
        let place = format!("{host}:{port}");
        let credential = format!("https://{place} X-Key: $NAME");
        let stage = Stage::with(&[&place], |outlet| {
            let credential = Credential::parse(&credential).unwrap();
            outlet
                .secrets
                .push(Secret::of(credential, "s3cret").unwrap());
            outlet.trusted = trusted;
        });
        // Twice on one connection, so that the second request finds the server as it was left.
        let one = format!("GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\nX-Key: dummy\r\n");
        stage.ask(&format!("{one}\r\n{one}Connection: close\r\n\r\n"))
    };
    for host in ["localhost", "127.0.0.1"] {
        let reply = ask(host, vec![certificate.clone()]);
        let said = format!("{host}:{port} s3cret");
        assert_eq!(reply.matches(&said).count(), 10_000, "{reply:.300}");
    }
    let reply = ask("localhost", tls::trusted_files());
    assert_eq!(status(&reply), "502", "{reply:.300}");
    assert!(reply.contains("UnknownIssuer"), "{reply:.300}");
    server.kill().unwrap();
    server.wait().unwrap();
}
