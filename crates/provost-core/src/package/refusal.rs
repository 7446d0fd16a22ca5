//! Why a package, or a request for one, is refused.

use serde::Serialize;
use serde_json::{Value, json};

use crate::code::Code;

/// How far a payload came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It was not even read.
    Decode,
    /// It was read, and a rule refused it.
    Contract,
}

/// A refusal: the rule behind it, and what broke it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// How far the payload came.
    pub stage: Stage,
    /// The rule.
    pub code: Code,
    /// The same in words.
    pub reason: String,
    /// The field that could not be read.
    pub field: Option<String>,
    /// Everything that breaks the rule, when it can be broken in several places.
    pub findings: Vec<String>,
}

impl Refusal {
    /// A refusal by the rule `code`.
    pub fn rule(code: Code, reason: impl Into<String>) -> Self {
        Self {
            stage: Stage::Contract,
            code,
            reason: reason.into(),
            field: None,
            findings: Vec::new(),
        }
    }

    /// A refusal because `field` cannot be read.
    pub fn malformed(field: &str, reason: impl Into<String>) -> Self {
        Self {
            stage: Stage::Decode,
            field: Some(field.to_owned()),
            ..Self::rule(Code::PackageMalformed, reason)
        }
    }

    /// The same refusal with all that breaks its rule.
    #[must_use]
    pub fn with(mut self, findings: Vec<String>) -> Self {
        self.findings = findings;
        self
    }

    /// The refusal as an object for programs.
    pub fn render(&self) -> Value {
        let code = self.code.name().to_ascii_lowercase();
        let mut error = json!({ "stage": self.stage, "code": code, "reason": self.reason });
        if let Some(field) = &self.field {
            error["field"] = json!(field);
        }
        if !self.findings.is_empty() {
            error["findings"] = json!(self.findings);
        }
        json!({ "ok": false, "code": code, "error": error })
    }
}
