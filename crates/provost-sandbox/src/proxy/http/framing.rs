//! Finds the end of a message's body.
//!
//! The bytes are passed on unchanged. This only says how many of them belong to the body, so that
//! bytes after it are never taken for a part of it.

/// The longest line between chunks, in bytes.
const LONGEST_LINE: usize = 256;
/// The most bytes after the last chunk.
const LONGEST_TRAILER: usize = 8 << 10;
/// The most digits of a chunk size.
const MOST_DIGITS: usize = 15;

/// The current position in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// This many bytes are to come; 0 is the end.
    Length(u64),
    /// A size in hexadecimal digits.
    Size { digits: usize, size: u64 },
    /// A chunk extension.
    Extension { size: u64, length: usize },
    /// The line feed after a size.
    SizeEnd { size: u64 },
    /// The bytes of a chunk.
    Data { left: u64 },
    /// The two bytes after a chunk.
    DataEnd { feed: bool },
    /// The beginning of a line after the last chunk.
    Trailer { total: usize },
    /// The inside of such a line.
    TrailerLine { total: usize },
    /// The line feed of such a line.
    TrailerLineEnd { total: usize },
    /// The last line feed.
    LastFeed,
    /// Until the sender closes the connection.
    Open,
}

/// A body whose chunks are malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body is not in well-formed chunks")]
pub struct FramingError;

impl Framing {
    pub fn of_length(length: u64) -> Self {
        Self(State::Length(length))
    }

    pub fn chunked() -> Self {
        Self(State::Size { digits: 0, size: 0 })
    }

    /// A body that ends when its sender closes the connection.
    pub fn until_closed() -> Self {
        Self(State::Open)
    }

    pub(super) fn is_chunked(&self) -> bool {
        !matches!(self.0, State::Length(_) | State::Open)
    }

    /// Whether only the end of the connection ends the body.
    pub fn is_open(&self) -> bool {
        self.0 == State::Open
    }

    /// Whether the length of the body was announced.
    pub fn is_sized(&self) -> bool {
        matches!(self.0, State::Length(_))
    }

    /// How many bytes are known to come next.
    pub fn announced(&self) -> u64 {
        match self.0 {
            State::Length(left) | State::Data { left } => left,
            _ => 0,
        }
    }

    /// Whether a whole chunk, or none, came last.
    pub fn is_between_chunks(&self) -> bool {
        matches!(self.0, State::Size { digits: 0, .. })
    }

    pub fn is_over(&self) -> bool {
        self.0 == State::Length(0)
    }

    /// Consumes `bytes`, and returns how many of them belong to the body.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, FramingError> {
        self.advance_over(bytes, &mut |_| {})
    }

    /// Like [`Self::advance`], and passes on the content without the chunk framing.
    pub fn advance_over(
        &mut self,
        bytes: &[u8],
        content: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, FramingError> {
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken).filter(|_| !self.is_over()) {
            let rest = bytes.len() - taken;
            match &mut self.0 {
                State::Open => {
                    content(&bytes[taken..]);
                    return Ok(bytes.len());
                }
                State::Length(left) | State::Data { left } => {
                    let step = usize::try_from(*left).map_or(rest, |left| left.min(rest));
                    *left -= step as u64;
                    content(&bytes[taken..taken + step]);
                    taken += step;
                    if self.0 == (State::Data { left: 0 }) {
                        self.0 = State::DataEnd { feed: false };
                    }
                }
                state => {
                    *state = between(state, *byte)?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }
}

/// The state after `byte`, which is not part of the body's content.
fn between(state: &State, byte: u8) -> Result<State, FramingError> {
    let shown = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    let next = match (state, byte) {
        (State::Size { digits, size }, _) if byte.is_ascii_hexdigit() && *digits < MOST_DIGITS => {
            let digit = char::from(byte).to_digit(16).ok_or(FramingError)?;
            State::Size {
                digits: digits + 1,
                size: size * 16 + u64::from(digit),
            }
        }
        (State::Size { digits: 1.., size } | State::Extension { size, .. }, b'\r') => {
            State::SizeEnd { size: *size }
        }
        (State::Size { digits: 1.., size }, b';') => State::Extension {
            size: *size,
            length: 0,
        },
        (State::Extension { size, length }, _) if shown && *length < LONGEST_LINE => {
            State::Extension {
                size: *size,
                length: length + 1,
            }
        }
        (State::SizeEnd { size: 0 }, b'\n') => State::Trailer { total: 0 },
        (State::SizeEnd { size }, b'\n') => State::Data { left: *size },
        (State::DataEnd { feed: false }, b'\r') => State::DataEnd { feed: true },
        (State::DataEnd { feed: true }, b'\n') => State::Size { digits: 0, size: 0 },
        (State::Trailer { .. }, b'\r') => State::LastFeed,
        (State::TrailerLine { total }, b'\r') => State::TrailerLineEnd { total: *total },
        // A space at the beginning would fold the line before it.
        (State::Trailer { total }, _) if byte.is_ascii_alphanumeric() => {
            State::TrailerLine { total: total + 1 }
        }
        (State::TrailerLine { total }, _) if shown && *total < LONGEST_TRAILER => {
            State::TrailerLine { total: total + 1 }
        }
        (State::TrailerLineEnd { total }, b'\n') => State::Trailer { total: *total },
        (State::LastFeed, b'\n') => State::Length(0),
        _ => return Err(FramingError),
    };
    Ok(next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many bytes of `text` are the body, if it is complete.
    fn whole(mut framing: Framing, text: &str) -> Option<usize> {
        let taken = framing.advance(text.as_bytes()).ok()?;
        framing.is_over().then_some(taken)
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let cases = [
            ("0\r\n\r\nGET", Some(5)),
            ("1\r\na\r\n0\r\n\r\n", Some(11)),
            ("A\r\n0123456789\r\n0\r\n\r\n", Some(20)),
            ("1;name=value\r\na\r\n0\r\n\r\n", Some(22)),
            ("0\r\nDigest: x\r\nOther: y\r\n\r\nrest", Some(26)),
            ("00000\r\n\r\n", Some(9)),
            ("1\r\na\r\n0\r\n", None),
            ("1\r\nab\r\n0\r\n\r\n", None),
            ("1\na\r\n0\r\n\r\n", None),
            ("1\r\na\n0\r\n\r\n", None),
            ("1 \r\na\r\n0\r\n\r\n", None),
            ("+1\r\na\r\n0\r\n\r\n", None),
            ("0x1\r\na\r\n0\r\n\r\n", None),
            (";a\r\n\r\n", None),
            ("\r\n\r\n", None),
            ("1;a\nb\r\na\r\n0\r\n\r\n", None),
            ("0\r\n folded\r\n\r\n", None),
            ("0\r\na: b\n\r\n", None),
            ("fffffffffffffffff\r\n", None),
        ];
        for (text, want) in cases {
            assert_eq!(whole(Framing::chunked(), text), want, "{text:?}");
        }
        assert_eq!(whole(Framing::of_length(0), "rest"), Some(0));
        assert_eq!(whole(Framing::of_length(2), "rest"), Some(2));
        assert_eq!(whole(Framing::of_length(9), "rest"), None);
        assert_eq!(whole(Framing::until_closed(), "rest"), None);
    }

    #[test]
    fn what_is_not_content_is_bounded() {
        let long = "x".repeat(LONGEST_TRAILER + 1);
        let mut framing = Framing::chunked();
        assert!(framing.advance(format!("0\r\n{long}").as_bytes()).is_err());
        let mut framing = Framing::chunked();
        assert!(framing.advance(format!("1;{long}").as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn pieces_are_read_as_the_whole(
            chunks in proptest::collection::vec("[a-z\\r\\n]{1,20}", 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let lines = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
            let text = lines.collect::<String>() + "0\r\n\r\n";
            let bytes = text.as_bytes();
            let cut = cut.index(bytes.len());
            let mut framing = Framing::chunked();
            prop_assert_eq!(framing.advance(&bytes[..cut]), Ok(cut));
            prop_assert!(!framing.is_over());
            prop_assert_eq!(framing.advance(&bytes[cut..]), Ok(bytes.len() - cut));
            prop_assert!(framing.is_over());
            prop_assert_eq!(framing.advance(b"more"), Ok(0));
        }
    }
}
