//! Parses a request to a proxy strictly, and writes the request for the server.

mod body_kind;
mod logins;

use provost_core::net::credential::Transport;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::field_name::token;

use super::field::{self, Fields, HeadError, Version};
use super::framing::Framing;

const LONGEST_METHOD: usize = 24;
/// Methods that no server answers with the request itself; a credential is added to no other.
const WITHOUT_ECHO: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
/// Fields that some servers read as the method, in place of the first line.
const OVERRIDES: [&str; 4] = [
    "x-http-method",
    "x-http-method-override",
    "x-method",
    "x-method-override",
];
/// The field that lets a client choose which server on the way answers.
const MAX_FORWARDS: &str = "max-forwards";
const HTTP: u16 = 80;

/// A request to a known endpoint; its path is for the server alone and is never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub target: Endpoint,
    pub form: Form,
    /// The fields to forward to the server, without `Host`.
    fields: Fields,
    pub body: Framing,
    /// Whether the client wants to use the connection again.
    pub persistent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Pass bytes both ways.
    Tunnel,
    /// Request this path and query from the server.
    Plain(String),
}

/// Parses the head of a request at the start of `bytes`, and returns its length.
///
/// `None` if it is incomplete.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, HeadError> {
    parse_for(bytes, place)
}

/// The same for a request in an unencrypted tunnel to `target`: it names a path alone.
pub fn parse_within(
    bytes: &[u8],
    target: &Endpoint,
) -> Result<Option<(Request, usize)>, HeadError> {
    parse_for(bytes, |method, path| {
        let path = std::str::from_utf8(path).map_err(|_| HeadError::FirstLine)?;
        let plain = path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if method == "CONNECT" || !path.starts_with('/') || !plain {
            return Err(HeadError::FirstLine);
        }
        Ok((target.clone(), Form::Plain(path.to_owned())))
    })
}

fn parse_for(
    bytes: &[u8],
    place: impl FnOnce(&str, &[u8]) -> Result<(Endpoint, Form), HeadError>,
) -> Result<Option<(Request, usize)>, HeadError> {
    let Some((line, fields, length)) = field::split(bytes)? else {
        return Ok(None);
    };
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else {
        return Err(HeadError::FirstLine);
    };
    let version = Version::parse(version)?;
    let method = token(method).filter(|method| method.len() <= LONGEST_METHOD);
    let method = method.ok_or(HeadError::FirstLine)?.to_owned();
    let (target, form) = place(&method, target)?;
    check_host(&fields, &target, &form, version)?;
    let framing = fields.framing(version)?;
    if form == Form::Tunnel && framing.is_some() {
        return Err(HeadError::Length);
    }
    let request = Request {
        method,
        target,
        form,
        persistent: fields.is_persistent(version),
        fields: fields.end_to_end()?.without("host"),
        body: framing.unwrap_or_else(|| Framing::of_length(0)),
    };
    Ok(Some((request, length)))
}

/// The endpoint that a request names, and its form.
fn place(method: &str, target: &[u8]) -> Result<(Endpoint, Form), HeadError> {
    let shown = target.iter().all(u8::is_ascii_graphic);
    let target = std::str::from_utf8(target).ok().filter(|_| shown);
    let target = target.ok_or(HeadError::FirstLine)?;
    if method == "CONNECT" {
        let endpoint = Endpoint::parse(target).map_err(|_| HeadError::Target)?;
        return Ok((endpoint, Form::Tunnel));
    }
    let scheme = "http://";
    let Some(rest) = strip_prefix_ignoring_case(target, scheme) else {
        return Err(match strip_prefix_ignoring_case(target, "https://") {
            Some(_) => HeadError::Scheme,
            None => HeadError::NotAProxyRequest,
        });
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if path.contains('#') {
        return Err(HeadError::FirstLine);
    }
    let endpoint = Endpoint::parse_with_default(authority, HTTP).map_err(|_| HeadError::Target)?;
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok((endpoint, Form::Plain(path)))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (front, rest) = text.split_at_checked(prefix.len())?;
    front.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// A second endpoint, in the field `Host`, must be the same one.
fn check_host(
    fields: &Fields,
    target: &Endpoint,
    form: &Form,
    version: Version,
) -> Result<(), HeadError> {
    let Some(host) = fields.one("host")? else {
        return match version {
            Version::Zero => Ok(()),
            Version::One => Err(HeadError::Count("host")),
        };
    };
    let implied = match form {
        Form::Tunnel => target.port,
        Form::Plain(_) => HTTP,
    };
    let host = std::str::from_utf8(host).map_err(|_| HeadError::HostMismatch)?;
    let host = Endpoint::parse_with_default(host, implied);
    if host.as_ref() == Ok(target) {
        Ok(())
    } else {
        Err(HeadError::HostMismatch)
    }
}

impl Request {
    /// Why no credential is added to this request: the reply could contain the request as it
    /// arrived, with the credential in it.
    pub fn echoes(&self) -> Option<&'static str> {
        let plain = |method: &[u8]| {
            let mut known = WITHOUT_ECHO.iter();
            known.any(|name| name.as_bytes() == method)
        };
        if !plain(self.method.as_bytes()) {
            return Some("the method is none of DELETE, GET, HEAD, OPTIONS, PATCH, POST and PUT");
        }
        let only_reads = matches!(&*self.method, "GET" | "HEAD" | "OPTIONS");
        if self.overrides().any(|method| only_reads || !plain(method)) {
            return Some("a field names another method");
        }
        let chosen = self.fields.all(MAX_FORWARDS).next().is_some();
        chosen.then_some("`Max-Forwards` lets a server on the way answer")
    }

    /// The methods that fields name in place of the first line's.
    fn overrides(&self) -> impl Iterator<Item = &[u8]> {
        // Many servers read `_` in the name of a field as `-`.
        let overrides = |name: &str| OVERRIDES.contains(&&*name.replace('_', "-"));
        let fields = self.fields.lower();
        fields.filter_map(move |(name, method)| overrides(&name).then_some(method))
    }

    /// Whether a server could read another method in a field.
    pub fn is_ambiguous(&self) -> bool {
        self.overrides().next().is_some()
    }

    /// The same request, asking for an uncompressed reply.
    #[must_use]
    pub fn uncompressed(&self) -> Self {
        // A mask could take the count of tokens out of the reply.
        let fields = self.fields.clone().without("x-goog-fieldmask");
        let fields = fields.without("accept-encoding");
        Self {
            fields: fields.with("Accept-Encoding", b"identity"),
            ..self.clone()
        }
    }

    /// Whether the client sends its body only after an interim reply.
    pub fn waits_to_continue(&self) -> bool {
        self.fields.all("expect").next().is_some()
    }

    /// The same request for a body of this length that was received completely.
    #[must_use]
    pub fn with_length(&self, length: usize) -> Self {
        let fields = self.fields.clone().without("content-length");
        let digits = length.to_string();
        Self {
            fields: fields
                .without("expect")
                .with("Content-Length", digits.as_bytes()),
            body: Framing::of_length(0),
            ..self.clone()
        }
    }

    /// The head for the server, with each of `added` in place of the client's value.
    pub fn render(&self, transport: Transport, added: &[(&str, &str)]) -> Vec<u8> {
        let path = match &self.form {
            Form::Tunnel => "/",
            Form::Plain(path) => path,
        };
        let mut head = format!("{} {path} HTTP/1.1\r\n", self.method).into_bytes();
        let host = if self.target.port == transport.port() {
            self.target.host.to_string()
        } else {
            self.target.to_string()
        };
        field::render(&mut head, "Host", host.as_bytes());
        let mut fields = self.fields.clone();
        for (name, _) in added {
            fields = fields.without(name);
        }
        fields.render(&mut head);
        for (name, value) in added {
            field::render(&mut head, name, value.as_bytes());
        }
        if self.body.is_chunked() {
            field::render(&mut head, "Transfer-Encoding", b"chunked");
        }
        if !self.persistent {
            field::render(&mut head, "Connection", b"close");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forwarded request, or why it is refused.
    fn passed_on(lines: &[&str]) -> String {
        let text = lines.join("\r\n") + "\r\n\r\nrest";
        match parse(text.as_bytes()) {
            Err(error) => error.to_string(),
            Ok(None) => "more has to come".to_owned(),
            Ok(Some((request, length))) => {
                assert_eq!(&text[length..], "rest");
                let head = request.render(Transport::Plain, &[]);
                format!("{} {}", request.target, String::from_utf8_lossy(&head))
                    .trim_end()
                    .replace("\r\n", " | ")
            }
        }
    }

    #[test]
    fn a_request_is_forwarded_as_the_server_expects_it() {
        let cases: [(&[&str], &str); 7] = [
            (
                &[
                    "GET http://a.example/x?y HTTP/1.1",
                    "Host: a.example",
                    "Accept: */*",
                ],
                "a.example:80 GET /x?y HTTP/1.1 | Host: a.example | Accept: */*",
            ),
            (
                &["GET HTTP://A.example:81?y HTTP/1.1", "host:a.example:81"],
                "a.example:81 GET /?y HTTP/1.1 | Host: a.example:81",
            ),
            (
                &["GET http://[::1]:8080 HTTP/1.0"],
                "[::1]:8080 GET / HTTP/1.1 | Host: [::1]:8080 | Connection: close",
            ),
            (
                &["CONNECT a.example:443 HTTP/1.1", "Host: a.example"],
                "a.example:443 CONNECT / HTTP/1.1 | Host: a.example:443",
            ),
            (
                &[
                    "POST http://a.example/ HTTP/1.1",
                    "Host: a.example",
                    "Transfer-Encoding: Chunked",
                    "Proxy-Connection: keep-alive",
                    "Proxy-Authorization: Basic eA==",
                    "Connection: close, X-Private",
                    "X-Private: 1",
                    "Upgrade: h2c",
                    "TE: trailers",
                ],
                "a.example:80 POST / HTTP/1.1 | Host: a.example | Transfer-Encoding: chunked \
                 | Connection: close",
            ),
            (
                &[
                    "POST http://a.example/ HTTP/1.1",
                    "Host: a.example",
                    "Content-Length: 4",
                ],
                "a.example:80 POST / HTTP/1.1 | Host: a.example | Content-Length: 4",
            ),
            (
                &[
                    "GET http://a.example/ HTTP/1.1",
                    "Host: a.example",
                    "X: \u{e9}",
                ],
                "a.example:80 GET / HTTP/1.1 | Host: a.example | X: \u{e9}",
            ),
        ];
        for (lines, want) in cases {
            assert_eq!(passed_on(lines), want);
        }
    }

    const GET: &str = "GET http://a.example/ HTTP/1.1";
    const POST: &str = "POST http://a.example/ HTTP/1.1";
    const HOST: &str = "Host: a.example";

    fn check(cases: &[(&[&str], HeadError)]) {
        for (lines, want) in cases {
            assert_eq!(passed_on(lines), want.to_string(), "{lines:?}");
        }
    }

    #[test]
    fn a_body_whose_length_has_two_readings_is_refused() {
        use HeadError as E;
        let length = "Content-Length: 1";
        let chunked = "Transfer-Encoding: chunked";
        let old = "POST http://a.example/ HTTP/1.0";
        check(&[
            (&[POST, HOST, length, length], E::Length),
            (&[POST, HOST, "Content-Length: 1, 1"], E::Length),
            (&[POST, HOST, "Content-Length: +1"], E::Length),
            (&[POST, HOST, "Content-Length:"], E::Length),
            (
                &[POST, HOST, "Content-Length: 99999999999999999999"],
                E::Length,
            ),
            (&[POST, HOST, length, chunked], E::Length),
            (&[POST, HOST, chunked, chunked], E::Length),
            (&[POST, HOST, "Transfer-Encoding: gzip, chunked"], E::Coding),
            (&[POST, HOST, "Transfer-Encoding: identity"], E::Coding),
            (&[old, HOST, chunked], E::Length),
            (&[POST, HOST, "Connection: Content-Length"], E::Field),
            (&["CONNECT a.example:1 HTTP/1.1", HOST, length], E::Length),
        ]);
    }

    #[test]
    fn a_line_that_has_two_readings_is_refused() {
        use HeadError as E;
        check(&[
            (&[GET, HOST, " folded"], E::Field),
            (&[GET, "Host : a.example"], E::Field),
            (&[GET, HOST, "no colon"], E::Field),
            (&[GET, HOST, ": value"], E::Field),
            (&[GET, HOST, "X: a\0b"], E::Field),
            (&[GET, HOST, "Connection: close, host"], E::Field),
            (&[GET, "X: a\nHost: a.example"], E::LineEnd),
            (&[GET, HOST, "X: a\rb"], E::LineEnd),
            (&["GET http://a.example/ HTTP/2.0", HOST], E::Version),
            (&["GET http://a.example/", HOST], E::FirstLine),
            (&["GET  http://a.example/ HTTP/1.1", HOST], E::FirstLine),
            (&["G(T http://a.example/ HTTP/1.1", HOST], E::FirstLine),
            (
                &["GET http://a.example/\u{e9} HTTP/1.1", HOST],
                E::FirstLine,
            ),
            (&["GET http://a.example/#x HTTP/1.1", HOST], E::FirstLine),
            (&["", GET, HOST], E::Field),
            (&["", HOST], E::FirstLine),
        ]);
    }

    #[test]
    fn a_request_names_one_place() {
        use HeadError as E;
        let connect = "CONNECT a.example:443 HTTP/1.1";
        check(&[
            (&[GET], E::Count("host")),
            (&[GET, HOST, HOST], E::Count("host")),
            (&[GET, "Host: b.example"], E::HostMismatch),
            (&[GET, "Host: a.example:8080"], E::HostMismatch),
            (&[GET, "Host:"], E::HostMismatch),
            (&["GET / HTTP/1.1", HOST], E::NotAProxyRequest),
            (&["OPTIONS * HTTP/1.1", HOST], E::NotAProxyRequest),
            (
                &["GET ftp://a.example/ HTTP/1.1", HOST],
                E::NotAProxyRequest,
            ),
            (&["GET https://a.example/ HTTP/1.1", HOST], E::Scheme),
            (&["GET http://user@a.example/ HTTP/1.1", HOST], E::Target),
            (&["GET http:/// HTTP/1.1", HOST], E::Target),
            (&["GET http://*.example/ HTTP/1.1", HOST], E::Target),
            (&["CONNECT a.example HTTP/1.1", HOST], E::Target),
            (&["CONNECT http://a.example HTTP/1.1", HOST], E::Target),
            (&[connect, "Host: b.example"], E::HostMismatch),
        ]);
    }

    #[test]
    fn a_head_is_bounded_and_refused_as_soon_as_it_is_wrong() {
        let endless = format!("GET http://a.example/{} ", "x".repeat(field::LONGEST_HEAD));
        assert_eq!(parse(endless.as_bytes()), Err(HeadError::TooLarge));
        let many = format!(
            "GET http://a.example/ HTTP/1.1\r\n{}",
            "a: b\r\n".repeat(200)
        );
        assert_eq!(parse(many.as_bytes()), Err(HeadError::TooLarge));
        assert_eq!(parse(b"GET / HTTP/1.1\n"), Err(HeadError::LineEnd));
        assert_eq!(parse(b"GET http://a.example/ HTTP/1.1\r"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
    }

    #[test]
    fn a_tunnel_that_is_read_leads_to_its_own_place_only() {
        use HeadError as E;
        let target = Endpoint::parse("a.example:443").unwrap();
        let within = |text: &str| {
            let read = parse_within(text.as_bytes(), &target);
            read.map(|read| read.map(|(request, _)| (request.target.to_string(), request.form)))
        };
        let path = Form::Plain("/v1?x".to_owned());
        assert_eq!(
            within("POST /v1?x HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
            Ok(Some(("a.example:443".to_owned(), path)))
        );
        for (line, error) in [
            ("GET / HTTP/1.1\r\nHost: b.example:443", E::HostMismatch),
            ("GET / HTTP/1.1", E::Count("host")),
            (
                "GET http://b.example/ HTTP/1.1\r\nHost: b.example",
                E::FirstLine,
            ),
            ("CONNECT /x HTTP/1.1\r\nHost: a.example:443", E::FirstLine),
            ("GET /#x HTTP/1.1\r\nHost: a.example:443", E::FirstLine),
        ] {
            assert_eq!(within(&format!("{line}\r\n\r\n")), Err(error), "{line}");
        }
    }

    #[test]
    fn a_credential_takes_the_place_of_what_the_client_wrote() {
        let text = "GET http://a.example:443/v1 HTTP/1.1\r\nHost: a.example:443\r\n\
            authorization: dummy\r\nAuthorization: again\r\n\r\n";
        let (request, _) = parse(text.as_bytes()).unwrap().unwrap();
        let head = request.render(Transport::Tls, &[("Authorization", "Bearer real")]);
        let want = "GET /v1 HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer real\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), want);
    }
}
