//! A schema in the form that documents are compared with.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::leaf::{FORMATS, PATTERNS, TextFormat, TextPattern};
use crate::json::Node;
use crate::words;

/// The rules of one schema.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) root: Rule,
    /// What `$ref` can name.
    pub(super) parts: BTreeMap<String, Rule>,
}

/// The fields that are judged before all others, because they say what the others mean.
const HEADER: [&str; 3] = ["schema_version", "generated_at", "run_id"];

#[derive(Debug, Default)]
pub(super) struct Rule {
    /// Nothing matches.
    pub(super) never: bool,
    pub(super) reference: Option<String>,
    /// Any of these; empty for all.
    pub(super) kinds: Vec<Kind>,
    pub(super) only: Option<(Value, Node<'static>)>,
    pub(super) choices: Option<(Vec<Value>, Vec<Node<'static>>)>,
    /// One list for `anyOf`, one for `oneOf`.
    pub(super) any: Vec<Vec<Self>>,
    /// Required ones first, in the order of the schema.
    pub(super) fields: Vec<Field>,
    /// Rules for fields whose names begin with a text.
    pub(super) prefixed: Vec<(String, Self)>,
    /// The rule for all other fields.
    pub(super) others: Option<Box<Self>>,
    pub(super) items: Option<Box<Self>>,
    pub(super) least_items: u64,
    pub(super) most_items: Option<u64>,
    pub(super) least_length: u64,
    pub(super) most_length: Option<u64>,
    /// The pattern, with its implementation.
    pub(super) pattern: Option<(String, Option<&'static TextPattern>)>,
    pub(super) format: Option<&'static TextFormat>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) rule: Rule,
}

impl Rules {
    pub(super) fn new(schema: &Value) -> Self {
        let named = schema.get("$defs").and_then(Value::as_object);
        let part = |(name, schema): (&String, &Value)| (format!("#/$defs/{name}"), rule(schema));
        Self {
            root: rule(schema),
            parts: named.into_iter().flatten().map(part).collect(),
        }
    }
}

fn rule(schema: &Value) -> Rule {
    let Value::Object(words) = schema else {
        return Rule {
            never: schema == &Value::Bool(false),
            ..Rule::default()
        };
    };
    let text = |word: &str| words.get(word).and_then(Value::as_str);
    let count = |word: &str| words.get(word).and_then(Value::as_u64);
    let below = |word: &str| words.get(word).map(|schema| Box::new(rule(schema)));
    let list = |word: &str| words.get(word).and_then(Value::as_array);
    let format = text("format");
    let widest = match format {
        Some("uint32") => Some(f64::from(u32::MAX)),
        Some("int32") => Some(f64::from(i32::MAX)),
        _ => None,
    };
    let mut any: Vec<&Vec<Value>> = ["anyOf", "oneOf"].into_iter().filter_map(list).collect();
    // A choice among constants is an enumeration whose values have descriptions.
    let constant: Option<Vec<Value>> = any.iter().find_map(|list| constants(list));
    any.retain(|list| constants(list).is_none());
    let choices = list("enum").cloned().or(constant);
    let pattern = |name: &str| {
        let known = PATTERNS.iter().find(|known| known.pattern == name);
        (name.to_owned(), known)
    };
    let nodes = |list: Vec<Value>| {
        let nodes = list.iter().cloned().map(Node::from).collect();
        (list, nodes)
    };
    Rule {
        never: false,
        reference: text("$ref").map(str::to_owned),
        kinds: words.get("type").map(kinds).unwrap_or_default(),
        only: words
            .get("const")
            .map(|only| (only.clone(), Node::from(only.clone()))),
        choices: choices.map(nodes),
        any: any
            .into_iter()
            .map(|list| list.iter().map(rule).collect())
            .collect(),
        fields: fields(words),
        prefixed: prefixed(words),
        others: below("additionalProperties"),
        items: below("items"),
        least_items: count("minItems").unwrap_or_default(),
        most_items: count("maxItems"),
        least_length: count("minLength").unwrap_or_default(),
        most_length: count("maxLength"),
        pattern: text("pattern").map(pattern),
        format: FORMATS.iter().find(|known| Some(known.name) == format),
        minimum: words.get("minimum").and_then(Value::as_f64),
        maximum: words.get("maximum").and_then(Value::as_f64).or(widest),
    }
}

/// The values of `choices`, if each is a constant or an enumeration.
fn constants(choices: &[Value]) -> Option<Vec<Value>> {
    let values = |choice: &Value| match (choice.get("const"), choice.get("enum")) {
        (Some(only), _) => Some(vec![only.clone()]),
        (None, Some(Value::Array(list))) => Some(list.clone()),
        _ => None,
    };
    let all: Option<Vec<Vec<Value>>> = choices.iter().map(values).collect();
    all.map(|all| all.concat())
}

/// The fields of an object: the header, then required ones in their order, then the others.
fn fields(words: &Map<String, Value>) -> Vec<Field> {
    let properties = words.get("properties").and_then(Value::as_object);
    let required = words.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut names = required.clone();
    let optional = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str);
    names.extend(optional.filter(|name| !required.contains(name)));
    let rank = |name: &&str| HEADER.iter().position(|lead| lead == name);
    names.sort_by_key(|name| rank(name).unwrap_or(HEADER.len()));
    let field = |name: &str| Field {
        name: name.to_owned(),
        required: required.contains(&name),
        rule: properties
            .and_then(|properties| properties.get(name))
            .or_else(|| words.get("additionalProperties"))
            .map(rule)
            .unwrap_or_default(),
    };
    names.into_iter().map(field).collect()
}

/// The rules from `patternProperties`; all patterns of the schemas are prefixes.
fn prefixed(words: &Map<String, Value>) -> Vec<(String, Rule)> {
    let patterns = words.get("patternProperties").and_then(Value::as_object);
    let prefix = |(pattern, schema): (&String, &Value)| {
        let prefix = pattern.strip_prefix('^')?;
        Some((prefix.to_owned(), rule(schema)))
    };
    patterns.into_iter().flatten().filter_map(prefix).collect()
}

words! {
    /// A type of JSON.
    pub(super) enum Kind {
        Null = "null",
        Boolean = "boolean",
        Text = "string",
        Number = "number",
        Integer = "integer",
        Array = "array",
        Object = "object",
        Unknown = "nothing",
    }
}

fn kinds(kind: &Value) -> Vec<Kind> {
    let one = kind.as_str();
    let many = kind.as_array().into_iter().flatten();
    let names = one.into_iter().chain(many.filter_map(Value::as_str));
    names.map(Kind::of).collect()
}

impl Kind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "string" => Self::Text,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::Unknown,
        }
    }

    pub(super) fn has(self, node: &Node<'_>) -> bool {
        match (self, node) {
            (Self::Null, Node::Null)
            | (Self::Boolean, Node::Bool(_))
            | (Self::Text, Node::Text(_))
            | (Self::Number, Node::Number(_))
            | (Self::Array, Node::List(_))
            | (Self::Object, Node::Object(_)) => true,
            // Provost's parsers accept no fraction as an integer, not even `1.0`.
            (Self::Integer, Node::Number(number)) => number.is_i64() || number.is_u64(),
            _ => false,
        }
    }
}

pub(super) fn name(node: &Node<'_>) -> &'static str {
    match node {
        Node::Null => "null",
        Node::Bool(_) => "a boolean",
        Node::Number(_) => "a number",
        Node::Text(_) => "a string",
        Node::List(_) => "a list",
        Node::Object(_) => "an object",
    }
}

pub(super) fn texts(list: &[Value]) -> String {
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    list.iter().map(text).collect::<Vec<_>>().join(", ")
}
