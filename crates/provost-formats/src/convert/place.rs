//! Reads and writes values of a document by their place.
//!
//! A place is a JSON pointer in which `*` stands for every element of a list, as in
//! `/acceptance_tests/*/cmd`.

use serde_json::{Map, Value};

fn steps(place: &str) -> impl Iterator<Item = &str> {
    place.split('/').skip(1)
}

/// The value at `place`; with a `*`, the list of the values at each element.
pub(super) fn read(document: &Value, place: &str) -> Option<Value> {
    let Some((list, inner)) = place.split_once("/*") else {
        return document.pointer(place).cloned();
    };
    let items = document.pointer(list)?.as_array()?;
    let values: Option<Vec<Value>> = items.iter().map(|item| read(item, inner)).collect();
    values.map(Value::Array)
}

/// Puts `value` at `place` and makes missing objects; with a `*`, one object for each element.
pub(super) fn write(document: &mut Value, place: &str, value: Value) {
    let Some((list, inner)) = place.split_once("/*") else {
        *object_at(document, place) = value;
        return;
    };
    let Value::Array(items) = value else { return };
    let rows = items.into_iter().map(|item| {
        let mut row = Value::Object(Map::new());
        write(&mut row, inner, item);
        row
    });
    *object_at(document, list) = Value::Array(rows.collect());
}

fn object_at<'a>(document: &'a mut Value, place: &str) -> &'a mut Value {
    steps(place).fold(document, |at, step| {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        &mut at[step]
    })
}

/// Whether `pointer` is `place`, with a number where that has `*`.
pub(super) fn is_at(pointer: &str, place: &str) -> bool {
    let (mut there, mut wanted) = (steps(pointer), steps(place));
    loop {
        match (there.next(), wanted.next()) {
            (None, None) => return true,
            (Some(there), Some(wanted)) if wanted == "*" || there == wanted => {}
            _ => return false,
        }
    }
}

/// Whether `place` is below `pointer`.
fn is_below(pointer: &str, place: &str) -> bool {
    let mut wanted = steps(place);
    let fits = steps(pointer).all(|step| {
        let next = wanted.next();
        next.is_some_and(|next| next == "*" || next == step)
    });
    fits && wanted.next().is_some()
}

/// The parts of `document` that say something and that no place of `taken` covers, as pointers.
pub(super) fn others(document: &Value, taken: &[&str]) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    visit(document, "", taken, &mut found);
    found
}

fn visit(value: &Value, pointer: &str, taken: &[&str], found: &mut Vec<(String, Value)>) {
    if taken.iter().any(|place| is_at(pointer, place)) {
        return;
    }
    if !taken.iter().any(|place| is_below(pointer, place)) {
        if !says_nothing(value) {
            found.push((pointer.to_owned(), value.clone()));
        }
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                visit(field, &format!("{pointer}/{name}"), taken, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                visit(item, &format!("{pointer}/{at}"), taken, found);
            }
        }
        _ => {}
    }
}

/// Whether `value` is `null` or empty, so that leaving it out loses nothing.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_at_a_place_is_read_there() {
        let mut document = json!({ "a": 1 });
        write(&mut document, "/b/c", json!("text"));
        write(&mut document, "/rows/*/cmd", json!(["one", "two"]));
        assert_eq!(
            document,
            json!({
                "a": 1,
                "b": { "c": "text" },
                "rows": [{ "cmd": "one" }, { "cmd": "two" }],
            })
        );
        assert_eq!(read(&document, "/rows/*/cmd"), Some(json!(["one", "two"])));
        assert_eq!(read(&document, "/rows/*/name"), None);
        assert_eq!(read(&document, "/b/x"), None);
    }

    #[test]
    fn what_no_place_covers_is_named_once_and_as_high_as_it_can_be() {
        let document = json!({
            "a": { "b": 1, "c": { "d": 2, "e": [3] } },
            "rows": [{ "cmd": "one", "name": "n" }],
            "f": { "g": 1 },
            "empty": [{}],
        });
        let found = others(&document, &["/a/b", "/rows/*/cmd"]);
        let pointers: Vec<&str> = found.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(pointers, ["/a/c", "/f", "/rows/0/name"]);
    }
}
