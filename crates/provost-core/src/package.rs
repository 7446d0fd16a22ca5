//! Packages: what one agent may do, and what it may let others do. See `docs/PACKAGES.md`.
//!
//! A package holds two authorities. What the agent may *exercise* is what it can do itself; what it
//! may *delegate* bounds every package derived from it. They need not overlap: a lead may delegate
//! the right to write without having it.
//!
//! # Invariants
//!
//! - A derived package exercises and delegates nothing that its parent does not delegate, on any
//!   axis. An axis that is not stated is empty, never inherited.
//! - A capability whose effect is not confirmed counts as the strongest.
//! - Everything that matters is in the fingerprint, the hand-off included; ids of packages and runs
//!   are not.
//! - A repeated name, an unknown member and a number with a fraction are refused.

mod authority;
mod capability;
mod derive;
mod document;
mod handoff;
mod refusal;
mod set;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json;

pub use authority::{Action, Authority, Limits, Place, Route};
pub use capability::{Capability, Effect, Kind};
pub use derive::{Derived, Request, Stripped, ToolPolicy, derive};
pub use document::{Budget, Fingerprint, Package, Version};
pub use handoff::{Content, Handoff};
pub use refusal::{Refusal, Stage};
pub use set::{Key, Keyed, Set};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Derive the package of a child.
    Derive,
    /// Compute the fingerprint of a package.
    Fingerprint,
    /// Check the hand-off to a child.
    Handoff,
    /// Check whether a child may be started.
    Depth,
}

/// The longest id, in bytes.
const LONGEST_ID: usize = 512;

/// The name of an agent, a capability or another item: text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("an id is empty")]
    Empty,
    #[error("an id has {0} bytes; at most {LONGEST_ID} are allowed")]
    TooLong(usize),
    #[error("an id holds a control character at byte {0}")]
    Control(usize),
}

impl TryFrom<String> for Id {
    type Error = IdError;

    fn try_from(raw: String) -> Result<Self, IdError> {
        if raw.is_empty() {
            return Err(IdError::Empty);
        }
        if raw.len() > LONGEST_ID {
            return Err(IdError::TooLong(raw.len()));
        }
        match raw.char_indices().find(|(_, letter)| letter.is_control()) {
            Some((at, _)) => Err(IdError::Control(at)),
            None => Ok(Self(raw)),
        }
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl Id {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

pub fn answer(operation: Operation, payload: &Value) -> Result<Value, Refusal> {
    match operation {
        Operation::Derive => {
            let request: Request = read(payload, "input")?;
            Ok(derive(&request)?.render())
        }
        Operation::Fingerprint => {
            let package: Package = read(member(payload, "parent")?, "parent")?;
            Ok(json!({
                "ok": true,
                "fingerprint": package.fingerprint(),
                "canonical": package.canonical(),
            }))
        }
        Operation::Handoff => {
            let handoff: Handoff = read(member(payload, "handoff")?, "handoff")?;
            handoff.validate()?;
            Ok(json!({
                "ok": true,
                "variant_name": handoff.name(),
                "sha256": handoff.digest(),
            }))
        }
        Operation::Depth => {
            let budget: Budget = read(member(payload, "budget")?, "budget")?;
            let (rest, child) = budget.spend(0)?;
            Ok(json!({ "ok": true, "parent_budget": rest, "child_budget": child }))
        }
    }
}

fn member<'a>(payload: &'a Value, name: &str) -> Result<&'a Value, Refusal> {
    let found = payload.get(name);
    found.ok_or_else(|| Refusal::malformed(name, "is missing"))
}

/// Reads `value`, which the payload calls `name`; the refusal names the exact field.
fn read<T: DeserializeOwned + Serialize>(value: &Value, name: &str) -> Result<T, Refusal> {
    let read: T = json::from_value(value).map_err(|error| match error {
        json::ReadError::Shape { field, what } if !field.is_empty() => {
            Refusal::malformed(&field, what)
        }
        other => Refusal::malformed(name, other.to_string()),
    })?;
    let again = serde_json::to_value(&read).unwrap_or_default();
    match json::positional(value, &again) {
        None => Ok(read),
        Some(at) => Err(Refusal::malformed(
            &format!("{name}{at}"),
            "is a list; an object with names belongs there",
        )),
    }
}
