//! Compares an answer with the expectation of a scenario.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Result;

/// Variables by name, without the `$`.
pub(super) type Variables = BTreeMap<String, Value>;

/// A value with its variables replaced.
pub(super) fn resolve(value: &Value, variables: &Variables) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => variables.get(name).cloned().unwrap_or(Value::Null),
            None => value.clone(),
        },
        Value::Array(list) => list.iter().map(|one| resolve(one, variables)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let pair = |(name, value): (&String, &Value)| (name.clone(), resolve(value, variables));
            Value::Object(fields.map(pair).collect())
        }
        other => other.clone(),
    }
}

/// Returns the first difference as an error.
pub(super) fn compare(
    expected: &Map<String, Value>,
    answer: &Result<Value, String>,
    variables: &Variables,
) -> Result {
    let wants_error = expected.get("error") == Some(&Value::Bool(true));
    let answer = match answer {
        Err(_) if wants_error => return Ok(()),
        Err(words) => return Err(format!("refused: {words}").into()),
        Ok(answer) if wants_error => return Err(format!("expected an error, got {answer}").into()),
        Ok(answer) => answer,
    };
    for (path, want) in expected {
        let want = resolve(want, variables);
        let found = find(answer, path);
        if !fits(&want, found) {
            let found = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            return Err(format!("expected {path} = {want}, got {found} in {answer}").into());
        }
    }
    Ok(())
}

pub(super) fn find<'a>(answer: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = answer;
    for part in path.split('.') {
        here = match here {
            Value::Array(list) => list.get(part.parse::<usize>().ok()?)?,
            Value::Object(fields) => fields.get(part)?,
            _ => return None,
        };
    }
    Some(here)
}

fn fits(want: &Value, found: Option<&Value>) -> bool {
    let Some((name, limit)) = matcher(want) else {
        return match found {
            None => want.is_null(),
            Some(found) => same(want, found),
        };
    };
    let length = found.and_then(|found| match found {
        Value::Array(list) => Some(list.len()),
        Value::Object(fields) => Some(fields.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    });
    let number = found.and_then(Value::as_f64);
    match name {
        "absent" => found.is_none(),
        "present" => found.is_some_and(|found| !found.is_null()),
        "len" => length.is_some_and(|length| limit.as_u64() == Some(length as u64)),
        "min_len" => length
            .zip(limit.as_u64())
            .is_some_and(|(length, least)| length as u64 >= least),
        "contains" => {
            let list = found.and_then(Value::as_array);
            let wanted = limit.as_array();
            list.zip(wanted)
                .is_some_and(|(list, wanted)| wanted.iter().all(|one| list.contains(one)))
        }
        "min" => number
            .zip(limit.as_f64())
            .is_some_and(|(number, least)| number >= least),
        "max" => number
            .zip(limit.as_f64())
            .is_some_and(|(number, most)| number <= most),
        "any_of" => {
            let choices = limit.as_array().into_iter().flatten();
            let found = found.unwrap_or(&Value::Null);
            choices.into_iter().any(|one| same(one, found))
        }
        _ => false,
    }
}

/// A matcher is an object with one of these names.
fn matcher(want: &Value) -> Option<(&str, &Value)> {
    const NAMES: [&str; 8] = [
        "absent", "present", "len", "min_len", "contains", "min", "max", "any_of",
    ];
    let fields = want.as_object().filter(|fields| fields.len() == 1)?;
    let (name, limit) = fields.iter().next()?;
    NAMES
        .contains(&name.as_str())
        .then_some((name.as_str(), limit))
}

fn same(want: &Value, found: &Value) -> bool {
    match (want.as_f64(), found.as_f64()) {
        // `0` and `0.0` are one number.
        (Some(want), Some(found)) => (want - found).abs() < 1e-9,
        _ => want == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matchers_say_no_as_well_as_yes() {
        let answer = json!({ "a": [1, 2], "b": null, "c": { "d": "x" }, "n": -2.5 });
        let cases = [
            (json!({ "a": [1, 2] }), true),
            (json!({ "a": [2, 1] }), false),
            (json!({ "a": { "len": 2 } }), true),
            (json!({ "a": { "len": 1 } }), false),
            (json!({ "a": { "min_len": 3 } }), false),
            (json!({ "a": { "contains": [2] } }), true),
            (json!({ "a": { "contains": [3] } }), false),
            (json!({ "a.1": 2 }), true),
            (json!({ "c.d": "x" }), true),
            (json!({ "c.d": "y" }), false),
            (json!({ "b": null, "z": null }), true),
            (json!({ "b": { "present": true } }), false),
            (json!({ "z": { "absent": true } }), true),
            (json!({ "a": { "absent": true } }), false),
            (json!({ "n": { "max": -1 } }), true),
            (json!({ "n": { "min": -1 } }), false),
            (json!({ "c.d": { "any_of": ["x", "y"] } }), true),
            (json!({ "error": true }), false),
            (json!({ "c.d": "$v" }), true),
        ];
        let variables = Variables::from([("v".to_owned(), json!("x"))]);
        for (want, holds) in cases {
            let fields = want.as_object().unwrap();
            let found = compare(fields, &Ok(answer.clone()), &variables);
            assert_eq!(found.is_ok(), holds, "{want}: {found:?}");
        }
    }
}
