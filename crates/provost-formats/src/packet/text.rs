//! Texts and choices that several files of a packet have.

use provost_core::text_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A time, which the format does not describe further: text or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Moment {
    Text(String),
    Number(Number),
}

text_schema!(Moment, {
    "type": ["string", "number"], "pattern": r"\S", "x-strict": { "type": "string" }
});

impl Moment {
    /// The text; `None` for a number.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) => None,
        }
    }
}

impl From<&str> for Moment {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The only executor that the format knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutorRole {
    #[serde(rename = "codex_cli_subagent")]
    CodexCliSubagent,
}

/// Without outer blanks, and without the texts that are blank.
pub(super) fn trimmed(texts: Option<Vec<String>>) -> Vec<String> {
    let texts = texts.unwrap_or_default().into_iter();
    let texts = texts.map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}
