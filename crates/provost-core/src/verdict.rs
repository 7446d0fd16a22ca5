//! The answer of a gate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::Code;
use crate::exit::Exit;

/// The answer of a gate: allow or deny, the code, the reason, and the facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the judged action may proceed.
    pub allow: bool,
    pub code: Code,
    /// The same as text, for a person.
    pub reason: String,
    /// The facts behind it; absent if there is nothing to add.
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

    pub fn deny(code: Code, reason: impl Into<String>) -> Self {
        Self {
            allow: false,
            code,
            reason: reason.into(),
            details: None,
        }
    }

    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Notes that decide nothing: `details.notes[]`.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let details = self.details.as_ref();
        let notes = details.and_then(|details| details.get("notes")?.as_array());
        notes.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What helps, if that is more than the page of the code: `details.hint`.
    pub fn hint(&self) -> Option<&str> {
        self.details.as_ref()?.get("hint")?.as_str()
    }

    /// The exit status of a command that answers with this verdict.
    pub fn exit(&self) -> Exit {
        if self.allow {
            Exit::Yes
        } else {
            self.code.exit()
        }
    }
}
