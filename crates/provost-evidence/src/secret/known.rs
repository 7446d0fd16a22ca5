//! Finds values that are known to be secret, in their likely encodings.
//!
//! # Invariants
//!
//! - Nothing here shows a value: neither `Debug` nor an error.
//! - The work grows with the length of the text and with the number of spellings.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

use super::assigned::{self, TELLING};
use super::is_placeholder;

/// The shortest value that is searched for: shorter ones occur in every log by chance.
const SHORTEST: usize = 6;
/// The shortest value that counts as a secret because of its variable's name.
const SHORTEST_NAMED: usize = 8;
/// The shortest line of a secret that is searched for by itself.
const SHORTEST_LINE: usize = 16;
/// The shortest part of a base64 spelling that is searched for.
const SHORTEST_PART: usize = 8;
/// The longest value whose spellings are searched for.
const LONGEST: usize = 64 << 10;

/// The value of a secret's variable inside a sandbox; it is no secret itself.
pub const DUMMY: &str = "kept-outside-the-box";

#[derive(Clone, Default)]
pub struct Known(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Longest first, so that no rest of a longer spelling stays.
    spellings: Vec<Spelling>,
    /// The positions of the spellings by their first byte.
    by_first: Vec<Vec<usize>>,
}

struct Spelling {
    bytes: Vec<u8>,
    /// The variable whose value it is.
    name: Arc<str>,
}

impl fmt::Debug for Known {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Known({} spellings)", self.0.spellings.len())
    }
}

impl Known {
    /// The values, each with the name of its variable.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all: BTreeSet<(Vec<u8>, &str)> = BTreeSet::new();
        for (name, value) in values {
            let value = value.trim();
            let worth = (SHORTEST..=LONGEST).contains(&value.len()) && value != DUMMY;
            if !worth {
                continue;
            }
            let lines = value.lines().map(str::trim);
            let lines = lines.filter(|line| line.len() >= SHORTEST_LINE && *line != value);
            for text in std::iter::once(value).chain(lines) {
                all.extend(spellings(text).into_iter().map(|bytes| (bytes, name)));
            }
        }
        let mut spellings: Vec<Spelling> = all
            .into_iter()
            .map(|(bytes, name)| Spelling {
                bytes,
                name: name.into(),
            })
            .collect();
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.bytes.len()));
        let mut by_first = vec![Vec::new(); 256];
        for (at, spelling) in spellings.iter().enumerate() {
            if let Some(first) = spelling.bytes.first() {
                by_first[usize::from(*first)].push(at);
            }
        }
        Self(Arc::new(Inner {
            spellings,
            by_first,
        }))
    }

    pub fn is_empty(&self) -> bool {
        self.0.spellings.is_empty()
    }

    /// Where known values occur in `bytes`, in order, each with the name of its variable; none
    /// overlaps another.
    pub fn find(&self, bytes: &[u8]) -> Vec<(Range<usize>, &str)> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        let mut at = 0;
        while at < bytes.len() {
            match self.at(bytes, at) {
                Some(spelling) => {
                    let end = at + spelling.bytes.len();
                    found.push((at..end, &*spelling.name));
                    at = end;
                }
                None => at += 1,
            }
        }
        found
    }

    pub fn is_in(&self, bytes: &[u8]) -> bool {
        !self.is_empty() && (0..bytes.len()).any(|at| self.at(bytes, at).is_some())
    }

    /// The longest spelling at `at`.
    fn at(&self, bytes: &[u8], at: usize) -> Option<&Spelling> {
        let rest = &bytes[at..];
        self.beginning(*rest.first()?)
            .find(|spelling| rest.starts_with(&spelling.bytes))
    }

    fn beginning(&self, first: u8) -> impl Iterator<Item = &Spelling> {
        let places = self.0.by_first.get(usize::from(first));
        let places = places.into_iter().flatten();
        places.filter_map(|place| self.0.spellings.get(*place))
    }

    /// The start of the first spelling that `bytes` ends inside of.
    pub(super) fn unfinished(&self, bytes: &[u8]) -> Option<usize> {
        let longest = self.0.spellings.first()?.bytes.len();
        let from = bytes.len().saturating_sub(longest - 1);
        (from..bytes.len()).find(|at| {
            let rest = &bytes[*at..];
            self.beginning(rest[0]).any(|spelling| {
                spelling.bytes.len() > rest.len() && spelling.bytes.starts_with(rest)
            })
        })
    }
}

/// Whether an environment variable holds a secret, by its name and its value.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let value = value.trim();
    let named = assigned::is_name(name)
        || (name.to_ascii_lowercase().ends_with("_key") && value.len() >= SHORTEST_LINE);
    named && is_worth(value)
}

/// Whether a value could be a secret: not a path, a word or a placeholder.
fn is_worth(value: &str) -> bool {
    let kinds: [fn(&u8) -> bool; 4] = [
        u8::is_ascii_lowercase,
        u8::is_ascii_uppercase,
        u8::is_ascii_digit,
        |byte| !byte.is_ascii_alphanumeric(),
    ];
    let kinds = kinds
        .iter()
        .filter(|kind| value.bytes().any(|it| kind(&it)));
    value.len() >= SHORTEST_NAMED
        && (kinds.count() >= 2 || value.len() >= 2 * SHORTEST_LINE)
        && !value.starts_with(['/', '.', '~'])
        && !is_placeholder(value)
        && !TELLING
            .split(' ')
            .any(|word| word.eq_ignore_ascii_case(value))
}

/// The spellings in which `value` is searched for.
fn spellings(value: &str) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    let once = escaped(value);
    all.insert(escaped(&once).into_bytes());
    all.insert(once.into_bytes());
    for plain in [&b""[..], b"-._~", b"-._~!'()*"] {
        for hex in [UPPER, LOWER] {
            all.insert(percent(value, plain, hex));
        }
    }
    all.insert(value.bytes().flat_map(|byte| digits(byte, LOWER)).collect());
    all.insert(value.bytes().flat_map(|byte| digits(byte, UPPER)).collect());
    for alphabet in [&STANDARD, &URL_SAFE] {
        let engine = GeneralPurpose::new(alphabet, NO_PAD);
        // The bytes before it in the encoded text shift it by zero, one or two bytes.
        for before in 0..3 {
            all.extend(encoded(&engine, value.as_bytes(), before));
        }
    }
    all.insert(value.as_bytes().to_vec());
    all
}

/// `value` as it is written in a JSON string.
fn escaped(value: &str) -> String {
    let text = serde_json::Value::from(value).to_string();
    text[1..text.len() - 1].to_owned()
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

fn digits(byte: u8, hex: &[u8; 16]) -> [u8; 2] {
    [hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]
}

fn percent(value: &str, plain: &[u8], hex: &[u8; 16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            bytes.push(byte);
        } else {
            bytes.push(b'%');
            bytes.extend(digits(byte, hex));
        }
    }
    bytes
}

/// The base64 digits that depend on `value` alone, with `before` bytes before it.
fn encoded(engine: &GeneralPurpose, value: &[u8], before: usize) -> Option<Vec<u8>> {
    let mut padded = vec![0; before];
    padded.extend(value);
    let text = engine.encode(&padded).into_bytes();
    let from = (before * 8).div_ceil(6);
    let to = padded.len() * 8 / 6;
    let part = text.get(from..to)?;
    (part.len() >= SHORTEST_PART).then(|| part.to_vec())
}
