//! Why a package, or a request for one, is refused.

use serde::Serialize;
use serde_json::Value;

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

    /// The refusal as an object for programs, with the words that a format sorts refusals by.
    pub fn render(&self, class: Option<RefusalClass>) -> Value {
        let code = self.code.name().to_ascii_lowercase();
        let error = RefusalError {
            stage: self.stage,
            code: &code,
            reason: &self.reason,
            field: self.field.as_deref(),
            findings: &self.findings,
            class,
        };
        super::answer::value(&RefusedOperation {
            ok: false,
            code: &code,
            error,
        })
    }
}

#[derive(Serialize)]
struct RefusedOperation<'a> {
    ok: bool,
    code: &'a str,
    error: RefusalError<'a>,
}

#[derive(Serialize)]
struct RefusalError<'a> {
    stage: Stage,
    code: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    findings: &'a [String],
    #[serde(flatten)]
    class: Option<RefusalClass>,
}

/// The words by which users of version 1 sort refusals.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RefusalClass {
    pub variant: &'static str,
    pub kind: &'static str,
    pub retry: &'static str,
}
