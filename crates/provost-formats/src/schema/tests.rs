//! Compares the schemas with the readers.

#![expect(clippy::disallowed_methods, reason = "the examples are files")]

use provost_core::code::Code;
use provost_core::schema::validate::validate;
use serde_json::{Value, json};

use super::*;
use provost_core::document::{self, Format as Spelling};

fn example(foreign: &Foreign) -> Value {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../docs/examples/{}", foreign.example);
    let bytes = std::fs::read(&path).unwrap();
    let spelling = Spelling::of_name(&path).unwrap_or(Spelling::Json);
    document::parse(spelling, &bytes).unwrap()
}

/// The pointers of all values inside `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Shapes that depend on another field: what a hardened card has, and how a blocked log ends.
const DEPENDENT: &[&str] = &[
    "packet_task_card.v1 /evidence_files removed",
    "operator_worklog_entry.v1 /code removed",
    "operator_worklog_entry.v1 /next_step =",
];

#[test]
fn every_example_fits_its_schema_and_its_reader() {
    for foreign in FOREIGN {
        let name = foreign.format.name;
        let example = example(foreign);
        assert_eq!(validate(&foreign.format.schema(), &example), [], "{name}");
        let verdict = (foreign.judge)(&example);
        assert!(verdict.allow, "{name}: {verdict:?}");
    }
}

#[test]
fn every_field_of_a_schema_is_in_its_example() {
    for foreign in FOREIGN {
        let schema = foreign.format.schema();
        let example = example(foreign);
        for name in schema["properties"].as_object().unwrap().keys() {
            assert!(
                example.get(name).is_some(),
                "{} {name}",
                foreign.format.name
            );
        }
    }
}

#[test]
fn a_schema_and_its_reader_say_the_same_of_every_wrong_value() {
    let wrong = [
        json!(null),
        json!(-1),
        json!(true),
        json!(""),
        json!(" "),
        json!([]),
        json!({}),
        json!([-1]),
        json!({ "surprise": 1 }),
    ];
    let mut differ = Vec::new();
    for foreign in FOREIGN {
        let schema = foreign.format.schema();
        let example = example(foreign);
        let mut found = Vec::new();
        places(&example, "", &mut found);
        for place in found {
            for value in &wrong {
                let mut changed = example.clone();
                *changed.pointer_mut(&place).unwrap() = value.clone();
                let what = format!("{place} = {value}");
                differ.extend(compare(foreign, &schema, &changed, (&place, what)));
            }
            // Both must refuse a missing required field.
            let mut changed = example.clone();
            if let Some((parent, field)) = place.rsplit_once('/')
                && let Some(Value::Object(fields)) = changed.pointer_mut(parent)
            {
                fields.remove(field);
                let what = format!("{place} removed");
                differ.extend(compare(foreign, &schema, &changed, (&place, what)));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// How the schema and the reader differ about `changed`, if they do.
fn compare(
    foreign: &Foreign,
    schema: &Value,
    changed: &Value,
    (place, what): (&str, String),
) -> Option<String> {
    let fits = validate(schema, changed).is_empty();
    let verdict = (foreign.judge)(changed);
    let line = format!("{} {what}", foreign.format.name);
    let is_one_of = |list: &[&str]| list.iter().any(|known| line.starts_with(known));
    let differs = match (fits, verdict.allow) {
        (true, true) | (false, false) => false,
        (false, true) => true,
        // Rules between fields are not a matter of shape.
        (true, false) => is_of_shape(&verdict, place) && !is_one_of(DEPENDENT),
    };
    differs.then(|| format!("{line}: schema {fits}, reader {}", verdict.reason))
}

/// Whether a refusal is about the shape of the value at `place`.
fn is_of_shape(verdict: &Verdict, place: &str) -> bool {
    let shape = [
        Code::SchemaInvalid,
        Code::MissingRequiredInput,
        Code::UnknownSchemaVersion,
        Code::PacketRefused,
    ];
    let details = verdict.details.clone().unwrap_or_default();
    let path = details["findings"][0]["path"].as_str().unwrap_or_default();
    let there = verdict.code == Code::PacketRefused || path.contains(place);
    shape.contains(&verdict.code) && there
}
