//! Why a package, or a request for one, is refused.

use serde::Serialize;
use serde_json::{Value, json};

use crate::code::Code;

/// The step at which a payload was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It could not be decoded.
    Decode,
    /// It was decoded, and a rule refused it.
    Contract,
}

/// A refusal: the rule behind it, and what broke it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    pub stage: Stage,
    pub code: Code,
    pub reason: String,
    /// The field that could not be decoded.
    pub field: Option<String>,
    /// Everything that breaks the rule, when there can be several places.
    pub findings: Vec<String>,
}

impl Refusal {
    pub fn rule(code: Code, reason: impl Into<String>) -> Self {
        Self {
            stage: Stage::Contract,
            code,
            reason: reason.into(),
            field: None,
            findings: Vec::new(),
        }
    }

    /// A refusal because `field` cannot be decoded.
    pub fn malformed(field: &str, reason: impl Into<String>) -> Self {
        Self {
            stage: Stage::Decode,
            field: Some(field.to_owned()),
            ..Self::rule(Code::PackageMalformed, reason)
        }
    }

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
