//! Writes `docs/FIELDS.md`: the use of every field of the source documents of Provost.
//!
//! No row is written by hand. The effect of a field is found by changing it in a valid document and
//! running the reader again, or by searching for it in written documents. [`source`] lists the
//! fields that must exist.

mod change;
mod probe;
mod sample;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use provost_core::package::Operation;
use provost_core::schema::FORMATS;
use provost_formats::schema::FOREIGN;
use serde_json::Value;

use probe::Rows;
use source::{Section, Source, Subject};

use crate::Result;

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

pub fn write(root: &Path) -> Result {
    Ok(fs::write(root.join(PAGE), render(root)?)?)
}

/// Whether the page below `root` is up to date.
pub fn check(root: &Path) -> Result {
    if fs::read_to_string(root.join(PAGE))? == render(root)? {
        return Ok(());
    }
    Err(format!("{PAGE}: is not up to date; run `cargo xtask fields`").into())
}

/// The field names of the formats that others fixed, if no format of ours has the same: twelve
/// letters or more in several words, so that they mean nothing else.
pub fn foreign_names() -> Result<BTreeSet<String>> {
    let (mut own, mut names) = (BTreeSet::new(), BTreeSet::new());
    for section in Source::read()?.sections {
        let is_own = matches!(section.subject, Subject::Contract | Subject::Report(_));
        let fields = section.fields().into_iter();
        let words = fields.flat_map(|field| field.split('.'));
        let words = words.map(|word| word.trim_end_matches("[]").to_owned());
        if is_own { &mut own } else { &mut names }.extend(words);
    }
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
    Ok(names)
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

fn render(root: &Path) -> Result<String> {
    let source = Source::read()?;
    let mut page = HEAD.to_owned();
    for section in &source.sections {
        let title = &section.title;
        let rows = rows(section, root, &source.elsewhere);
        let rows = rows.map_err(|why| format!("{title}: {why}"))?;
        page += &format!("\n## {title}\n\n{}\n\n", section.about.join(" "));
        page += "| field | needed | use | by |\n|---|---|---|---|\n";
        for (field, row) in rows {
            let by = row.by.join(", ");
            page += &format!("| `{field}` | {} | {} | {by} |\n", row.needed, row.usage);
        }
    }
    Ok(page)
}

/// The rows of a section; every field of the source must be among them.
fn rows(section: &Section, root: &Path, elsewhere: &[(String, String)]) -> Result<Rows> {
    let fields = section.fields();
    let package = |operation, payload| probe::package(root, operation, payload, &fields);
    let rows = match &section.subject {
        Subject::Foreign(name) => probe::foreign(root, name),
        Subject::Contract => probe::contract(root, elsewhere),
        Subject::Report(name) => probe::report(name),
        Subject::Derive(payload) => package(Operation::Derive, payload),
        Subject::Handoff(payload) => package(Operation::Handoff, payload),
        Subject::Depth(payload) => package(Operation::Depth, payload),
        Subject::Answer(place) => probe::answer(root, place),
        Subject::Verdict => Ok(probe::verdict()),
        Subject::Request(tool) => change::request(tool),
        Subject::ToolAnswer(tool) => change::answer(tool, &fields),
    }?;
    match fields.iter().find(|field| !rows.contains_key(**field)) {
        None => Ok(rows),
        Some(field) => Err(format!("the source has `{field}`, and no row has").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_readers_do() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        check(&root).unwrap();
    }
}
