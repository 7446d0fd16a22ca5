//! Validates a document against a schema, and reports all problems.
//!
//! Only the keywords that Provost's own schemas use are implemented; a test checks that. An unknown
//! keyword would be a rule that is never checked.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::board::row::{self, TaskId};
use crate::bundle::report::{Sha256, Time};
use crate::object::Oid;
use crate::wording::closest;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// As a JSON pointer.
    pub path: String,
    pub problem: String,
}

/// The most problems of one document that are listed.
const MOST: usize = 1000;

/// A pattern of the schemas, and its implementation.
type Pattern = (&'static str, fn(&str) -> bool);

pub(super) const PATTERNS: [Pattern; 7] = [
    ("^[0-9A-Fa-f]{64}$", |text| {
        Sha256::try_from(text.to_owned()).is_ok()
    }),
    ("^([0-9a-f]{40}|[0-9a-f]{64})$", |text| {
        Oid::try_from(text).is_ok()
    }),
    ("^[A-Za-z0-9._-]+$", |text| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    }),
    (r"\S", |text| !text.trim().is_empty()),
    ("^[0-9a-fA-F-]{36}$", row::is_loose_uuid),
    ("^(T-[0-9]+|[0-9a-fA-F-]{36})$", |text| {
        TaskId::parse(text).is_some()
    }),
    (r"^1\.[0-9]+\.[0-9]+$", |text| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let mut parts = text.split('.');
        parts.next() == Some("1") && parts.clone().count() == 2 && parts.all(is_number)
    }),
];

pub fn validate(schema: &Value, value: &Value) -> Vec<Misfit> {
    let mut check = Check {
        root: schema,
        problems: Vec::new(),
    };
    check.visit(schema, value, "");
    check.problems
}

struct Check<'a> {
    root: &'a Value,
    problems: Vec<Misfit>,
}

impl<'a> Check<'a> {
    fn add(&mut self, path: &str, problem: impl Into<String>) {
        if self.problems.len() < MOST {
            self.problems.push(Misfit {
                path: path.to_owned(),
                problem: problem.into(),
            });
        }
    }

    fn visit(&mut self, schema: &'a Value, value: &Value, path: &str) {
        let Value::Object(words) = schema else {
            if schema == &Value::Bool(false) {
                self.add(path, "is not allowed");
            }
            return;
        };
        if let Some(name) = words.get("$ref").and_then(Value::as_str) {
            let target = name.strip_prefix('#').and_then(|at| self.root.pointer(at));
            match target {
                Some(target) => self.visit(target, value, path),
                None => self.add(path, format!("the schema has no `{name}`")),
            }
        }
        if let Some(kind) = words.get("type")
            && !kinds(kind).any(|kind| is_of(value, kind))
        {
            let wanted: Vec<&str> = kinds(kind).collect();
            let problem = format!("is {}; {} is asked for", name(value), wanted.join(" or "));
            return self.add(path, problem);
        }
        self.choose(words, value, path);
        match value {
            Value::Object(members) => self.object(words, members, path),
            Value::Array(items) => self.array(words, items, path),
            Value::String(text) => self.text(words, text, path),
            Value::Number(number) => self.number(words, number, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `const`, `enum`, `anyOf` and `oneOf`.
    fn choose(&mut self, words: &'a Map<String, Value>, value: &Value, path: &str) {
        if words.get("const").is_some_and(|only| only != value) {
            self.add(path, format!("is not {}", words["const"]));
        }
        if let Some(Value::Array(list)) = words.get("enum")
            && !list.contains(value)
        {
            self.add(path, format!("is none of {}", texts(list)));
        }
        for word in ["anyOf", "oneOf"] {
            let Some(Value::Array(choices)) = words.get(word) else {
                continue;
            };
            let flaws = |choice| {
                let mut alone = Check {
                    root: self.root,
                    problems: Vec::new(),
                };
                alone.visit(choice, value, path);
                alone.problems
            };
            let all: Vec<Vec<Misfit>> = choices.iter().map(flaws).collect();
            if all.iter().any(Vec::is_empty) {
                continue;
            }
            let named: Vec<Value> = choices
                .iter()
                .filter_map(|choice| choice.get("const").cloned())
                .collect();
            if named.len() == choices.len() {
                self.add(path, format!("is none of {}", texts(&named)));
            } else {
                // The first choice is the intended one; the others are ways to leave it out.
                self.problems
                    .extend(all.into_iter().next().unwrap_or_default());
            }
        }
    }

    fn object(&mut self, words: &'a Map<String, Value>, members: &Map<String, Value>, path: &str) {
        if let Some(Value::Array(required)) = words.get("required") {
            for name in required.iter().filter_map(Value::as_str) {
                if !members.contains_key(name) {
                    self.add(&format!("{path}/{}", escape(name)), "is missing");
                }
            }
        }
        let fields = words.get("properties").and_then(Value::as_object);
        let others = words.get("additionalProperties");
        let prefixed = words.get("patternProperties").and_then(Value::as_object);
        for (name, value) in members {
            let below = format!("{path}/{}", escape(name));
            let field = fields.and_then(|fields| fields.get(name));
            match (field.or_else(|| of_prefix(prefixed, name)), others) {
                (Some(field), _) => self.visit(field, value, &below),
                (None, Some(Value::Bool(false))) => self.add(&below, unknown(name, fields)),
                (None, Some(other)) => self.visit(other, value, &below),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, words: &'a Map<String, Value>, items: &[Value], path: &str) {
        if (items.len() as u64) < limit(words, "minItems") {
            self.add(path, "is an empty list");
        }
        if words.contains_key("maxItems") && items.len() as u64 > limit(words, "maxItems") {
            self.add(path, format!("has more than {} items", words["maxItems"]));
        }
        if let Some(item) = words.get("items") {
            for (index, value) in items.iter().enumerate() {
                self.visit(item, value, &format!("{path}/{index}"));
            }
        }
    }

    fn text(&mut self, words: &Map<String, Value>, text: &str, path: &str) {
        let least = limit(words, "minLength");
        if (text.chars().count() as u64) < least {
            self.add(path, format!("has fewer than {least} characters"));
        }
        if words.contains_key("maxLength")
            && text.chars().count() as u64 > limit(words, "maxLength")
        {
            let problem = format!("has more than {} characters", words["maxLength"]);
            self.add(path, problem);
        }
        let pattern = words.get("pattern").and_then(Value::as_str);
        let known = PATTERNS.iter().find(|(name, _)| Some(*name) == pattern);
        if pattern.is_some() && !known.is_some_and(|(_, fits)| fits(text)) {
            let pattern = pattern.unwrap_or_default();
            self.add(path, format!("does not look like {pattern}"));
        }
        if words
            .get("format")
            .is_some_and(|format| format == "date-time")
            && Time::try_from(text).is_err()
        {
            self.add(path, "is not a time as RFC 3339 writes it");
        }
    }

    fn number(&mut self, words: &Map<String, Value>, number: &serde_json::Number, path: &str) {
        let bound = |word: &str| words.get(word).and_then(Value::as_f64);
        let value = number.as_f64().unwrap_or(f64::NAN);
        if let Some(least) = bound("minimum").filter(|least| value < *least) {
            self.add(path, format!("is less than {least}"));
        }
        if let Some(most) = bound("maximum").filter(|most| value > *most) {
            self.add(path, format!("is more than {most}"));
        }
        let widest = match words.get("format").and_then(Value::as_str) {
            Some("uint32") => f64::from(u32::MAX),
            Some("int32") => f64::from(i32::MAX),
            _ => return,
        };
        if value > widest {
            self.add(path, format!("is more than {widest}"));
        }
    }
}

/// The schema from `patternProperties` for a field; all patterns of the schemas are prefixes.
fn of_prefix<'a>(patterns: Option<&'a Map<String, Value>>, name: &str) -> Option<&'a Value> {
    let begins = |pattern: &String| {
        let beginning = pattern.strip_prefix('^');
        beginning.is_some_and(|beginning| name.starts_with(beginning))
    };
    let mut patterns = patterns.into_iter().flatten();
    patterns
        .find(|(pattern, _)| begins(pattern))
        .map(|(_, schema)| schema)
}

/// The message for a field that the schema does not have.
fn unknown(name: &str, fields: Option<&Map<String, Value>>) -> String {
    let names = fields.into_iter().flat_map(Map::keys).map(String::as_str);
    match closest(name, names) {
        Some(meant) => format!("is an unknown field; did you mean `{meant}`?"),
        None => "is an unknown field".to_owned(),
    }
}

fn limit(words: &Map<String, Value>, word: &str) -> u64 {
    words.get(word).and_then(Value::as_u64).unwrap_or_default()
}

fn kinds(kind: &Value) -> impl Iterator<Item = &str> {
    let one = kind.as_str();
    let many = kind.as_array().into_iter().flatten();
    one.into_iter().chain(many.filter_map(Value::as_str))
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // Provost's parsers accept no fraction as an integer, not even `1.0`.
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn texts(list: &[Value]) -> String {
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    list.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// `name` as a part of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
