//! Reads YAML so that it has one meaning, and writes it in the same way.
//!
//! Untagged plain text is typed by the core schema of YAML 1.2: `no`, `yes`, `on` and dates are
//! text, `017` is seventeen, `0o17` fifteen. What readers disagree about is refused: repeated
//! keys, keys that are not text, merge keys (`<<`), a second document, a `%YAML` version other
//! than 1.2, every tag that is not of the core schema, numbers that JSON cannot hold.
//!
//! # Invariants
//!
//! - The limits of [`provost_evidence::json`] hold here as well, including what aliases multiply.
//! - An empty document is `null`, as YAML says; a caller that wants a mapping refuses it.
//! - Anchors and aliases mean a copy; an alias inside of its own anchor is refused.

use std::collections::BTreeMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use provost_evidence::json::{self, DEEPEST, LARGEST, MOST, ReadError};
use serde_json::{Map, Value};

mod scalar;
mod write;

#[cfg(test)]
mod tests;

pub use write::render;

pub fn parse(bytes: &[u8]) -> Result<Value, ReadError> {
    let text = json::text(bytes, LARGEST)?;
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEEPEST + 1,
        block_nesting_limit: DEEPEST + 1,
    };
    options.set_emit_comments(false);
    let mut reader = Reader {
        open: Vec::new(),
        anchors: BTreeMap::new(),
        values_left: MOST,
        copies_left: LARGEST,
        document: None,
    };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| at(*error.marker(), error.info()))?;
        reader.take(event).map_err(|what| at(span.start, what))?;
    }
    Ok(reader.document.unwrap_or(Value::Null))
}

fn at(place: Marker, what: String) -> ReadError {
    ReadError::Syntax {
        line: place.line(),
        column: place.col() + 1,
        what,
    }
}

/// Builds the value from the events of the parser; an error is a message without its place.
struct Reader {
    /// The lists and mappings that have begun and not ended, outermost first.
    open: Vec<Open>,
    /// The values of the anchors so far.
    anchors: BTreeMap<usize, Value>,
    /// How many more values may come, copies included.
    values_left: usize,
    /// How many more bytes of text may be copied for anchors and aliases.
    copies_left: usize,
    /// The document, once it has been read.
    document: Option<Value>,
}

struct Open {
    collection: Collection,
    /// The anchor it has; 0 for none.
    anchor: usize,
}

enum Collection {
    List(Vec<Value>),
    /// The entries so far, and the key whose value comes next.
    Mapping(Map<String, Value>, Option<String>),
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_, version) => {
                if self.document.is_some() {
                    return Err("a second document begins".to_owned());
                }
                match version {
                    Some(version) if (version.major, version.minor) != (1, 2) => Err(format!(
                        "YAML {}.{} is not read, only 1.2",
                        version.major, version.minor
                    )),
                    _ => Ok(()),
                }
            }
            Event::DocumentEnd => {
                self.document.get_or_insert(Value::Null);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                if plain && text == "<<" && self.wants_key() {
                    return Err("the merge key `<<` is not read".to_owned());
                }
                self.spend(1)?;
                let value = scalar::resolve(&text, style, tag.as_deref())?;
                self.keep(anchor, &value)?;
                self.place(value)
            }
            Event::SequenceStart(_, anchor, tag) => {
                only(tag.as_deref(), "seq")?;
                self.begin(Collection::List(Vec::new()), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                only(tag.as_deref(), "map")?;
                self.begin(Collection::Mapping(Map::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.copy(anchor),
            Event::StreamStart | Event::StreamEnd => Ok(()),
            // The parser is asked for no others; a new kind of event must not pass unread.
            other => Err(format!("unexpected {other:?}")),
        }
    }

    fn wants_key(&self) -> bool {
        let last = self.open.last().map(|open| &open.collection);
        matches!(last, Some(Collection::Mapping(_, None)))
    }

    fn begin(&mut self, collection: Collection, anchor: usize) -> Result<(), String> {
        if self.wants_key() {
            return Err("a key must be text".to_owned());
        }
        if self.open.len() > DEEPEST {
            return Err(too_deep());
        }
        self.spend(1)?;
        self.open.push(Open { collection, anchor });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(open) = self.open.pop() else {
            return Err("a collection ends that never began".to_owned());
        };
        let value = match open.collection {
            Collection::List(items) => Value::Array(items),
            Collection::Mapping(entries, _) => Value::Object(entries),
        };
        self.keep(open.anchor, &value)?;
        self.place(value)
    }

    /// Puts `value` where the next value belongs.
    fn place(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.document = Some(value),
            Some(Collection::List(items)) => items.push(value),
            Some(Collection::Mapping(entries, key)) => {
                if let Some(key) = key.take() {
                    entries.insert(key, value);
                    return Ok(());
                }
                let Value::String(text) = value else {
                    return Err("a key must be text; put it in quotes".to_owned());
                };
                if entries.contains_key(&text) {
                    return Err(format!("the key `{text}` is there twice"));
                }
                *key = Some(text);
            }
        }
        Ok(())
    }

    /// Stores the value of `anchor`; 0 is no anchor.
    fn keep(&mut self, anchor: usize, value: &Value) -> Result<(), String> {
        if anchor != 0 {
            self.charge(value)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    fn copy(&mut self, anchor: usize) -> Result<(), String> {
        let Some(value) = self.anchors.remove(&anchor) else {
            return Err("an alias stands inside of what it names".to_owned());
        };
        let height = self.charge(&value)?;
        if self.open.len() + height > DEEPEST + 1 {
            return Err(too_deep());
        }
        self.anchors.insert(anchor, value.clone());
        self.place(value)
    }

    /// Takes a copy of `value` from what is left, and gives its depth.
    fn charge(&mut self, value: &Value) -> Result<usize, String> {
        let weight = Weight::of(value);
        self.spend(weight.values)?;
        let Some(left) = self.copies_left.checked_sub(weight.text) else {
            return Err(format!("aliases copy more than {LARGEST} bytes"));
        };
        self.copies_left = left;
        Ok(weight.height)
    }

    fn spend(&mut self, values: usize) -> Result<(), String> {
        let Some(left) = self.values_left.checked_sub(values) else {
            return Err(format!("more than {MOST} values"));
        };
        self.values_left = left;
        Ok(())
    }
}

/// What a copy of a value costs.
struct Weight {
    values: usize,
    text: usize,
    /// Levels of lists and mappings.
    height: usize,
}

impl Weight {
    fn of(value: &Value) -> Self {
        let mut whole = Self {
            values: 1,
            text: 0,
            height: 0,
        };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => whole.text = text.len(),
            Value::Array(items) => {
                whole.height = 1;
                for item in items {
                    whole.add(item);
                }
            }
            Value::Object(entries) => {
                whole.height = 1;
                for (key, value) in entries {
                    whole.values += 1;
                    whole.text += key.len();
                    whole.add(value);
                }
            }
        }
        whole
    }

    fn add(&mut self, part: &Value) {
        let part = Self::of(part);
        self.values += part.values;
        self.text += part.text;
        self.height = self.height.max(part.height + 1);
    }
}

fn too_deep() -> String {
    format!("nested deeper than {DEEPEST} levels")
}

/// Refuses every tag but the one of the core schema called `name`.
fn only(tag: Option<&Tag>, name: &str) -> Result<(), String> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(name) => Err(foreign(tag)),
        _ => Ok(()),
    }
}

fn foreign(tag: &Tag) -> String {
    format!("the tag `{}` is not read here", tag.original())
}
