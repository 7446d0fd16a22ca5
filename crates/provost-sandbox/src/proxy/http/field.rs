//! Parses the head of an HTTP/1 message: its first line and its fields.
//!
//! # Invariants
//!
//! - A line ends with CR LF; a CR or LF elsewhere, a folded line, or a space before a colon is
//!   refused, because parsers disagree about them.
//! - The length of a body is given once and in one way, or the message is refused.
//! - Hop-by-hop fields are not forwarded.

use provost_core::net::field_name::{HOP_BY_HOP, token};

use super::framing::Framing;

/// The longest head that is read, in bytes.
pub const LONGEST_HEAD: usize = 32 << 10;
const MOST_FIELDS: usize = 128;
/// The most digits of a length; more would not fit a file.
const MOST_DIGITS: usize = 18;

/// Fields that a sender may not have removed on the way: without them the message has another
/// meaning.
const NEEDED: [&str; 4] = [
    "authorization",
    "content-length",
    "host",
    "transfer-encoding",
];

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("the head is larger than 32 KiB or has more than 128 fields")]
    TooLarge,
    #[error("a line does not end with CR LF")]
    LineEnd,
    #[error("the first line is not one of HTTP")]
    FirstLine,
    #[error("the version is not HTTP/1.0 or HTTP/1.1")]
    Version,
    #[error("a field is malformed")]
    Field,
    /// A field that must occur once occurs again, or not at all.
    #[error("`{0}` is missing or there more than once")]
    Count(&'static str),
    /// The field `Host` names another place than the request.
    #[error("`Host` is not the host of the request")]
    HostMismatch,
    /// The length of the body is not given in exactly one way.
    #[error("the length of the body is not said in one way")]
    Length,
    #[error("a transfer coding other than `chunked`")]
    Coding,
    /// The request names a path only, as if the proxy were the server.
    #[error("this is a proxy: ask with the whole address, or with CONNECT")]
    NotAProxyRequest,
    /// Encrypted requests must come through a tunnel.
    #[error("ask for `https` with CONNECT")]
    Scheme,
    #[error("the request names no host and port")]
    Target,
    #[error("the server changed the protocol")]
    Upgrade,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Zero,
    One,
}

impl Version {
    pub(super) fn parse(text: &[u8]) -> Result<Self, HeadError> {
        match text {
            b"HTTP/1.1" => Ok(Self::One),
            b"HTTP/1.0" => Ok(Self::Zero),
            _ => Err(HeadError::Version),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As written; names compare without case.
    pub name: String,
    /// Without surrounding whitespace.
    pub value: Vec<u8>,
}

/// The fields of a head, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

/// A parsed head: the first line, the fields, and how many bytes it took.
pub(super) type Split<'a> = (&'a [u8], Fields, usize);

/// Parses the head at the start of `bytes`; `None` if it is incomplete.
pub(super) fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, HeadError> {
    let seen = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
    let head = &seen[..end.map_or(seen.len(), |end| end + 2)];
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        match rest.get(at..at + 2) {
            Some(b"\r\n") => lines.push(&rest[..at]),
            // The LF may still come.
            None if rest[at] == b'\r' && end.is_none() => break,
            _ => return Err(HeadError::LineEnd),
        }
        rest = &rest[at + 2..];
    }
    if lines.len() > MOST_FIELDS + 1 {
        return Err(HeadError::TooLarge);
    }
    let Some(end) = end else {
        let full = bytes.len() >= LONGEST_HEAD;
        return if full {
            Err(HeadError::TooLarge)
        } else {
            Ok(None)
        };
    };
    let (first, fields) = lines.split_first().ok_or(HeadError::FirstLine)?;
    let fields = fields.iter().map(|line| Field::parse(line));
    Ok(Some((
        first,
        Fields(fields.collect::<Result<_, _>>()?),
        end + 4,
    )))
}

impl Field {
    fn parse(line: &[u8]) -> Result<Self, HeadError> {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or(HeadError::Field)?);
        let name = token(name).ok_or(HeadError::Field)?.to_owned();
        let value = value[1..].trim_ascii();
        let shown = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        if !value.iter().all(shown) {
            return Err(HeadError::Field);
        }
        Ok(Self {
            name,
            value: value.to_vec(),
        })
    }

    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Fields {
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |field| field.is(name));
        named.map(|field| field.value.as_slice())
    }

    /// Every field, its name in lower case.
    pub(super) fn lower(&self) -> impl Iterator<Item = (String, &[u8])> {
        let fields = self.0.iter();
        fields.map(|field| (field.name.to_ascii_lowercase(), field.value.as_slice()))
    }

    /// The value of the only field of this name, if there is one.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&[u8]>, HeadError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (found, None) => Ok(found),
            (_, Some(_)) => Err(HeadError::Count(name)),
        }
    }

    /// The length of the body, as far as the fields say.
    pub(super) fn framing(&self, version: Version) -> Result<Option<Framing>, HeadError> {
        let length = self.one("content-length").map_err(|_| HeadError::Length)?;
        let coding = self
            .one("transfer-encoding")
            .map_err(|_| HeadError::Length)?;
        match (length, coding) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(HeadError::Length),
            (Some(digits), None) => {
                let plain = digits.iter().all(u8::is_ascii_digit) && digits.len() <= MOST_DIGITS;
                let text = std::str::from_utf8(digits).ok().filter(|_| plain);
                let length = text.and_then(|text| text.parse().ok());
                length
                    .map(|length| Some(Framing::of_length(length)))
                    .ok_or(HeadError::Length)
            }
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => match version {
                Version::One => Ok(Some(Framing::chunked())),
                Version::Zero => Err(HeadError::Length),
            },
            (None, Some(_)) => Err(HeadError::Coding),
        }
    }

    /// Whether another message may follow on the same connection.
    pub(super) fn is_persistent(&self, version: Version) -> bool {
        let says = |word: &str| {
            self.options()
                .any(|option| option.eq_ignore_ascii_case(word))
        };
        match version {
            Version::One => !says("close"),
            Version::Zero => says("keep-alive") && !says("close"),
        }
    }

    /// The options of the field `Connection`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.all("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .filter_map(|word| std::str::from_utf8(word).ok())
            .map(str::trim)
    }

    /// The fields to forward; an error if the sender wants a required one removed.
    pub(super) fn end_to_end(&self) -> Result<Self, HeadError> {
        let listed: Vec<String> = self.options().map(str::to_ascii_lowercase).collect();
        if NEEDED
            .iter()
            .any(|name| listed.iter().any(|word| word == name))
        {
            return Err(HeadError::Field);
        }
        let stays = |field: &&Field| {
            let name = field.name.to_ascii_lowercase();
            !HOP_BY_HOP.contains(&name.as_str()) && !listed.contains(&name)
        };
        Ok(Self(self.0.iter().filter(stays).cloned().collect()))
    }

    pub(super) fn with(mut self, name: &str, value: &[u8]) -> Self {
        self.0.push(Field {
            name: name.to_owned(),
            value: value.to_vec(),
        });
        self
    }

    #[must_use]
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|field| !field.is(name));
        self
    }

    /// Appends the fields to `head`.
    pub(super) fn render(&self, head: &mut Vec<u8>) {
        for field in &self.0 {
            render(head, &field.name, &field.value);
        }
    }
}

pub(super) fn render(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}
