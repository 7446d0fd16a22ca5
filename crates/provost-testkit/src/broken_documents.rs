//! Documents that an agent could write instead of a valid one: values changed, removed or added, and
//! spellings that parsers disagree about.

use proptest::prelude::*;
use serde_json::{Value, json};

/// The pointers of all values inside `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let mut below = |name: &str, value| places(value, &format!("{at}/{name}"), found);
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, value)| below(&at.to_string(), value));
        }
        _ => {}
    }
}

/// A change of one value of a document.
#[derive(Debug, Clone)]
pub struct Change {
    at: usize,
    how: u8,
    other: Value,
}

pub fn change() -> impl Strategy<Value = Change> {
    let parts = (any::<usize>(), 0..8_u8, anything());
    parts.prop_map(|(at, how, other)| Change { at, how, other })
}

impl Change {
    pub fn apply(&self, document: &mut Value) {
        let mut all = Vec::new();
        places(document, "", &mut all);
        let place = &all[self.at % all.len()];
        let (parent, name) = place.rsplit_once('/').unwrap_or_default();
        let other = &self.other;
        match self.how {
            0 => {
                if let Some(Value::Object(fields)) = document.pointer_mut(parent) {
                    fields.remove(name);
                }
            }
            1 => {
                let here = document.pointer_mut(place).unwrap();
                if let Value::Object(fields) = here {
                    // Serde would accept this form.
                    *here = fields.values().cloned().collect();
                }
            }
            2 => {
                if let Some(Value::Object(fields)) = document.pointer_mut(place) {
                    fields.insert("more".to_owned(), other.clone());
                }
            }
            _ => *document.pointer_mut(place).unwrap() = other.clone(),
        }
    }
}

/// Serialises `document`, in one of the ways that another parser would read differently.
pub fn spelled(document: &Value, how: u8) -> String {
    let text = document.to_string();
    match how {
        0 => format!("\u{feff}{text}"),
        1 => format!("{text}{text}"),
        2 => format!("{text} x"),
        3 => text.replacen('{', "{\"summary\":\"first\",", 1),
        4 => text.replace("20", "NaN"),
        5 => text.replace("20", "1e999"),
        6 => format!("{}{text}{}", "[".repeat(200), "]".repeat(200)),
        7 => text[..text.len() - 1].to_owned(),
        _ => text,
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let deep = (0..70).fold(json!("x"), |inner, _| json!([inner]));
    let values = [
        json!(null),
        json!(-1),
        json!(0.5),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("SUCCESS"),
        json!("PASS"),
        json!([]),
        json!(["task-0001", "SUCCESS", "s", {}, null]),
        json!(["PASS", "fine", [], []]),
        json!({}),
        json!([null, null]),
        json!(true),
        deep,
    ];
    proptest::sample::select(values.to_vec())
}
