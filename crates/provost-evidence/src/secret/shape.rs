//! Finds secrets by their characteristic shape.

use super::{FoundSecret, SecretKind, is_placeholder, service};

/// The form of a service's tokens: the prefix, and the least number of letters after it.
struct Family {
    prefix: &'static str,
    least: usize,
    /// Whether ordinary words could begin like this too.
    is_wordy: bool,
}

const fn family(prefix: &'static str, least: usize) -> Family {
    Family {
        prefix,
        least,
        is_wordy: false,
    }
}

const fn wordy(prefix: &'static str, least: usize) -> Family {
    Family {
        prefix,
        least,
        is_wordy: true,
    }
}

const FAMILIES: &[Family] = &[
    family("ghp_", 16),
    family("gho_", 16),
    family("ghu_", 16),
    family("ghs_", 16),
    family("ghr_", 16),
    family("github_pat_", 16),
    family("glpat-", 16),
    family("glsa_", 16),
    family("xoxa-", 10),
    family("xoxb-", 10),
    family("xoxe-", 10),
    family("xoxp-", 10),
    family("xoxr-", 10),
    family("xoxs-", 10),
    family("xapp-", 10),
    family("sk_live_", 10),
    family("sk_test_", 10),
    family("rk_live_", 10),
    family("whsec_", 16),
    family("shpat_", 16),
    family("dop_v1_", 16),
    family("AIza", 30),
    family("ya29.", 16),
    family("AGE-SECRET-KEY-1", 16),
    family("sk-ant-", 8),
    family("sk-proj-", 8),
    family("sk-svcacct-", 8),
    family("sk-admin-", 8),
    family("sk-or-v1-", 8),
    wordy("sk-", 16),
    wordy("npm_", 30),
    wordy("pypi-", 30),
    wordy("hf_", 20),
    wordy("SG.", 40),
];

/// Ordinary words are shorter than this.
const LONGEST_WORD: usize = 16;

pub(super) fn find(text: &str, found: &mut Vec<FoundSecret>) {
    private_keys(text, found);
    words(text, found);
    authorizations(text, found);
    addresses(text, found);
    service::marked(text, found);
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// The longest private key, with its armour.
const LONGEST_KEY: usize = 16 << 10;

fn private_keys(text: &str, found: &mut Vec<FoundSecret>) {
    let mut from = 0;
    while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
        from = at + BEGIN.len();
        if let Some(end) = armour(text.as_bytes(), at) {
            found.push(FoundSecret {
                range: at..end,
                kind: SecretKind::PrivateKey,
            });
            from = end;
        }
    }
}

/// The end of the private key whose armour begins at `at`; `None` if none does.
///
/// That is the end of its armour, or where other text begins if the armour is truncated.
fn armour(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = at + BEGIN.len();
    let body = inside + label(&bytes[inside..])?;
    let most = bytes.len().min(at + LONGEST_KEY);
    let rest = &bytes[body..most.max(body)];
    if let Some(end) = position(rest, END.as_bytes()) {
        let name = body + end + END.len();
        let close = label_end(&bytes[name..]);
        return Some(close.map_or(bytes.len().min(name), |close| name + close));
    }
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \t\r\n:,-".contains(byte);
    let run = rest.iter().position(|byte| !of_key(byte));
    Some(body + run.unwrap_or(rest.len()))
}

/// The length of a private key's label, with the dashes after it; `None` for other labels.
///
/// A label is words and nothing else, so a placeholder is never part of one.
fn label(bytes: &[u8]) -> Option<usize> {
    let end = label_end(bytes)?;
    let of_label = |byte: &u8| byte.is_ascii_alphanumeric() || b" .-".contains(byte);
    let is_label = bytes[..end].iter().all(of_label);
    position(&bytes[..end], b"PRIVATE KEY").filter(|_| is_label)?;
    Some(end)
}

/// The end of the dashes that close a label.
fn label_end(bytes: &[u8]) -> Option<usize> {
    let near = &bytes[..bytes.len().min(80)];
    position(near, b"-----").map(|at| at + 5)
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// The start of a private key whose end may still come.
pub(super) fn open_armour(bytes: &[u8]) -> Option<usize> {
    let near = bytes.len().saturating_sub(LONGEST_KEY);
    let mut from = near;
    while let Some(at) = position(&bytes[from..], BEGIN.as_bytes()).map(|at| from + at) {
        from = at + BEGIN.len();
        let is_key = label(&bytes[from..]).is_some();
        if is_key && position(&bytes[from..], END.as_bytes()).is_none() {
            return Some(at);
        }
    }
    None
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// No known token is shorter.
const SHORTEST_TOKEN: usize = 15;

/// Examines every run of letters that a token can consist of.
fn words(text: &str, found: &mut Vec<FoundSecret>) {
    let mut from = 0;
    for run in text.split(|letter: char| !letter.is_ascii() || !is_token_byte(letter as u8)) {
        let start = from;
        from = start + run.len();
        // Skip the letter that ended the run, whatever its width.
        from += text[from..].chars().next().map_or(0, char::len_utf8);
        let word = run.trim_end_matches('.');
        if word.len() < SHORTEST_TOKEN {
            continue;
        }
        let of_service =
            || service::is_token(word) || service::is_second_part(&text[..start], word);
        if is_known_token(word) || is_signed_token(word) || is_cloud_key(word) || of_service() {
            found.push(FoundSecret {
                range: start..start + word.len(),
                kind: SecretKind::Token,
            });
        }
    }
}

fn is_known_token(word: &str) -> bool {
    FAMILIES.iter().any(|family| {
        word.strip_prefix(family.prefix).is_some_and(|rest| {
            rest.len() >= family.least
                && (!family.is_wordy || is_no_word(rest))
                && rest.bytes().any(|byte| byte.is_ascii_alphanumeric())
        })
    })
}

/// Whether `text` has a digit, or more consecutive letters than words have.
fn is_no_word(text: &str) -> bool {
    let mut runs = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    text.bytes().any(|byte| byte.is_ascii_digit()) || runs.any(|run| run.len() >= LONGEST_WORD)
}

/// Three parts of base64, of which the first two begin as a JSON object does.
fn is_signed_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let mut is_object = || {
        let part = parts.next().unwrap_or_default();
        part.starts_with("eyJ") && part.len() >= 8
    };
    is_object() && is_object() && parts.next().is_some_and(|part| !part.is_empty())
}

/// The name of a cloud access key: four known letters and sixteen more.
fn is_cloud_key(word: &str) -> bool {
    let known = ["AKIA", "ASIA"].iter().any(|begin| word.starts_with(begin));
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    known && word.len() == 20 && word.bytes().all(is_upper)
}

fn is_credential_byte(byte: u8) -> bool {
    is_token_byte(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

/// The word after `at` and at least one space.
fn next_word(text: &str, at: usize) -> Option<(usize, &str)> {
    let rest = &text[at..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    if blanks == 0 {
        return None;
    }
    let rest = &rest[blanks..];
    let is_end = |byte: &u8| !is_credential_byte(*byte);
    let length = rest.bytes().position(|byte| is_end(&byte));
    let word = &rest[..length.unwrap_or(rest.len())];
    let word = word.trim_end_matches('.');
    (!word.is_empty()).then_some((at + blanks, word))
}

/// `Bearer` and `Basic` with the word after them.
fn authorizations(text: &str, found: &mut Vec<FoundSecret>) {
    let bytes = text.as_bytes();
    for scheme in ["bearer", "basic"] {
        let width = scheme.len();
        for at in 0..bytes.len().saturating_sub(width) {
            let is_here = bytes[at..at + width].eq_ignore_ascii_case(scheme.as_bytes());
            let is_inside = at > 0 && bytes[at - 1].is_ascii_alphanumeric();
            if !is_here || is_inside {
                continue;
            }
            let Some((start, word)) = next_word(text, at + width) else {
                continue;
            };
            let begins = text[..at].trim_end_matches([' ', '\t', '"', '\'']);
            let is_header = begins.ends_with(':') || begins.ends_with('=');
            if is_credential(word, is_header) && !is_placeholder(word) {
                found.push(FoundSecret {
                    range: start..start + word.len(),
                    kind: SecretKind::Authorization,
                });
            }
        }
    }
}

/// Whether a word after a scheme is a credential and not a word of a sentence.
fn is_credential(word: &str, is_header: bool) -> bool {
    let is_prose = word
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    match word.len() {
        0..6 => false,
        6..8 => is_header && !is_prose,
        _ => is_header || is_no_word(word),
    }
}

/// `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<FoundSecret>) {
    let mut from = 0;
    while let Some(at) = text[from..].find("://").map(|at| from + at + 3) {
        from = at;
        let is_end = |letter: char| letter.is_whitespace() || "/?#\"'<>`".contains(letter);
        let authority = text[at..].split(is_end).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else {
            continue;
        };
        let Some((name, password)) = user.split_once(':') else {
            continue;
        };
        if !password.is_empty() && !is_placeholder(password) {
            let start = at + name.len() + 1;
            found.push(FoundSecret {
                range: start..start + password.len(),
                kind: SecretKind::UrlPassword,
            });
        }
    }
}
