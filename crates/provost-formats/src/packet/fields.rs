//! Takes the fields of a document one by one, and reports what is wrong with each.

use serde_json::{Map, Value};

use super::Source;
use super::finding::Findings;
use provost_core::document::yaml;

pub(super) fn mapping(
    source: &Source,
    file: &str,
    findings: &mut Findings,
) -> Option<Map<String, Value>> {
    let bytes = bytes(source, file, "", findings)?;
    match yaml::parse(bytes) {
        Ok(Value::Object(entries)) => Some(entries),
        Ok(_) => {
            findings.add(file, "", "is not a YAML mapping");
            None
        }
        Err(error) => {
            findings.add(
                file,
                "",
                format!("is not YAML without duplicate keys: {error}"),
            );
            None
        }
    }
}

/// The bytes of a required file.
pub(super) fn bytes<'a>(
    source: &'a Source,
    file: &str,
    field: &str,
    findings: &mut Findings,
) -> Option<&'a [u8]> {
    match source {
        Source::Bytes(bytes) => Some(bytes),
        Source::Missing => {
            findings.add(file, field, "is missing");
            None
        }
        Source::Unreadable(why) => {
            findings.add(file, field, format!("cannot be read: {why}"));
            None
        }
    }
}

/// The fields of one mapping.
pub(super) struct Fields<'a, 'f> {
    pub(super) file: &'f str,
    /// The prefix of the field's name, as in `executor.`.
    pub(super) prefix: &'f str,
    pub(super) entries: &'a Map<String, Value>,
    pub(super) findings: &'f mut Findings,
}

impl<'a> Fields<'a, '_> {
    /// Adds a finding about the field `name`.
    pub(super) fn refuse(&mut self, name: &str, problem: impl AsRef<str>) {
        let field = format!("{}{name}", self.prefix);
        self.findings.add(self.file, &field, problem);
    }

    /// Adds a finding that only the strict profile refuses.
    pub(super) fn doubt(&mut self, name: &str, problem: impl AsRef<str>) {
        let field = format!("{}{name}", self.prefix);
        self.findings.doubt(self.file, &field, problem);
    }

    pub(super) fn required(&mut self, name: &str) -> Option<&'a Value> {
        let value = self.entries.get(name).filter(|value| !value.is_null());
        if value.is_none() {
            self.refuse(name, "is missing");
        }
        value
    }

    /// A required text that is not blank.
    pub(super) fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.required(name)?;
        let Value::String(text) = value else {
            self.refuse(name, "is not text");
            return None;
        };
        if text.trim().is_empty() {
            self.refuse(name, "is blank");
            return None;
        }
        Some(text)
    }

    /// A field that must be one of `values`.
    pub(super) fn one_of(&mut self, name: &str, values: &[&'static str]) -> Option<&'static str> {
        let text = self.text(name)?;
        let found = values.iter().copied().find(|value| *value == text);
        if found.is_none() {
            self.refuse(name, format!("is `{text}`, not {}", values.join(" or ")));
        }
        found
    }

    /// Checks that `phase_id` names the phase that is judged.
    pub(super) fn phase(&mut self, phase_id: &str) {
        if let Some(text) = self.text("phase_id")
            && text.trim() != phase_id
        {
            self.refuse("phase_id", format!("is `{text}`, not `{phase_id}`"));
        }
    }

    /// A time, which the format does not describe further: text or a number, not blank.
    pub(super) fn time(&mut self, name: &str) -> Option<&'a str> {
        if self.entries.get(name).is_some_and(Value::is_number) {
            self.doubt(name, "is a number, not a time like 2026-01-31T12:00:00Z");
            return None;
        }
        self.text(name)
    }

    /// A required list of text; blank entries are skipped.
    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<&'a str>> {
        let Value::Array(items) = self.required(name)? else {
            self.refuse(name, "is not a list");
            return None;
        };
        let mut texts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item {
                Value::String(text) if text.trim().is_empty() => {
                    self.doubt(&format!("{name}[{at}]"), "is blank");
                }
                Value::String(text) => texts.push(text.as_str()),
                _ => self.refuse(&format!("{name}[{at}]"), "is not text"),
            }
        }
        Some(texts)
    }
}
