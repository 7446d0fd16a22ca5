//! Writes `docs/FIELDS.md`: the use of every field of the source documents of Provost.
//!
//! No row is written by hand. The effect of a field is found by changing it in a valid document and
//! running the reader again, or by searching for it in written documents. [`source`] lists the
//! fields that must exist.

mod change;
mod probe;
mod sample;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use provost_core::schema::FORMATS;
use provost_formats::schema::FOREIGN;
use serde_json::Value;

use probe::Row;
use source::{SECTIONS, Section, Subject};

/// Path of the page.
const PAGE: &str = "docs/FIELDS.md";

const HEAD: &str = "\
# Use of every field

Made by `cargo xtask fields`; do not edit. Each row was found by changing the field in a valid
document and running the reader again, or by searching for the field in written documents.

- *consumed*: a wrong value is refused, or another value changes the answer. The codes say by
  which rules.
- *carried*: it is kept and passed on, and its value has no effect. If its shape is checked, the
  code of that check is given.
- *refused*: a document that has it is refused.
- *written*: Provost writes it; its readers check its shape.
- *absent*: nothing reads or writes it.

`[]` stands for the elements of a list, `.*` for the keys of a map.
";

/// Why the page cannot be made.
#[derive(Debug)]
pub struct FieldsError(String);

impl std::fmt::Display for FieldsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

pub fn write(root: &Path) -> Result<(), FieldsError> {
    let page = render(root)?;
    fs::write(root.join(PAGE), page).map_err(|error| FieldsError(format!("{PAGE}: {error}")))
}

/// What is wrong with the page below `root`, if anything.
pub fn stale(root: &Path) -> Option<String> {
    match render(root) {
        Err(why) => Some(why.to_string()),
        Ok(page) => {
            let kept = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
            (kept != page).then(|| format!("{PAGE}: is not up to date; run `cargo xtask fields`"))
        }
    }
}

/// The field names of the formats that others fixed, if no format of ours has the same: twelve
/// letters or more in several words, so that they mean nothing else.
pub fn foreign_names() -> BTreeSet<String> {
    let is_own = |section: &&Section| {
        let subject = &section.subject;
        matches!(subject, Subject::Contract | Subject::Report(_))
    };
    let (own, foreign): (Vec<_>, Vec<_>) = SECTIONS.iter().partition(is_own);
    let fields_of = |sections: Vec<&Section>| -> BTreeSet<String> {
        let fields = sections
            .iter()
            .flat_map(|section| section.fields.split_whitespace());
        let names = fields.flat_map(|field| field.split('.'));
        names
            .map(|name| name.trim_end_matches("[]").to_owned())
            .collect()
    };
    let (mut own, mut names) = (fields_of(own), fields_of(foreign));
    for format in FORMATS {
        properties(&format.schema(), &mut own);
    }
    for foreign in FOREIGN {
        properties(&foreign.format.schema(), &mut names);
    }
    let letters = |name: &str| name.chars().filter(|letter| letter.is_alphabetic()).count();
    names.retain(|name| name.contains('_') && letters(name) >= 12 && !own.contains(name));
    // Every format has this one, those of chains and receipts as well.
    names.remove("schema_version");
    names
}

/// Adds the names of all properties in `schema`.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let known = fields.get("properties").and_then(Value::as_object);
            names.extend(known.into_iter().flatten().map(|(name, _)| name.clone()));
            fields.values().for_each(|value| properties(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| properties(value, names)),
        _ => {}
    }
}

fn render(root: &Path) -> Result<String, FieldsError> {
    let mut page = HEAD.to_owned();
    for section in SECTIONS {
        let rows = rows(section, root)?;
        page += &format!("\n## {}\n\n{}\n\n", section.title, section.about);
        page += "| field | needed | use | by |\n|---|---|---|---|\n";
        for (field, row) in rows {
            let by = row.by.join(", ");
            page += &format!("| `{field}` | {} | {} | {by} |\n", row.needed, row.usage);
        }
    }
    Ok(page)
}

/// The rows of a section; every field of the source must be among them.
fn rows(section: &Section, root: &Path) -> Result<BTreeMap<String, Row>, FieldsError> {
    let fields: Vec<&str> = section.fields.split_whitespace().collect();
    let rows = match &section.subject {
        Subject::Foreign(name) => probe::foreign(root, name),
        Subject::Contract => probe::contract(root),
        Subject::Report(name) => probe::report(name),
        Subject::Package(operation, payload) => {
            probe::package(root, (*operation, payload), &fields)
        }
        Subject::Answer(place) => probe::answer(root, place),
        Subject::Verdict => Ok(probe::verdict()),
        Subject::Request(tool) => change::request(tool),
        Subject::ToolAnswer(tool) => change::answer(tool, &fields),
    };
    let rows = rows.map_err(|why| FieldsError(format!("{}: {why}", section.title)))?;
    for field in fields {
        if !rows.contains_key(field) {
            let why = format!(
                "{}: the source has `{field}`, and no row has",
                section.title
            );
            return Err(FieldsError(why));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_readers_do() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(stale(&root), None);
    }
}
