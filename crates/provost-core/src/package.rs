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

mod answer;
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
use serde_json::Value;

use crate::{json, text_schema};

pub use answer::{PackageAnswer, PackageResult};
pub use authority::{Action, Authority, Limits, Place, Route};
pub use capability::{Capability, Effect, Kind};
pub use derive::{Derived, Request, Stripped, ToolPolicy, derive};
pub use document::{Budget, Fingerprint, Package, Version};
pub use handoff::{Content, Handoff};
pub use refusal::{Refusal, RefusalClass, Stage};
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

text_schema!(Id, { "type": "string", "minLength": 1 });

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

pub fn answer(operation: Operation, payload: &Value) -> Result<PackageAnswer, Refusal> {
    match operation {
        Operation::Derive => {
            let request: Request = read(payload, "input")?;
            Ok(derive(&request)?.answer())
        }
        Operation::Fingerprint => {
            let package: Package = member(payload, "parent")?;
            let result = PackageResult::Fingerprint {
                fingerprint: package.fingerprint().to_string(),
                canonical: package.canonical(),
            };
            Ok(PackageAnswer::new(result, &NothingMore {}))
        }
        Operation::Handoff => {
            let handoff: Handoff = member(payload, "handoff")?;
            handoff.validate()?;
            let sha256 = handoff.digest();
            let variant_name = handoff.name();
            let result = PackageResult::Handoff { variant_name };
            Ok(PackageAnswer::new(result, &HandoffDigest { sha256 }))
        }
        Operation::Depth => {
            let budget: Budget = member(payload, "budget")?;
            let (parent_budget, child) = budget.spend(0)?;
            let child_budget = answer::value(&child);
            let result = PackageResult::Depth { child_budget };
            Ok(PackageAnswer::new(result, &BudgetLeft { parent_budget }))
        }
    }
}

#[derive(Serialize)]
struct NothingMore {}

#[derive(Serialize)]
struct HandoffDigest {
    sha256: String,
}

#[derive(Serialize)]
struct BudgetLeft {
    parent_budget: Budget,
}

/// Reads the member `name` of a payload; the refusal names the exact field.
pub fn member<T: DeserializeOwned + Serialize>(payload: &Value, name: &str) -> Result<T, Refusal> {
    let found = payload.get(name);
    read(
        found.ok_or_else(|| Refusal::malformed(name, "is missing"))?,
        name,
    )
}

/// Reads `value`, which the payload calls `name`; the refusal names the exact field.
fn read<T: DeserializeOwned + Serialize>(value: &Value, name: &str) -> Result<T, Refusal> {
    let read: T = json::from_value(value).map_err(|error| match error {
        json::ReadError::Shape { field, what } if !field.is_empty() => {
            Refusal::malformed(&field, what)
        }
        other => Refusal::malformed(name, other.to_string()),
    })?;
    match json::positional(value, &answer::value(&read)) {
        None => Ok(read),
        Some(at) => Err(Refusal::malformed(
            &format!("{name}{at}"),
            "is a list; an object with names belongs there",
        )),
    }
}
