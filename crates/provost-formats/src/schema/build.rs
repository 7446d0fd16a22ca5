//! Builds the parts of schemas.

use serde_json::{Map, Value, json};

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    required: bool,
    schema: Value,
}

pub(super) fn must(name: &'static str, schema: Value) -> Field {
    Field {
        name,
        required: true,
        schema,
    }
}

/// An optional field.
pub(super) fn may(name: &'static str, schema: Value) -> Field {
    Field {
        name,
        required: false,
        schema,
    }
}

/// An object that may have other fields.
pub(super) fn open(fields: Vec<Field>) -> Value {
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let mut schema = json!({ "type": "object", "required": required });
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|field| (field.name.to_owned(), field.schema))
        .collect();
    schema["properties"] = Value::Object(properties);
    schema
}

pub(super) fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// A list that is not empty.
pub(super) fn some(items: &Value) -> Value {
    json!({ "type": "array", "items": items, "minItems": 1 })
}

/// A text that is not blank.
pub(super) fn filled() -> Value {
    json!({ "type": "string", "pattern": r"\S" })
}

pub(super) fn word<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    let words: Vec<&str> = words.into_iter().collect();
    json!({ "enum": words })
}

/// Exactly this text.
pub(super) fn only(text: &str) -> Value {
    json!({ "const": text })
}

/// `true` or `false`.
pub(super) fn flag() -> Value {
    json!({ "type": "boolean" })
}
