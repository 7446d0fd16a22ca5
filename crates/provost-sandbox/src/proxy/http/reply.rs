//! Parses the head of a server's reply strictly, and writes the head for the client.

use super::field::{self, Fields, HeadError, Version};
use super::framing::Framing;

/// Fields that belong to one connection, one moment or one client.
const OF_ONE_TIME: [&str; 8] = [
    "alt-svc",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "set-cookie",
    "transfer-encoding",
];
/// The most fields that are kept of a reply.
const MOST_FIELDS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    reason: String,
    fields: Fields,
    pub body: Framing,
    /// Whether the connection to the server can be used again.
    pub persistent: bool,
}

/// Parses the head of the reply to a request with `method` at the start of `bytes`, and returns its
/// length. `None` if it is incomplete.
pub fn parse(bytes: &[u8], method: &str) -> Result<Option<(Reply, usize)>, HeadError> {
    let Some((line, fields, length)) = field::split(bytes)? else {
        return Ok(None);
    };
    let (version, rest) = line.split_at_checked(9).ok_or(HeadError::FirstLine)?;
    let version = version.strip_suffix(b" ").ok_or(HeadError::FirstLine)?;
    let version = Version::parse(version)?;
    let (digits, reason) = rest.split_at_checked(3).ok_or(HeadError::FirstLine)?;
    let status = std::str::from_utf8(digits).ok();
    let status = status.and_then(|text| text.parse().ok());
    let status: u16 = status.ok_or(HeadError::FirstLine)?;
    if !digits.iter().all(u8::is_ascii_digit) || status < 100 || !matches!(reason, [] | [b' ', ..])
    {
        return Err(HeadError::FirstLine);
    }
    if status == 101 {
        return Err(HeadError::Upgrade);
    }
    // The reason phrase is for people; terminal control characters are not passed on.
    let shown = |byte: &&u8| matches!(byte, b' '..=b'~');
    let reason = reason.iter().filter(shown).map(|byte| char::from(*byte));
    let announced = fields.framing(version)?;
    let body = if method == "HEAD" || matches!(status, 100..=199 | 204 | 304) {
        Framing::of_length(0)
    } else {
        announced.unwrap_or_else(Framing::until_closed)
    };
    let reply = Reply {
        status,
        reason: reason.collect(),
        persistent: fields.is_persistent(version) && !body.is_open(),
        fields: fields.end_to_end()?,
        body,
    };
    Ok(Some((reply, length)))
}

impl Reply {
    /// Whether another head follows it.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The value of the first field of this name.
    pub fn field<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.fields.all(name).next()
    }

    /// The fields that say something of the content, as far as they are text. Of a very large head
    /// only the first ones are returned.
    pub fn content_fields(&self) -> Vec<(String, String)> {
        let kept = |name: &str| !OF_ONE_TIME.contains(&name);
        let fields = self.fields.lower().filter(|(name, _)| kept(name));
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).ok();
        let fields = fields.filter_map(|(name, value)| Some((name, text(value)?)));
        fields.take(MOST_FIELDS).collect()
    }

    /// The head for the client, which may use the connection again if `persistent`.
    pub fn render(&self, persistent: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {}{}\r\n", self.status, self.reason).into_bytes();
        self.fields.render(&mut head);
        if self.body.is_chunked() {
            field::render(&mut head, "Transfer-Encoding", b"chunked");
        }
        if !self.is_interim() {
            let word: &[u8] = if persistent { b"keep-alive" } else { b"close" };
            field::render(&mut head, "Connection", word);
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, method: &str) -> Result<Reply, HeadError> {
        parse(text.as_bytes(), method).map(|reply| reply.unwrap().0)
    }

    #[test]
    fn the_end_of_a_reply_is_known_or_is_the_end_of_the_connection() {
        let length = Framing::of_length;
        let cases = [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3",
                "GET",
                length(3),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3",
                "HEAD",
                length(0),
                true,
            ),
            ("HTTP/1.1 204 No Content", "GET", length(0), true),
            ("HTTP/1.1 304 \r\nContent-Length: 3", "GET", length(0), true),
            ("HTTP/1.1 100 Continue", "POST", length(0), true),
            ("HTTP/1.1 200", "GET", Framing::until_closed(), false),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 3",
                "GET",
                length(3),
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked",
                "GET",
                Framing::chunked(),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close",
                "GET",
                length(3),
                false,
            ),
        ];
        for (head, method, body, persistent) in cases {
            let reply = read(&format!("{head}\r\n\r\n"), method).unwrap();
            assert_eq!((reply.body, reply.persistent), (body, persistent), "{head}");
        }
    }

    #[test]
    fn a_reply_that_has_two_readings_is_refused() {
        use HeadError as E;
        let cases = [
            ("HTTP/2 200 OK", E::FirstLine),
            ("HTTP/1.2 200 OK", E::Version),
            ("HTTP/1.1  200 OK", E::FirstLine),
            ("HTTP/1.1 2000 OK", E::FirstLine),
            ("HTTP/1.1 +20 OK", E::FirstLine),
            ("HTTP/1.1 099 OK", E::FirstLine),
            ("", E::FirstLine),
            ("HTTP/1.1 101 Switching Protocols", E::Upgrade),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
                E::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
                E::Length,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip", E::Coding),
            ("HTTP/1.1 200 OK\r\nA: b\nC: d", E::LineEnd),
        ];
        for (head, want) in cases {
            assert_eq!(read(&format!("{head}\r\n\r\n"), "GET"), Err(want), "{head}");
        }
    }

    #[test]
    fn the_client_gets_the_state_of_its_own_connection() {
        let text = "HTTP/1.0 200 Fi\x1bne\r\nServer: x\r\nKeep-Alive: 5\r\n\r\n";
        let head = read(text, "GET").unwrap().render(false);
        let want = "HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), want);
        let interim = read("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "GET").unwrap();
        let want = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        assert_eq!(String::from_utf8(interim.render(true)).unwrap(), want);
    }
}
