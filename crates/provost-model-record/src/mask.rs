//! What may differ between two runs of one agent: identifiers, times, durations, ports and
//! temporary names.
//!
//! # Invariants
//!
//! - [`TEXT_RULES`], [`FIELDS`] and [`PLACES`] are the whole mask; `docs/replay.md` lists them.
//! - A rule replaces what it matches by a word in angle brackets, and removes nothing: two texts
//!   that differ elsewhere still differ. Of a text that is a JSON document only the spaces between
//!   its parts, and the order of its fields, are not compared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// From how many bytes on the digest of a text under the mask is remembered.
const WORTH_REMEMBERING: usize = 256;

/// A rule about texts.
#[derive(Debug, Clone, Copy)]
pub struct TextRule {
    /// What it hides.
    pub hides: Hidden,
    pub pattern: &'static str,
    /// What stands there instead; `$1` is what the first group matched.
    pub shown: &'static str,
}

/// A kind of value that may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hidden {
    Id,
    Time,
    Duration,
    Port,
    TemporaryName,
}

impl Hidden {
    fn word(self) -> &'static str {
        match self {
            Self::Id => "<id>",
            Self::Time => "<time>",
            Self::Duration => "<duration>",
            Self::Port => "<port>",
            Self::TemporaryName => "<temporary>",
        }
    }
}

const fn rule(hides: Hidden, pattern: &'static str, shown: &'static str) -> TextRule {
    TextRule {
        hides,
        pattern,
        shown,
    }
}

/// The rules about texts, which apply one after the other.
pub const TEXT_RULES: [TextRule; 17] = [
    rule(
        Hidden::TemporaryName,
        r#"(^|[^\w./-])(/(?:var/)?tmp/)[^\s/"'`:;,()\[\]{}<>\\]+"#,
        "$1$2<temporary>",
    ),
    rule(
        Hidden::TemporaryName,
        r"\btmp(?:\.[A-Za-z0-9]{6,}|[a-z0-9_]{8})\b",
        "<temporary>",
    ),
    rule(
        Hidden::Port,
        r"(127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):\d{1,5}\b",
        "$1:<port>",
    ),
    rule(
        Hidden::Port,
        r"\b([Pp](?:ort|ORT)[ =:]+)\d{1,5}\b",
        "$1<port>",
    ),
    rule(
        Hidden::Id,
        r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b",
        "<id>",
    ),
    // A ULID, with or without a word before it.
    rule(
        Hidden::Id,
        r"\b([a-z]+_)?(?:[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-7][0-9a-hjkmnp-tv-z]{25})\b",
        "$1<id>",
    ),
    rule(
        Hidden::Id,
        r"\b((?:msg|resp|req|call|toolu|fc|ctc|rs|sess|thread)_)[A-Za-z0-9]{12,}\b",
        "$1<id>",
    ),
    rule(
        Hidden::Id,
        r"\b((?:[Cc]hunk|[Pp]rocess|[Ss]ession|[Jj]ob|[Tt]ask)[ _](?:id|ID)[ =:]+|(?:pid|PID)[ =:]+)[0-9a-f]+\b",
        "$1<id>",
    ),
    rule(
        Hidden::Id,
        r#"("(?:chunk|process|session|thread|turn|request)_id\\?" ?: ?\\?"?)[0-9A-Za-z-]+"#,
        "$1<id>",
    ),
    // The check number in the first line that Claude Code sends to its model.
    rule(Hidden::Id, r"\b(cch=)[0-9a-f]+", "$1<id>"),
    rule(
        Hidden::Time,
        r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?\b",
        "<time>",
    ),
    rule(
        Hidden::Time,
        r"(?:\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? +)?\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t|tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?) +\d{1,2}\b(?:,? +\d{4}\b)?(?:,? +\d{1,2}:\d{2}(?::\d{2})?)?(?: ?[AP]M)?(?: [A-Z]{3,4} \d{4}\b)?",
        "<time>",
    ),
    rule(Hidden::Time, r"\b\d{1,2}/\d{1,2}/\d{4}\b", "<time>"),
    rule(
        Hidden::Time,
        r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?(?: ?[AP]M)?| ?[AP]M)\b",
        "<time>",
    ),
    // Seconds, milliseconds, microseconds or nanoseconds since 1970.
    rule(
        Hidden::Time,
        r"(^|[^0-9A-Za-z.])1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?",
        "$1<time>",
    ),
    rule(
        Hidden::Duration,
        r#"("(?:[a-z_]+_)?(?:duration|elapsed|wall_time)(?:_[a-z]+)?\\?" ?: ?)\d+(?:\.\d+)?(?:e-?\d+)?"#,
        "$1<duration>",
    ),
    rule(
        Hidden::Duration,
        r"\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?)\b",
        "<duration>",
    ),
];

/// Fields with a value that is one number or one text, at any place, which is hidden whole.
pub const FIELDS: [(&str, Hidden); 17] = [
    ("chunk_id", Hidden::Id),
    ("session_id", Hidden::Id),
    ("thread_id", Hidden::Id),
    ("turn_id", Hidden::Id),
    ("request_id", Hidden::Id),
    ("user_prompt_id", Hidden::Id),
    ("pid", Hidden::Id),
    ("timestamp", Hidden::Time),
    ("ts", Hidden::Time),
    ("created", Hidden::Time),
    ("created_at", Hidden::Time),
    ("started_at", Hidden::Time),
    ("duration_ms", Hidden::Duration),
    ("duration_seconds", Hidden::Duration),
    ("elapsed_ms", Hidden::Duration),
    ("wall_time_seconds", Hidden::Duration),
    ("port", Hidden::Port),
];

/// Places of a request that are hidden with everything below them, by JSON pointer.
pub const PLACES: [(&str, Hidden); 5] = [
    ("/metadata", Hidden::Id),
    ("/client_metadata", Hidden::Id),
    ("/prompt_cache_key", Hidden::Id),
    ("/safety_identifier", Hidden::Id),
    ("/user", Hidden::Id),
];

/// The places of the output limit, which the proxy may lower.
pub(crate) const OUTPUT_LIMITS: [&str; 4] = [
    "/max_tokens",
    "/max_output_tokens",
    "/max_completion_tokens",
    "/generationConfig/maxOutputTokens",
];

/// The rules, ready to use; a test sees that all of them are there.
fn compiled() -> &'static [(Regex, &'static str)] {
    static RULES: OnceLock<Vec<(Regex, &'static str)>> = OnceLock::new();
    RULES.get_or_init(|| {
        let rules = TEXT_RULES.iter();
        let ready = rules.filter_map(|rule| Some((Regex::new(rule.pattern).ok()?, rule.shown)));
        ready.collect()
    })
}

/// How deep documents in texts of documents are read.
const MOST_NESTED: usize = 3;

/// `text` under the mask. A text that is a JSON object or list is read as one.
pub fn text(text: &str) -> String {
    nested_text(text, 0)
}

fn nested_text(text: &str, depth: usize) -> String {
    if depth < MOST_NESTED
        && text.starts_with(['{', '['])
        && let Ok(mut value) = serde_json::from_str::<Value>(text)
    {
        walk(&mut value, depth + 1);
        return value.to_string();
    }
    let mut masked = Cow::Borrowed(text);
    for (pattern, shown) in compiled() {
        if let Cow::Owned(changed) = pattern.replace_all(&masked, *shown) {
            masked = Cow::Owned(changed);
        }
    }
    masked.into_owned()
}

/// The request `value` under the mask; `lowered` if its output limit may differ, too.
pub fn request(mut value: Value, lowered: bool) -> Value {
    hide_places(&mut value, lowered);
    walk(&mut value, 0);
    value
}

fn hide_places(value: &mut Value, lowered: bool) {
    for (place, hidden) in PLACES {
        hide(value, place, hidden.word());
    }
    if lowered {
        for place in OUTPUT_LIMITS {
            hide(value, place, "<limit>");
        }
    }
}

/// What the field `name` hides, if it is one number or one text.
fn hidden(name: &str, field: &Value) -> Option<Hidden> {
    let known = FIELDS.iter().find(|(known, _)| *known == name);
    let known = known.filter(|_| field.is_number() || field.is_string());
    known.map(|(_, hidden)| *hidden)
}

fn hide(value: &mut Value, place: &str, word: &str) {
    if let Some(found) = value.pointer_mut(place) {
        *found = Value::from(word);
    }
}

fn walk(value: &mut Value, depth: usize) {
    match value {
        Value::String(words) => *words = nested_text(words, depth),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, depth)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match hidden(name, field) {
                    Some(hidden) => *field = Value::from(hidden.word()),
                    None => walk(field, depth),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Makes digests of requests under the mask, and remembers those of long texts: each request of a
/// conversation repeats all texts before it.
#[derive(Debug, Default)]
pub(crate) struct MaskedDigests {
    texts: HashMap<[u8; 32], [u8; 32]>,
}

impl MaskedDigests {
    /// The digest of the request `value` under the mask.
    pub(crate) fn of(&mut self, mut value: Value, lowered: bool) -> [u8; 32] {
        hide_places(&mut value, lowered);
        let mut digest = Sha256::new();
        self.add(&mut digest, &value);
        digest.finalize().into()
    }

    fn add(&mut self, digest: &mut Sha256, value: &Value) {
        match value {
            Value::String(words) => {
                digest.update(b"s");
                digest.update(self.masked(words));
            }
            Value::Array(items) => {
                digest.update(format!("[{},", items.len()));
                for item in items {
                    self.add(digest, item);
                }
            }
            Value::Object(fields) => {
                digest.update(format!("{{{},", fields.len()));
                for (name, field) in fields {
                    digest.update(Sha256::digest(name));
                    match hidden(name, field) {
                        Some(hidden) => digest.update(format!("h{hidden:?},")),
                        None => self.add(digest, field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => digest.update(format!("v{value},")),
        }
    }

    fn masked(&mut self, words: &str) -> [u8; 32] {
        if words.len() < WORTH_REMEMBERING {
            return Sha256::digest(text(words)).into();
        }
        let plain: [u8; 32] = Sha256::digest(words).into();
        let digest = || Sha256::digest(text(words)).into();
        *self.texts.entry(plain).or_insert_with(digest)
    }
}

#[cfg(test)]
mod tests;
