//! The one reader of documents that agents write: their schema decides before their type does.
//!
//! Readers made by serde take an object from a list of its values, and take a missing field that may
//! be `null` for `null`. A schema does neither, so what it refuses is never read at all.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::validate::{Misfit, validate};
use crate::json::{self, JsonError};
use crate::wording::counted;

/// Why a document is not taken; the words follow its name.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It has not one meaning, or none.
    #[error("is no JSON: {0}")]
    Text(JsonError),
    /// It does not fit its schema.
    #[error("does not fit its schema: {}", first(.0))]
    Schema(Vec<Misfit>),
    /// It fits its schema and has a value that is out of range.
    #[error("does not fit its schema: {0}")]
    Value(JsonError),
}

impl Unfit {
    /// Every place that does not fit, as the details of a verdict have them.
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

/// Reads the document `bytes`, which `schema` describes.
pub fn read<T: DeserializeOwned>(bytes: &[u8], schema: &Value) -> Result<T, Unfit> {
    let value = json::parse(bytes).map_err(Unfit::Text)?;
    let misfits = validate(schema, &value);
    if !misfits.is_empty() {
        return Err(Unfit::Schema(misfits));
    }
    json::from_value(value).map_err(Unfit::Value)
}
