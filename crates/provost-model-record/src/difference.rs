//! The first place at which two requests differ.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many characters of a text are shown before the first one that differs, and from there on.
const SHOWN: [usize; 2] = [24, 56];

/// The first place at which a request differs from the recorded one, both under the mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDifference {
    /// JSON pointer into the request; empty for the whole.
    pub pointer: String,
    /// A short part of the recorded request from there, escaped; absent if nothing is there.
    pub recorded: Option<String>,
    /// The same of the request that was made again.
    pub again: Option<String>,
}

/// The first difference; `None` if there is none.
pub fn first(recorded: &Value, again: &Value) -> Option<RequestDifference> {
    let mut pointer = String::new();
    let found = search(recorded, again, &mut pointer)?;
    Some(RequestDifference {
        pointer,
        recorded: found.0,
        again: found.1,
    })
}

/// How many texts, numbers and words differ; fewer means that two requests are closer.
pub(crate) fn distance(recorded: &Value, again: &Value) -> usize {
    match (recorded, again) {
        (Value::Object(one), Value::Object(other)) => {
            let missing = other.iter().filter(|(name, _)| !one.contains_key(*name));
            let shared = one.iter().map(|(name, value)| match other.get(name) {
                Some(theirs) => distance(value, theirs),
                None => size(value),
            });
            shared.sum::<usize>() + missing.map(|(_, value)| size(value)).sum::<usize>()
        }
        (Value::Array(one), Value::Array(other)) => {
            let shared = one
                .iter()
                .zip(other)
                .map(|(one, other)| distance(one, other));
            let rest = one
                .iter()
                .skip(other.len())
                .chain(other.iter().skip(one.len()));
            shared.sum::<usize>() + rest.map(size).sum::<usize>()
        }
        (one, other) if one == other => 0,
        (one, other) => size(one).max(size(other)),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// What is shown of both sides.
type Sides = (Option<String>, Option<String>);

fn search(recorded: &Value, again: &Value, pointer: &mut String) -> Option<Sides> {
    if recorded == again {
        return None;
    }
    let length = pointer.len();
    match (recorded, again) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one
                .keys()
                .chain(other.keys().filter(|it| !one.contains_key(*it)));
            for name in names {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                pointer.push('/');
                pointer.push_str(&escaped);
                if let Some(found) = inside(one.get(name), other.get(name), pointer) {
                    return Some(found);
                }
                pointer.truncate(length);
            }
            None
        }
        (Value::Array(one), Value::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                pointer.push_str(&format!("/{index}"));
                if let Some(found) = inside(one.get(index), other.get(index), pointer) {
                    return Some(found);
                }
                pointer.truncate(length);
            }
            None
        }
        (Value::String(one), Value::String(other)) => {
            let same = one.chars().zip(other.chars());
            let same = same.take_while(|(one, other)| one == other).count();
            Some((Some(excerpt(one, same)), Some(excerpt(other, same))))
        }
        (one, other) => Some((Some(whole(one)), Some(whole(other)))),
    }
}

fn inside(one: Option<&Value>, other: Option<&Value>, pointer: &mut String) -> Option<Sides> {
    match (one, other) {
        (Some(one), Some(other)) => search(one, other, pointer),
        (one, other) => Some((one.map(whole), other.map(whole))),
    }
}

/// The part of `text` around its character `at`, escaped.
fn excerpt(text: &str, at: usize) -> String {
    let from = at.saturating_sub(SHOWN[0]);
    let mut letters = text.chars().skip(from);
    let most = at - from + SHOWN[1];
    let part: String = letters.by_ref().take(most).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if letters.next().is_some() { "…" } else { "" };
    format!("{before}{}{after}", part.escape_debug())
}

fn whole(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt(text, 0),
        other => excerpt(&other.to_string(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_by_its_pointer() {
        let long = "x".repeat(200);
        let rows = [
            (json!({"a": 1}), json!({"a": 2}), "/a", Some("1"), Some("2")),
            (
                json!({"m": [{"c": "do it"}]}),
                json!({"m": [{"c": "do\nthat"}]}),
                "/m/0/c",
                Some("do it"),
                Some("do\\nthat"),
            ),
            (json!({"a/b~c": 1}), json!({}), "/a~1b~0c", Some("1"), None),
            (json!({}), json!({"new": [1]}), "/new", None, Some("[1]")),
            (json!([1]), json!([1, 2]), "/1", None, Some("2")),
            (json!([1, 2]), json!([1]), "/1", Some("2"), None),
            (json!({"a": null}), json!({}), "/a", Some("null"), None),
            (json!(1), json!("1"), "", Some("1"), Some("1")),
        ];
        for (one, other, pointer, recorded, again) in rows {
            let found = first(&one, &other).unwrap();
            let shown = (found.recorded.as_deref(), found.again.as_deref());
            assert_eq!(
                (&*found.pointer, shown),
                (pointer, (recorded, again)),
                "{one} {other}"
            );
            assert!(distance(&one, &other) > 0);
        }
        assert_eq!(first(&json!({"a": [1]}), &json!({"a": [1]})), None);
        let (one, other) = (format!("{long}one{long}"), format!("{long}two{long}"));
        let found = first(&json!(one), &json!(other)).unwrap();
        let shown = found.again.unwrap();
        assert!(
            shown.contains("xtwox") && shown.chars().count() < 90,
            "{shown}"
        );
        assert!(shown.starts_with('…') && shown.ends_with('…'));
    }

    #[test]
    fn what_is_shown_holds_no_control_and_no_invisible_characters() {
        let found = first(&json!("a"), &json!("\u{1b}[31m\u{202e}\u{200b}")).unwrap();
        let shown = found.again.unwrap();
        assert_eq!(shown, "\\u{1b}[31m\\u{202e}\\u{200b}");
    }
}
