//! Carries the answer of a gate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::Code;
use crate::exit::Exit;

/// What a gate says: yes or no, by which rule, in words, with the facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the thing judged may go on.
    pub allow: bool,
    /// The rule that decided.
    pub code: Code,
    /// The same in words, for a person.
    pub reason: String,
    /// The facts behind it; absent when there is nothing to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Verdict {
    /// An allow: every rule was checked and held.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self {
            allow: true,
            code: Code::Ok,
            reason: reason.into(),
            details: None,
        }
    }

    /// A denial by the rule `code`.
    pub fn deny(code: Code, reason: impl Into<String>) -> Self {
        Self {
            allow: false,
            code,
            reason: reason.into(),
            details: None,
        }
    }

    /// The same verdict with the facts behind it.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// How a command that answers with this verdict ends.
    pub fn exit(&self) -> Exit {
        if self.allow {
            Exit::Yes
        } else {
            self.code.exit()
        }
    }
}
