//! Parses documents that agents write: their schema decides before their type does.
//!
//! Deserializers made by serde accept an object as a list of its values, and accept a missing field
//! that may be `null`. A schema does neither, so a document that it refuses is never deserialized.

use std::marker::PhantomData;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::leaf::Cause;
use super::rules::Rules;
use super::validate::Misfit;
use super::{Strictness, foreign};
use crate::json::{self, Node, ReadError};
use crate::wording::counted;

/// Why a document is refused; the message follows its name.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It is not JSON, or is ambiguous.
    #[error("is no JSON: {0}")]
    Text(ReadError),
    #[error("does not fit its schema: {}", first(.0))]
    Schema(Vec<Misfit>),
    /// It matches its schema and has a value that is out of range.
    #[error("does not fit its schema: {0}")]
    Value(ReadError),
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
    let Some(Misfit { path, problem, .. }) = misfits.first() else {
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
    let node = json::read(bytes).map_err(Unfit::Text)?;
    let misfits = Rules::new(schema).validate(&node);
    if !misfits.is_empty() {
        return Err(Unfit::Schema(misfits));
    }
    json::from_node(&node).map_err(Unfit::Value)
}

/// Reads documents of the type `T`, a format that others fixed.
#[derive(Debug)]
pub struct FormatReader<T> {
    lenient: OnceLock<Rules>,
    strict: OnceLock<Rules>,
    read: PhantomData<fn() -> T>,
}

impl<T: JsonSchema + DeserializeOwned> FormatReader<T> {
    #[expect(clippy::new_without_default, reason = "it is only made for statics")]
    pub const fn new() -> Self {
        Self {
            lenient: OnceLock::new(),
            strict: OnceLock::new(),
            read: PhantomData,
        }
    }

    fn rules(&self, strictness: Strictness) -> &Rules {
        let rules = match strictness {
            Strictness::Literal => &self.lenient,
            Strictness::Strict => &self.strict,
        };
        rules.get_or_init(|| Rules::new(&foreign::<T>(strictness)))
    }

    /// Reads as much of `node` as its text permits: what does not match is left out and listed.
    pub fn read_partly(&self, node: &Node<'_>) -> Partly<T> {
        let broken = self.rules(Strictness::Literal).validate(node);
        let read = if broken.is_empty() {
            json::from_node(node).ok()
        } else {
            let mut rest = node.clone().into_value();
            // From the end, so that positions in lists stay what they are.
            broken.iter().rev().for_each(|one| remove(&mut rest, one));
            json::from_node(&Node::from(rest)).ok()
        };
        let mut doubtful = self.rules(Strictness::Strict).validate(node);
        doubtful.retain(|doubt| !broken.iter().any(|one| one.path == doubt.path));
        Partly {
            read,
            broken,
            doubtful,
        }
    }

    /// Reads `node`. If its version is unknown, that is the only problem.
    pub fn read(&self, node: &Node<'_>, strictness: Strictness) -> Result<T, Vec<Misfit>> {
        let mut misfits = self.rules(strictness).validate(node);
        match misfits.first() {
            None => json::from_node(node)
                .map_err(|error| vec![Misfit::new("", format!("cannot be read: {error}"))]),
            Some(first) => {
                if first.cause == Cause::Version {
                    misfits.truncate(1);
                }
                Err(misfits)
            }
        }
    }
}

/// A document, as far as it can be read.
#[derive(Debug)]
pub struct Partly<T> {
    /// What is left without the places that do not match; `None` if nothing is.
    pub read: Option<T>,
    /// What the text of the format refuses.
    pub broken: Vec<Misfit>,
    /// What only strict mode refuses.
    pub doubtful: Vec<Misfit>,
}

/// Removes the place of `misfit` from `document`.
fn remove(document: &mut Value, misfit: &Misfit) {
    let Some((above, name)) = misfit.path.rsplit_once('/') else {
        *document = Value::Null;
        return;
    };
    match document.pointer_mut(above) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(at) = name.parse().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        _ => {}
    }
}
