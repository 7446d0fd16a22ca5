//! Reads and writes a document that may be JSON, YAML or TOML.
//!
//! All three become the same kind of value, so that contracts and task cards have one reader for
//! every file format.

pub mod front_matter;
pub mod lines;
pub mod toml;
mod write;
pub mod yaml;

use provost_evidence::json::{self, ReadError};
use serde_json::Value;

pub use write::render;

/// The file format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.json`
    Json,
    /// `.yaml`, `.yml`
    Yaml,
    /// `.toml`
    Toml,
}

impl Format {
    /// The extension of such files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Toml => "toml",
        }
    }

    /// The format of a file name by its extension, in either case; `None` for any other.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

pub fn parse(format: Format, bytes: &[u8]) -> Result<Value, ReadError> {
    match format {
        Format::Json => json::parse(bytes),
        Format::Yaml => yaml::parse(bytes),
        Format::Toml => toml::parse(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spellings_of_a_document_are_one_value() {
        let texts = [
            ("a.json", r#"{"scope": {"allow": ["src"]}, "minutes": 5}"#),
            ("a.YAML", "scope:\n  allow: [src]\nminutes: 5\n"),
            ("dir.json/a.yml", "{scope: {allow: [src]}, minutes: 5}"),
            ("a.toml", "minutes = 5\n[scope]\nallow = ['src']\n"),
        ];
        let values = texts
            .map(|(name, text)| parse(Format::of_name(name).unwrap(), text.as_bytes()).unwrap());
        assert!(values.iter().all(|value| *value == values[0]));
        assert_eq!(Format::of_name("contract"), None);
        assert_eq!(Format::of_name("contract.txt"), None);
    }
}
