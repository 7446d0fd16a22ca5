//! Rewrites serde's errors in the terms of the format.
//!
//! Serde reports names of Rust types, and `.` for the whole document. Here they become the terms of
//! the document's author. Unknown messages are passed on unchanged.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::ReadError;
use crate::wording::closest;

/// The longest part of a value that an error shows.
const MOST: usize = 60;

/// Why a value does not fit its type, and where in the document it is.
#[derive(Debug)]
pub(super) struct Misshapen(Box<Inner>);

#[derive(Debug)]
struct Inner {
    message: String,
    /// The names and numbers that lead to the value, innermost first.
    path: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Item(usize),
    Field(String),
}

impl Misshapen {
    pub(super) fn in_item(mut self, at: usize) -> Self {
        self.0.path.push(Step::Item(at));
        self
    }

    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.0.path.push(Step::Field(name.to_owned()));
        self
    }

    /// The name itself is wrong.
    pub(super) fn of_name(self, name: &str) -> Self {
        if self.0.message.starts_with(UNKNOWN) {
            // A field that does not exist has no place; its parent has.
            return self;
        }
        self.in_field(name)
    }
}

impl From<Misshapen> for ReadError {
    fn from(Misshapen(inner): Misshapen) -> Self {
        let mut field = String::new();
        for step in inner.path.iter().rev() {
            match step {
                Step::Item(at) => field += &format!("[{at}]"),
                Step::Field(name) if field.is_empty() => field += name,
                Step::Field(name) => field += &format!(".{name}"),
            }
        }
        Self::Shape {
            field,
            what: words(&inner.message),
        }
    }
}

impl fmt::Display for Misshapen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&words(&self.0.message))
    }
}

impl std::error::Error for Misshapen {}

impl de::Error for Misshapen {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Box::new(Inner {
            message: message.to_string(),
            path: Vec::new(),
        }))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        match found {
            Unexpected::Unit => Self::custom(format!("invalid type: null, expected {wanted}")),
            _ => Self::custom(format!("invalid type: {found}, expected {wanted}")),
        }
    }
}

const UNKNOWN: &str = "unknown field ";

/// The place for people; an empty path is the whole document.
pub(super) fn place(field: &str) -> String {
    match field {
        "" => "the document".to_owned(),
        field => format!("`{field}`"),
    }
}

/// The message for people.
pub(super) fn words(message: &str) -> String {
    let Some((found, wanted)) = split(message) else {
        return message.to_owned();
    };
    for kind in ["invalid type: ", "invalid value: "] {
        if let Some(found) = found.strip_prefix(kind) {
            return format!("must be {}, not {}", wanted_kind(wanted), found_kind(found));
        }
    }
    if let Some(length) = found.strip_prefix("invalid length ") {
        let kind = wanted_kind(wanted);
        return match kind.as_str() {
            "an object" => format!("must be {kind}, not a list"),
            _ => format!("must be {kind}, not {length} values"),
        };
    }
    if let Some(value) = found.strip_prefix("unknown variant ") {
        return format!("must be {wanted}, not {}", cut(value));
    }
    if found.starts_with(UNKNOWN) {
        return format!("{}; {}", cut(found), instead(found, wanted));
    }
    message.to_owned()
}

/// The most names that are listed.
const FEW: usize = 6;

/// The valid names that an unknown field could have meant.
fn instead(found: &str, wanted: &str) -> String {
    let name = found.strip_prefix(UNKNOWN).unwrap_or(found);
    let names: Vec<&str> = wanted.split('`').skip(1).step_by(2).collect();
    if let Some(meant) = closest(name.trim_matches('`'), names.iter().copied()) {
        return format!("did you mean `{meant}`?");
    }
    if names.len() > FEW {
        return format!("`provost schema NAME` lists the {} fields", names.len());
    }
    let list = wanted.strip_prefix("one of ").unwrap_or(wanted);
    format!("the fields here are {list}")
}

/// What was found and what was expected; a value may itself contain the separator.
fn split(message: &str) -> Option<(&str, &str)> {
    message.rsplit_once(", expected ")
}

fn wanted_kind(wanted: &str) -> String {
    let first = wanted.split(' ').next().unwrap_or_default();
    let words = match wanted {
        "a sequence" => "a list",
        "a map" => "an object",
        "a string" | "string or map" => "a text",
        "a boolean" => "`true` or `false`",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "unit" => "`null`",
        _ => match first {
            "struct" | "internally" | "adjacently" => "an object",
            "enum" | "variant" | "identifier" => "a text",
            "tuple" => "a list",
            _ => wanted,
        },
    };
    words.to_owned()
}

fn found_kind(found: &str) -> String {
    let word = |kind: &str| found.strip_prefix(kind).map(str::trim);
    if found == "map" {
        "an object".to_owned()
    } else if found == "sequence" {
        "a list".to_owned()
    } else if let Some(text) = word("string ") {
        format!("the text {}", cut(text))
    } else if let Some(number) = word("integer ").or_else(|| word("floating point ")) {
        format!("the number {number}")
    } else if let Some(value) = word("boolean ") {
        value.to_owned()
    } else {
        cut(found)
    }
}

/// `text`, truncated to fit one line.
fn cut(text: &str) -> String {
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_of_the_document() {
        let cases = [
            (
                "invalid type: string \"x\", expected u8",
                "must be a whole number, 0 or more, not the text \"x\"",
            ),
            (
                "invalid type: null, expected struct AcceptanceTest",
                "must be an object, not null",
            ),
            (
                "invalid type: string \"a, expected u8\", expected a sequence",
                "must be a list, not the text \"a, expected u8\"",
            ),
            (
                "invalid type: sequence, expected internally tagged enum Mount",
                "must be an object, not a list",
            ),
            (
                "unknown variant `x`, expected `a` or `b`",
                "must be `a` or `b`, not `x`",
            ),
            (
                "unknown field `x`, expected one of `a`, `b`",
                "unknown field `x`; did you mean `a`?",
            ),
            (
                "unknown field `colour`, expected one of `a`, `b`",
                "unknown field `colour`; the fields here are `a`, `b`",
            ),
            (
                "unknown field `color`, expected one of `a`, `b`, `c`, `d`, `e`, `f`, `g`",
                "unknown field `color`; `provost schema NAME` lists the 7 fields",
            ),
            (
                "invalid length 3, expected tuple struct Pair with 2 elements",
                "must be a list, not 3 values",
            ),
            (
                "invalid length 0, expected struct Document with 23 elements",
                "must be an object, not a list",
            ),
            ("missing field `a`", "missing field `a`"),
            ("leaves the repository", "leaves the repository"),
        ];
        for (message, want) in cases {
            assert_eq!(words(message), want);
        }
        let long = format!(
            "invalid type: string \"{}\", expected a map",
            "x".repeat(999)
        );
        assert!(words(&long).len() < 120);
    }
}
