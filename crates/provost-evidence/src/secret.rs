//! Finds secrets in free text, and removes them.
//!
//! It looks for characteristic shapes: private keys, tokens with a known prefix, signed tokens,
//! authorization headers, passwords in URLs, and values that are assigned to a name such as
//! `password` or `api_key`. Text that only mentions secrets is left alone, and so are placeholders,
//! variables and calls. A secret without such a shape is not found, unless it is [`Known`].
//!
//! Where a false alarm costs more than a miss (logs, source code) only [`evident()`] secrets count.
//!
//! # Invariants
//!
//! - The work grows with the length of the text, not with its content.
//! - Text after [`redact`] holds nothing that [`find`] finds.

use std::borrow::Cow;
use std::ops::Range;

mod assigned;
mod evident;
mod known;
mod planted;
mod scrub;
mod service;
mod shape;

pub use evident::evident;
pub use known::{DUMMY, Known, is_secret_variable};
pub use planted::{Planted, describe};
pub use scrub::Scrubber;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// The range in bytes: the value, not the name it is assigned to.
    pub range: Range<usize>,
    pub kind: SecretKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    /// A private key with its PEM armour.
    PrivateKey,
    /// A token with the known prefix of a service.
    Token,
    /// An authorization header, or its scheme and token.
    Authorization,
    /// A password in a URL.
    UrlPassword,
    /// A value that is assigned to the name of a secret.
    Assigned,
}

impl SecretKind {
    pub fn words(self) -> &'static str {
        match self {
            Self::PrivateKey => "a private key",
            Self::Token => "a token",
            Self::Authorization => "an authorization header",
            Self::UrlPassword => "a password in an address",
            Self::Assigned => "a value assigned to a secret's name",
        }
    }
}

/// The secrets in `text`, in order; none overlaps another.
pub fn find(text: &str) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    shape::find(text, &mut found);
    assigned::find(text, &mut found);
    found.sort_by_key(|secret| (secret.range.start, secret.kind));
    let mut apart: Vec<FoundSecret> = Vec::new();
    for secret in found {
        match apart.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
            }
            _ => apart.push(secret),
        }
    }
    apart
}

/// The replacement for a secret.
const REDACTED: &str = "[redacted]";

/// `text` with every secret replaced.
pub fn redact(text: &str) -> Cow<'_, str> {
    let secrets = find(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        clean.push_str(&text[from..secret.range.start]);
        clean.push_str(REDACTED);
        from = secret.range.end;
    }
    clean.push_str(&text[from..]);
    Cow::Owned(clean)
}

/// Whether `value` is a placeholder for a secret.
fn is_placeholder(value: &str) -> bool {
    let first = value.chars().next();
    let opens = first.is_none_or(|letter| "<>[{($%&#@*".contains(letter));
    let repeats = first.is_some_and(|letter| {
        "xX*.-_?".contains(letter) && value.chars().all(|other| other == letter)
    });
    opens || repeats || value.contains(REDACTED)
}

#[cfg(test)]
mod tests;
