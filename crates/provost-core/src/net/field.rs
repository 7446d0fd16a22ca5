//! Reads the head of an HTTP/1 message: its first line and its fields.
//!
//! # Invariants
//!
//! - A line ends with CR LF; a CR or LF elsewhere, a folded line, or a blank before a colon is
//!   refused, because readers disagree about them.
//! - The length of a body is said once and in one way, or the message is refused.
//! - Fields that are for the next hop only do not go further.

use super::framing::Framing;

/// The longest head that is read, in bytes.
pub const LONGEST_HEAD: usize = 32 << 10;
/// The most fields of a head.
const MOST_FIELDS: usize = 128;
/// The most digits of a length; more would not fit a file.
const MOST_DIGITS: usize = 18;

/// What only the next hop is told.
const FOR_THE_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];
/// What a sender may not have taken out on the way: without it the message means something else.
const NEEDED: [&str; 4] = [
    "authorization",
    "content-length",
    "host",
    "transfer-encoding",
];

/// Why a head is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// More bytes or fields than anybody needs.
    #[error("the head is larger than 32 KiB or has more than 128 fields")]
    TooLarge,
    /// A CR or LF that is not part of a line's end.
    #[error("a line does not end with CR LF")]
    LineEnd,
    /// The first line is none of HTTP.
    #[error("the first line is not one of HTTP")]
    FirstLine,
    /// Another version.
    #[error("the version is not HTTP/1.0 or HTTP/1.1")]
    Version,
    /// A line that is no field.
    #[error("a field is malformed")]
    Field,
    /// A field that must be there once is there again, or not at all.
    #[error("`{0}` is missing or there more than once")]
    Count(&'static str),
    /// The field `Host` names another place than the request.
    #[error("`Host` is not the host of the request")]
    HostMismatch,
    /// The length of the body is not said in exactly one way.
    #[error("the length of the body is not said in one way")]
    Length,
    /// A coding of the body that is not known.
    #[error("a transfer coding other than `chunked`")]
    Coding,
    /// The request names a path only, as if this were the server.
    #[error("this is a proxy: ask with the whole address, or with CONNECT")]
    NotAProxyRequest,
    /// Encrypted requests have to come through a tunnel.
    #[error("ask for `https` with CONNECT")]
    Scheme,
    /// What the request asks for is no place.
    #[error("the request names no host and port")]
    Target,
    /// The server wants to speak another protocol.
    #[error("the server changed the protocol")]
    Upgrade,
}

/// The version of a message.
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

/// One field of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name as it was written; it compares without case.
    pub name: String,
    /// Its value, without blanks around it.
    pub value: Vec<u8>,
}

/// The fields of a head, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

/// A head in its parts: the first line, the fields, and how many bytes it took.
pub(super) type Split<'a> = (&'a [u8], Fields, usize);

/// Splits the head off the front of `bytes`; `None` if its end has not come yet.
pub(super) fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, HeadError> {
    let seen = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
    let head = &seen[..end.map_or(seen.len(), |end| end + 2)];
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        match rest.get(at..at + 2) {
            Some(b"\r\n") => lines.push(&rest[..at]),
            // Its other half may still come.
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

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Fields {
    /// The values of all fields of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |field| field.is(name));
        named.map(|field| field.value.as_slice())
    }

    /// Every field, its name in lower case.
    pub(super) fn lower(&self) -> impl Iterator<Item = (String, &[u8])> {
        let fields = self.0.iter();
        fields.map(|field| (field.name.to_ascii_lowercase(), field.value.as_slice()))
    }

    /// The value of the one field of this name, if there is one.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<&[u8]>, HeadError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (found, None) => Ok(found),
            (_, Some(_)) => Err(HeadError::Count(name)),
        }
    }

    /// How long the body is, as far as the fields say.
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

    /// The words of the field `Connection`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.all("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .filter_map(|word| std::str::from_utf8(word).ok())
            .map(str::trim)
    }

    /// The fields that go further; an error if the sender wants one left out that is needed.
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
            !FOR_THE_HOP.contains(&name.as_str()) && !listed.contains(&name)
        };
        Ok(Self(self.0.iter().filter(stays).cloned().collect()))
    }

    /// These fields and one more.
    pub(super) fn with(mut self, name: &str, value: &[u8]) -> Self {
        self.0.push(Field {
            name: name.to_owned(),
            value: value.to_vec(),
        });
        self
    }

    /// The same fields without those of this name.
    #[must_use]
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|field| !field.is(name));
        self
    }

    /// Writes the fields after what `head` holds already.
    pub(super) fn render(&self, head: &mut Vec<u8>) {
        for field in &self.0 {
            render(head, &field.name, &field.value);
        }
    }
}

/// Writes one field.
pub(super) fn render(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// `bytes` as the name of a field or method.
pub(super) fn token(bytes: &[u8]) -> Option<&str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let text = std::str::from_utf8(bytes).ok()?;
    (!bytes.is_empty() && bytes.iter().all(plain)).then_some(text)
}

/// Whether a field of this name is about the message itself and not about what it carries.
pub(super) fn is_structural(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    FOR_THE_HOP.contains(&name.as_str())
        || ["host", "content-length", "trailer", "expect"].contains(&name.as_str())
}
