//! Makes a document that is valid under a schema and has every field of it.

use serde_json::{Map, Value, json};

pub(super) fn of(schema: &Value) -> Value {
    make(schema, schema)
}

fn make(root: &Value, schema: &Value) -> Value {
    let Value::Object(words) = schema else {
        return json!("anything");
    };
    let target = words.get("$ref").and_then(Value::as_str);
    if let Some(target) = target.and_then(|name| root.pointer(name.trim_start_matches('#'))) {
        return make(root, target);
    }
    if let Some(only) = words.get("const") {
        return only.clone();
    }
    for word in ["enum", "anyOf", "oneOf"] {
        if let Some(first) = words.get(word).and_then(|list| list.get(0)) {
            return if word == "enum" {
                first.clone()
            } else {
                make(root, first)
            };
        }
    }
    match kind(words) {
        "object" => object(root, words),
        "array" => match words.get("items") {
            Some(item) => json!([make(root, item)]),
            None => json!(["anything"]),
        },
        "boolean" => json!(true),
        "integer" | "number" => words.get("minimum").cloned().unwrap_or(json!(1)),
        "null" => Value::Null,
        _ => json!(text(words)),
    }
}

fn kind(words: &Map<String, Value>) -> &str {
    let kind = words.get("type");
    let first = kind.and_then(|kind| kind.get(0)).or(kind);
    let named = first.and_then(Value::as_str);
    named.unwrap_or(if words.contains_key("properties") {
        "object"
    } else {
        "string"
    })
}

fn object(root: &Value, words: &Map<String, Value>) -> Value {
    let mut fields = Map::new();
    if let Some(Value::Object(properties)) = words.get("properties") {
        for (name, schema) in properties {
            fields.insert(name.clone(), make(root, schema));
        }
    }
    if let Some(other @ Value::Object(_)) = words.get("additionalProperties") {
        fields.insert("any".to_owned(), make(root, other));
        // Maps of digests may have required keys.
        let required = words.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let entry = fields.entry(name.to_owned());
            entry.or_insert_with(|| make(root, other));
        }
    }
    Value::Object(fields)
}

fn text(words: &Map<String, Value>) -> String {
    let pattern = words.get("pattern").and_then(Value::as_str);
    match pattern {
        Some(pattern) if pattern.contains("{64}$") && !pattern.contains("{40}") => "ab".repeat(32),
        Some(pattern) if pattern.contains("{40}") => "ab".repeat(20),
        _ if words
            .get("format")
            .is_some_and(|format| format == "date-time") =>
        {
            "2026-01-31T12:00:00Z".to_owned()
        }
        _ => "anything".to_owned(),
    }
}
