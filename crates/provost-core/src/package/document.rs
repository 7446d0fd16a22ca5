//! The package itself, and its fingerprint.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Authority, Handoff, Id, Refusal, Set};
use crate::code::Code;
use crate::{json, object};

/// The prefix of every fingerprint.
const ALGORITHM: &str = "sha256:provost-package-v2";

/// The frozen capabilities of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub schema_version: Version,
    pub agent: Id,
    /// The package it was derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Fingerprint>,
    /// What the agent may do itself.
    #[serde(default)]
    pub exercise: Authority,
    /// What it may let its children do.
    #[serde(default)]
    pub delegate: Authority,
    /// How many agents it may start.
    #[serde(default)]
    pub budget: Budget,
    /// The hooks that guard it; children keep them all.
    #[serde(default)]
    pub guards: Set<Id>,
    /// The context that it got when it was started.
    #[serde(default)]
    pub handoff: Handoff,
}

/// Always 2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Version;

impl TryFrom<u64> for Version {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if number == u64::from(Self) {
            return Ok(Self);
        }
        Err(format!("version {number} is not known; 2 is"))
    }
}

impl From<Version> for u64 {
    fn from(_: Version) -> Self {
        2
    }
}

/// How many agents may be started below an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// How many generations.
    pub levels: u32,
    /// How many agents in all generations together.
    pub children: u32,
}

impl Budget {
    /// Takes one child from the budget, and `children` more for that child to start.
    ///
    /// Returns what is left, and the child's own budget; together they are never more than before.
    pub fn spend(self, children: u32) -> Result<(Self, Self), Refusal> {
        let Some(levels) = self.levels.checked_sub(1) else {
            let reason = "no level is left for a child";
            return Err(Refusal::rule(Code::DepthExhausted, reason));
        };
        let cost = children.checked_add(1);
        let Some(rest) = cost.and_then(|cost| self.children.checked_sub(cost)) else {
            let reason = format!(
                "one child with {children} of its own is asked, and {} are left",
                self.children
            );
            return Err(Refusal::rule(Code::ChildrenExhausted, reason));
        };
        let rest = Self {
            levels: self.levels,
            children: rest,
        };
        Ok((rest, Self { levels, children }))
    }
}

/// Identifies a package by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What is hashed.
#[derive(Serialize)]
struct PackagePreimage<'a> {
    algorithm: &'static str,
    package: &'a Package,
}

impl Package {
    /// The canonical form: sets in order, defaults written out.
    pub fn canonical(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Equal only for packages with equal content.
    pub fn fingerprint(&self) -> Fingerprint {
        let preimage = PackagePreimage {
            algorithm: ALGORITHM,
            package: self,
        };
        let preimage = super::answer::value(&preimage);
        let digest = object::sha256(json::canonical(&preimage).as_bytes());
        Fingerprint(format!("{ALGORITHM}:{digest}"))
    }
}
