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

    /// The same verdict, with the facts behind it.
    #[must_use]
    pub fn with(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::to_value(details).ok();
        self
    }

    /// The same verdict, with everything that was found.
    #[must_use]
    pub fn with_findings<R: Serialize>(self, rows: impl IntoIterator<Item = R>) -> Self {
        self.with(Findings {
            findings: rows.into_iter().collect(),
        })
    }

    /// The same verdict, with what helps.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        self.with(Hint { hint })
    }

    /// What was found: `details.findings[]`.
    pub fn findings(&self) -> &[Value] {
        rows_of(self.details.as_ref())
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

/// Details of a verdict that are a list of findings.
#[derive(Debug, Clone, Serialize)]
pub struct Findings<R> {
    pub findings: Vec<R>,
}

#[derive(Serialize)]
struct Hint<'a> {
    hint: &'a str,
}

/// One finding: its place, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundAt<'a> {
    pub path: &'a str,
    pub problem: &'a str,
}

impl<'a> FoundAt<'a> {
    /// Reads a finding; a field that is missing is empty.
    pub fn read(row: &'a Value) -> Self {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        Self {
            path: text("path"),
            problem: text("problem"),
        }
    }
}

/// The findings in the details of a verdict.
pub fn rows_of(details: Option<&Value>) -> &[Value] {
    let rows = details.and_then(|details| details.get("findings"));
    rows.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
