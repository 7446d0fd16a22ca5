//! A JSON document that borrows its strings from its source.
//!
//! Copies of keys and strings that are not kept would take most of the parse time. Fields are in
//! the order of the source, and no object has a duplicate.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{DEEPEST, MOST};

#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Fields<'a>),
}

/// The fields of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields<'a>(Vec<Field<'a>>);

/// The name of a field, and its value.
pub(super) type Field<'a> = (Cow<'a, str>, Node<'a>);

impl<'a> Fields<'a> {
    /// The fields must be unique.
    pub(super) fn of(fields: Vec<Field<'a>>) -> Self {
        Self(fields)
    }

    pub(super) fn all(&self) -> &[Field<'a>] {
        &self.0
    }

    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        let field = self.0.iter().find(|(name, _)| name == key);
        field.map(|(_, node)| node)
    }

    /// All fields, in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.0.iter().map(|(name, node)| (&**name, node))
    }
}

impl<'a> Node<'a> {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Fields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The same value with owned strings.
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::String(text.into_owned()),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Object(fields) => {
                let own = |(key, node): (Cow<'_, str>, Self)| (key.into_owned(), node.into_value());
                Value::Object(fields.0.into_iter().map(own).collect::<Map<_, _>>())
            }
        }
    }
}

impl From<Value> for Node<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(Cow::Owned(text)),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let own = |(key, value): (String, Value)| (Cow::Owned(key), Self::from(value));
                Self::Object(Fields(fields.into_iter().map(own).collect()))
            }
        }
    }
}

impl<'a> From<&'a Value> for Node<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => Self::from(fields),
        }
    }
}

impl<'a> From<&'a Map<String, Value>> for Node<'a> {
    fn from(fields: &'a Map<String, Value>) -> Self {
        let borrow = |(key, value): (&'a String, &'a Value)| {
            (Cow::Borrowed(key.as_str()), Self::from(value))
        };
        Self::Object(Fields(fields.iter().map(borrow).collect()))
    }
}

/// Parses one value, `depth` levels below the document.
#[derive(Clone, Copy)]
pub(super) struct Reader<'c> {
    depth: usize,
    /// How many more values are allowed.
    left: &'c Cell<usize>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(left: &'c Cell<usize>) -> Self {
        Self { depth: 0, left }
    }

    fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Node<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Node<'de>, D::Error> {
        if self.depth > DEEPEST {
            return Err(D::Error::custom(format!(
                "nested deeper than {DEEPEST} levels"
            )));
        }
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(D::Error::custom(format!("more than {MOST} values")));
        };
        self.left.set(left);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Node<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node<'de>, E> {
        Number::from_f64(value)
            .map(Node::Number)
            .ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper())? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node<'de>, A::Error> {
        let mut fields = Vec::new();
        let mut seen = Seen::default();
        while let Some(key) = entries.next_key_seed(Key)? {
            let node = entries.next_value_seed(self.deeper())?;
            if seen.has(&fields, &key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            fields.push((key, node));
        }
        Ok(Node::Object(Fields(fields)))
    }
}

/// The keys of a large object; in a small one, a linear search is faster.
#[derive(Default)]
pub(super) struct Seen(BTreeSet<String>);

impl Seen {
    const SMALL: usize = 16;

    /// Whether `key` is one of `fields`; if not, it is added.
    pub(super) fn has(&mut self, fields: &[(Cow<'_, str>, Node<'_>)], key: &str) -> bool {
        if fields.len() < Self::SMALL {
            return fields.iter().any(|(name, _)| name == key);
        }
        if fields.len() == Self::SMALL {
            self.0 = fields.iter().map(|(name, _)| name.to_string()).collect();
        }
        !self.0.insert(key.to_owned())
    }
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, read};
    use super::*;

    #[test]
    fn texts_without_escapes_are_borrowed() {
        let node = read(br#"{"a":"b","c":"\u0064"}"#).unwrap();
        let fields = node.as_object().unwrap();
        assert!(matches!(
            fields.get("a"),
            Some(Node::Text(Cow::Borrowed("b")))
        ));
        assert!(matches!(fields.get("c"), Some(Node::Text(Cow::Owned(text))) if text == "d"));
        assert_eq!(fields.get("b"), None);
    }

    #[test]
    fn a_repeated_key_is_found_in_small_and_large_objects() {
        for size in [1, 2, 15, 16, 17, 18, 100] {
            for twice in [0, size / 2, size - 1] {
                let fields: Vec<String> = (0..size).map(|at| format!("\"k{at}\":{at}")).collect();
                let good = format!("{{{}}}", fields.join(","));
                assert!(read(good.as_bytes()).is_ok(), "{good}");
                let bad = format!("{{{},\"k{twice}\":0}}", fields.join(","));
                assert!(read(bad.as_bytes()).is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn a_node_is_the_value_of_its_text() {
        let text = br#"{"a":[null,true,-1,1.5,"x\n",{}],"b":{"c":[]}}"#;
        let value = parse(text).unwrap();
        assert_eq!(value, serde_json::from_slice::<Value>(text).unwrap());
        assert_eq!(Node::from(value), read(text).unwrap());
    }
}
