//! The answers to operations on packages.

use serde::Serialize;
use serde_json::Value;

/// What an operation answers, in every version of the format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackageAnswer {
    ok: bool,
    #[serde(flatten)]
    pub result: PackageResult,
    /// What one version adds.
    #[serde(flatten)]
    more: Value,
    /// What the child did not get and why, for people.
    #[serde(skip)]
    pub without: Vec<(String, &'static str)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PackageResult {
    Derived {
        parent_fingerprint: String,
        child_fingerprint: String,
        package: Value,
    },
    Fingerprint {
        fingerprint: String,
        /// The package as it is hashed.
        canonical: Value,
    },
    Handoff {
        variant_name: &'static str,
    },
    Depth {
        child_budget: Value,
    },
}

impl PackageAnswer {
    /// The answer `result`, with the fields of `more`.
    pub fn new(result: PackageResult, more: &impl Serialize) -> Self {
        Self {
            ok: true,
            result,
            more: value(more),
            without: Vec::new(),
        }
    }

    /// The answer for programs.
    pub fn render(&self) -> Value {
        value(self)
    }
}

/// Texts, numbers and lists of them, which are always JSON.
pub(super) fn value(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
