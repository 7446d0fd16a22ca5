//! Parses JSON so that it has one meaning, and writes it so that it has one spelling.
//!
//! Other parsers let the last of two equal keys win, or recurse until the stack overflows. Here a
//! text with either is refused, so every parser reads the document that was judged. The memory that
//! a text can take is limited as well.

mod deserialize;
mod quick;
mod shape;

use std::borrow::Cow;
use std::cell::Cell;

use serde::de::{DeserializeOwned, DeserializeSeed as _};
use serde_json::Value;

pub use node::{Fields, Node};

use deserialize::Place;
use node::Reader;

mod node;

/// The largest JSON document that is read, in bytes.
pub const LARGEST: usize = 16 * 1024 * 1024;

/// The deepest nesting that is read.
pub const DEEPEST: usize = 64;

/// The most values that are read: a short text can need a hundred times its length in memory.
pub const MOST: usize = 500_000;

/// Why a document is not read, in whatever format it is written.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the document has {bytes} bytes; at most {most} are read")]
    TooLarge { bytes: usize, most: usize },
    #[error("the document is not UTF-8 (byte {0})")]
    NotText(usize),
    /// Not of its format, a repeated key, or nested too deep.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        what: String,
    },
    /// Readable, but not of the required shape.
    #[error("{}: {what}", shape::place(field))]
    Shape {
        /// The field, as a path from the root; empty for the document itself.
        field: String,
        what: String,
    },
}

/// Parses one document of any shape.
pub fn parse(bytes: &[u8]) -> Result<Value, ReadError> {
    read(bytes).map(Node::into_value)
}

/// Parses one document of any shape, without copying more of it than needed.
pub fn read(bytes: &[u8]) -> Result<Node<'_>, ReadError> {
    within(text(bytes, LARGEST)?, MOST)
}

fn within(text: &str, most: usize) -> Result<Node<'_>, ReadError> {
    match quick::read(text, most) {
        Some(node) => Ok(node),
        None => careful(text, most),
    }
}

/// The text of a document that may have `most` bytes.
pub fn text(bytes: &[u8], most: usize) -> Result<&str, ReadError> {
    if bytes.len() > most {
        let bytes = bytes.len();
        return Err(ReadError::TooLarge { bytes, most });
    }
    std::str::from_utf8(bytes).map_err(|error| ReadError::NotText(error.valid_up_to()))
}

/// Parses a text that the quick parser did not accept, and reports what is wrong with it.
fn careful(text: &str, most: usize) -> Result<Node<'_>, ReadError> {
    let syntax = |error: serde_json::Error| {
        let whole = error.to_string();
        let what = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
        ReadError::Syntax {
            line: error.line(),
            column: error.column(),
            what,
        }
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let left = Cell::new(most);
    let node = Reader::new(&left)
        .deserialize(&mut reader)
        .map_err(syntax)?;
    reader.end().map_err(syntax)?;
    Ok(node)
}

/// Parses one document of the type `T`; an error names the field.
pub fn parse_as<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    from_node(&read(bytes)?)
}

/// Parses a document of any size that this program wrote itself.
pub fn parse_own<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    from_node(&within(text(bytes, usize::MAX)?, usize::MAX)?)
}

/// Reads `value` as `T`; an error names the field.
pub fn from_value<'a, T: DeserializeOwned>(value: impl Into<Node<'a>>) -> Result<T, ReadError> {
    from_node(&value.into())
}

/// Reads `node` as `T`; an error names the field.
pub fn from_node<T: DeserializeOwned>(node: &Node<'_>) -> Result<T, ReadError> {
    T::deserialize(Place::Value(node)).map_err(ReadError::from)
}

/// Reads a value that has the name of its variant beside it.
pub fn from_tagged<T: DeserializeOwned>(tag: &str, content: Node<'_>) -> Result<T, ReadError> {
    let fields = vec![(Cow::Borrowed(tag), content)];
    from_node(&Node::Object(Fields::of(fields)))
}

/// The canonical spelling of `value`, which is hashed: keys sorted, no spaces.
///
/// Maps of `serde_json` are sorted unless its feature `preserve_order` is on; a test checks that.
pub fn canonical(value: &Value) -> String {
    value.to_string()
}

/// `document` as text for people and files: indented, keys sorted, with a line end.
pub fn pretty(document: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    Ok(format!("{:#}\n", serde_json::to_value(document)?))
}

/// [`canonical`] for the fields of an object.
pub fn canonical_object(fields: &serde_json::Map<String, Value>) -> String {
    // Maps of strings and values always serialise.
    serde_json::to_string(fields).unwrap_or_default()
}

/// Where `given` has a list although the parsed value has an object, as a JSON pointer.
///
/// Deserializers made by serde also accept the fields of an object as a list, in declaration order.
/// Such a document would change its meaning as soon as a field is added.
pub fn positional(given: &Value, read: &Value) -> Option<String> {
    match (given, read) {
        (Value::Array(_), Value::Object(_)) => Some(String::new()),
        (Value::Array(given), Value::Array(read)) => {
            let mut pairs = given.iter().zip(read).enumerate();
            pairs.find_map(|(at, (given, read))| {
                positional(given, read).map(|rest| format!("/{at}{rest}"))
            })
        }
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, given)| {
            let rest = positional(given, read.get(name)?)?;
            Some(format!("/{name}{rest}"))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_two_meanings_is_refused() {
        let cases = [
            (
                r#"{"a":1,"a":2}"#,
                "line 1, column 13: the key `a` is there twice",
            ),
            (
                r#"{"a":{"b":1,"b":1}}"#,
                "line 1, column 18: the key `b` is there twice",
            ),
            ("", "line 1, column 0: EOF while parsing a value"),
            ("{} {}", "line 1, column 4: trailing characters"),
            ("[1,]", "line 1, column 4: trailing comma"),
        ];
        for (text, want) in cases {
            assert_eq!(
                parse(text.as_bytes()).unwrap_err().to_string(),
                want,
                "{text}"
            );
        }
        let deep = format!("{}{}", "[".repeat(DEEPEST + 2), "]".repeat(DEEPEST + 2));
        assert!(
            parse(deep.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("nested deeper")
        );
        let very_deep = "[".repeat(1_000_000);
        assert!(parse(very_deep.as_bytes()).is_err());
        assert!(matches!(parse(b"\"\xff\""), Err(ReadError::NotText(1))));
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        // The list itself is a value, too.
        assert!(parse(list(MOST - 1).as_bytes()).is_ok());
        let error = parse(list(MOST).as_bytes()).unwrap_err().to_string();
        assert!(error.ends_with("more than 500000 values"), "{error}");
    }

    #[test]
    fn the_field_that_does_not_fit_is_named() {
        #[derive(Debug, serde::Deserialize)]
        struct Inner {
            #[expect(dead_code, reason = "only its shape matters here")]
            count: u8,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[expect(dead_code, reason = "only its shape matters here")]
            rows: Vec<Inner>,
        }
        let error = parse_as::<Outer>(br#"{"rows":[{"count":"x"}]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`rows[0].count`: must be a whole number, 0 or more, not the text \"x\""
        );
    }

    #[test]
    fn the_canonical_spelling_sorts_keys() {
        let value = parse(br#"{ "b": [1, {"d": 1, "c": null}], "a": "\u00e9" }"#).unwrap();
        assert_eq!(canonical(&value), r#"{"a":"é","b":[1,{"c":null,"d":1}]}"#);
    }
}
