//! Decides whether a schema that a repository wrote can be held against a document.
//!
//! # Invariants
//!
//! - A keyword that the validator does not know, or knows in another meaning, refuses the schema:
//!   it would be a rule that is never checked.
//! - There are no references, so the work is bounded by the size of schema and document.

use serde_json::{Map, Value};

use super::leaf::{FORMATS, PATTERNS};
use super::rules::Kind;
use crate::json;

/// Keywords that only describe.
const NOTES: [&str; 8] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "title",
];

/// Checks that `text` is the schema of an object, in keywords that are understood.
pub fn check(text: &str) -> Result<(), String> {
    let schema = json::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it does not say `\"type\": \"object\"`".to_owned());
    }
    walk(&schema, "")
}

fn walk(schema: &Value, place: &str) -> Result<(), String> {
    let words = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(words) => words,
        _ => return Err(format!("`{place}` is no schema")),
    };
    if words.contains_key("enum") && words.contains_key("anyOf") {
        return Err(format!("`{place}` has both `enum` and `anyOf`"));
    }
    for (word, value) in words {
        let here = format!("{place}/{word}");
        let fits = match word.as_str() {
            word if NOTES.contains(&word) => true,
            "const" => true,
            "type" => is_type(value),
            "required" => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            "enum" => value.as_array().is_some_and(|list| !list.is_empty()),
            "minItems" | "maxItems" | "minLength" | "maxLength" => value.is_u64(),
            "minimum" | "maximum" => value.is_number(),
            "pattern" => PATTERNS.iter().any(|known| *value == known.pattern),
            "format" => FORMATS.iter().any(|known| *value == known.name),
            "items" | "additionalProperties" => {
                walk(value, &here)?;
                true
            }
            "properties" => every(value.as_object(), &here)?,
            "anyOf" => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for (at, choice) in list.iter().enumerate() {
                    walk(choice, &format!("{here}/{at}"))?;
                }
                !list.is_empty()
            }
            _ => return Err(format!("`{here}` is a keyword that is not understood")),
        };
        if !fits {
            return Err(format!("`{here}` has a value that is not understood"));
        }
    }
    Ok(())
}

fn every(fields: Option<&Map<String, Value>>, place: &str) -> Result<bool, String> {
    for (name, schema) in fields.into_iter().flatten() {
        walk(schema, &format!("{place}/{name}"))?;
    }
    Ok(fields.is_some())
}

fn is_type(value: &Value) -> bool {
    let known = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        !matches!(Kind::of(name), Kind::Unknown)
    };
    match value {
        Value::Array(list) => !list.is_empty() && list.iter().all(known),
        one => known(one),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn a_schema_is_usable_only_if_every_keyword_is_understood() {
        let cases = [
            ("an object", json!({ "type": "object" }), true),
            (
                "fields",
                json!({ "type": "object", "title": "t", "required": ["a"], "additionalProperties":
                    false, "properties": { "a": { "type": ["string", "null"], "minLength": 1 },
                    "b": { "type": "array", "items": { "enum": [1, 2] } } } }),
                true,
            ),
            ("no object", json!({ "type": "array" }), false),
            ("no type", json!({}), false),
            (
                "an unknown keyword",
                json!({ "type": "object", "not": {} }),
                false,
            ),
            (
                "a reference",
                json!({ "type": "object", "$ref": "#/$defs/a" }),
                false,
            ),
            (
                "one of several",
                json!({ "type": "object", "oneOf": [{ "type": "object" }] }),
                false,
            ),
            (
                "an unknown pattern below",
                json!({ "type": "object", "properties": { "a": { "pattern": "^x" } } }),
                false,
            ),
            (
                "an unknown format",
                json!({ "type": "object", "properties": { "a": { "format": "email" } } }),
                false,
            ),
            (
                "a number for a list",
                json!({ "type": "object", "required": 3 }),
                false,
            ),
            (
                "an unknown type",
                json!({ "type": "object", "properties":
                { "a": { "type": "text" } } }),
                false,
            ),
            (
                "two choices",
                json!({ "type": "object", "enum": [1], "anyOf": [{ "const": 2 }] }),
                false,
            ),
        ];
        for (name, schema, want) in cases {
            let found = check(&schema.to_string());
            assert_eq!(found.is_ok(), want, "{name}: {found:?}");
        }
        assert!(check("{").is_err());
        assert!(check(r#"{"type":"object","type":"object"}"#).is_err());
    }
}
