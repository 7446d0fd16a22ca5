//! One change of a contract, and how to apply such changes.

use serde::Serialize;
use serde_json::{Map, Value};

use provost_core::contract::document::Document;
use provost_core::json::{self, ReadError};

/// A change that a contract would need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Widening {
    /// As a JSON pointer.
    pub pointer: String,
    #[serde(flatten)]
    pub edit: Edit,
}

/// The change of one place of a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Add an entry to a list.
    Add(String),
    /// Remove an entry from a list.
    Remove(String),
    /// Replace the value.
    Set(Value),
}

impl Widening {
    pub(super) fn add(pointer: &str, entry: impl Into<String>) -> Self {
        Self {
            pointer: pointer.to_owned(),
            edit: Edit::Add(entry.into()),
        }
    }

    pub(super) fn remove(pointer: &str, entry: impl Into<String>) -> Self {
        Self {
            pointer: pointer.to_owned(),
            edit: Edit::Remove(entry.into()),
        }
    }

    pub(super) fn set(pointer: &str, value: Value) -> Self {
        Self {
            pointer: pointer.to_owned(),
            edit: Edit::Set(value),
        }
    }
}

impl Widening {
    /// Whether the path that `self` adds is below the one that `other` adds.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let (Edit::Add(mine), Edit::Add(theirs)) = (&self.edit, &other.edit) else {
            return false;
        };
        let below = |rest: &str| rest.starts_with('/');
        self.pointer == other.pointer && mine.strip_prefix(theirs.as_str()).is_some_and(below)
    }
}

pub fn widened(document: &Document, changes: &[Widening]) -> Result<Document, ReadError> {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    for change in changes {
        let place = reach(&mut value, &change.pointer);
        match &change.edit {
            Edit::Set(new) => *place = new.clone(),
            Edit::Add(entry) => edit(place, |list| list.push(Value::String(entry.clone()))),
            Edit::Remove(entry) => edit(place, |list| {
                list.retain(|one| one.as_str() != Some(entry));
            }),
        }
    }
    json::from_value(value)
}

/// The place that `pointer` names; missing parents are created.
fn reach<'v>(value: &'v mut Value, pointer: &str) -> &'v mut Value {
    let mut place = value;
    for key in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[key];
    }
    place
}

/// Changes the list at `place`; any other value becomes a list.
fn edit(place: &mut Value, change: impl FnOnce(&mut Vec<Value>)) {
    let mut items = match place.take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    change(&mut items);
    *place = Value::Array(items);
}
