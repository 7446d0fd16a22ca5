//! Finds secrets that are evident without asking a person.
//!
//! Logs and source code are full of tokens in parsers and passwords in examples. Only values that a
//! machine made, and private keys in their armour, count here.

use super::{FoundSecret, SecretKind, find};

/// The shortest value that counts only because of the name it is assigned to.
const SHORTEST: usize = 16;
/// The longest run of lower-case or of upper-case letters in a machine-made value.
const LONGEST_WORD: usize = 7;
/// The shortest line of a private key.
const ARMOUR: usize = 32;

/// Words in values that are examples.
const FAKE: &[&str] = &[
    "example",
    "dummy",
    "fake",
    "sample",
    "placeholder",
    "changeme",
    "change-me",
    "redacted",
    "your",
    "xxxx",
    "1234567",
    "abcdef",
];

/// The secrets in `text` that are very unlikely to be anything else, in order.
pub fn evident(text: &str) -> Vec<FoundSecret> {
    let mut found = find(text);
    found.retain(|secret| {
        let value = &text[secret.range.clone()];
        match secret.kind {
            SecretKind::PrivateKey => has_body(value),
            SecretKind::Token => !is_fake(value),
            SecretKind::Authorization | SecretKind::UrlPassword | SecretKind::Assigned => {
                is_made(value)
            }
        }
    });
    found
}

/// Whether there is a line between its ends that could be a key.
fn has_body(armour: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+/".contains(letter);
    let mut runs = armour.split(|letter| !is_letter(letter));
    runs.any(|run| run.len() >= ARMOUR)
}

/// Whether a value says that it is an example, or has very few different letters.
fn is_fake(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut letters: Vec<u8> = lower.bytes().collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len() <= 5 || FAKE.iter().any(|word| lower.contains(word))
}

/// Whether a value looks machine-made.
fn is_made(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+=~:".contains(&byte);
    let count = |kind: fn(&u8) -> bool| value.bytes().filter(kind).count();
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let bytes = value.as_bytes();
    let turns = bytes
        .windows(2)
        .filter(|two| class(two[0]) != class(two[1]));
    let words = value.split(|letter: char| !letter.is_ascii_lowercase());
    let shouts = value.split(|letter: char| !letter.is_ascii_uppercase());
    let longest = words.chain(shouts).map(str::len).max().unwrap_or(0);
    value.len() >= SHORTEST
        && value.bytes().all(plain)
        && count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_alphabetic) >= 2
        && turns.count() >= 4
        && longest <= LONGEST_WORD
        && !is_unique_id(value)
        && !is_fake(value)
}

/// Whether a value has the form of a UUID, which is an identifier.
fn is_unique_id(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| hex(part))
}
