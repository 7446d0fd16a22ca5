//! The source documents of Provost, and the fields they name, as `source.json` lists them.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Source {
    /// Fields of a contract whose use a contract alone does not show, and what uses them.
    pub(super) elsewhere: Vec<(String, String)>,
    pub(super) sections: Vec<Section>,
}

/// One document.
#[derive(Deserialize)]
pub(super) struct Section {
    pub(super) title: String,
    /// Lines of text.
    pub(super) about: Vec<String>,
    /// Where the use of its fields is found.
    pub(super) subject: Subject,
    /// The fields that the source names, separated by blanks; more may be found.
    fields: Vec<String>,
}

/// Where the use of the fields of a document is found.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Subject {
    /// The parser of a foreign format, by the name of its schema.
    Foreign(String),
    /// The rules of contracts.
    Contract,
    /// The schema of a report.
    Report(String),
    /// The parser of child packages, with a payload or the case that has one.
    Derive(Value),
    Handoff(Value),
    Depth(Value),
    /// The answer of deriving a child package, below a JSON pointer.
    Answer(String),
    /// The answer of a check.
    Verdict,
    /// The parser of a tool of change control.
    Request(String),
    /// The answers of a tool of change control; a field without a value is absent.
    ToolAnswer(String),
}

/// A derivation with every field of its policies.
pub(super) const DERIVE: &str = "tests/corpus/child-packages/035-route-override.json";

impl Source {
    pub(super) fn read() -> crate::Result<Self> {
        Ok(serde_json::from_str(include_str!("source.json"))?)
    }
}

impl Section {
    pub(super) fn fields(&self) -> Vec<&str> {
        let lines = self.fields.iter();
        lines.flat_map(|line| line.split_whitespace()).collect()
    }
}
