//! Parses documents that agents write: their schema decides before their type does.
//!
//! Deserializers made by serde accept an object as a list of its values, and accept a missing field
//! that may be `null`. A schema does neither, so a document that it refuses is never deserialized.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::validate::{Misfit, validate};
use crate::json::{self, JsonError};
use crate::wording::counted;

/// Why a document is refused; the message follows its name.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It is not JSON, or is ambiguous.
    #[error("is no JSON: {0}")]
    Text(JsonError),
    #[error("does not fit its schema: {}", first(.0))]
    Schema(Vec<Misfit>),
    /// It matches its schema and has a value that is out of range.
    #[error("does not fit its schema: {0}")]
    Value(JsonError),
}

impl Unfit {
    /// Every place that does not match, for the details of a verdict.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Schema(misfits) => Some(json!({ "findings": misfits })),
            Self::Text(_) | Self::Value(_) => None,
        }
    }
}

fn first(misfits: &[Misfit]) -> String {
    let Some(Misfit { path, problem }) = misfits.first() else {
        return String::new();
    };
    let place = if path.is_empty() { "/" } else { path };
    let place = place.escape_debug();
    match misfits.len() {
        1 => format!("`{place}` {problem}"),
        many => format!("`{place}` {problem}; {} more", counted(many - 1, "place")),
    }
}

pub fn read<T: DeserializeOwned>(bytes: &[u8], schema: &Value) -> Result<T, Unfit> {
    let value = json::parse(bytes).map_err(Unfit::Text)?;
    let misfits = validate(schema, &value);
    if !misfits.is_empty() {
        return Err(Unfit::Schema(misfits));
    }
    json::from_value(value).map_err(Unfit::Value)
}
