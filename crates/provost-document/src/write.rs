//! Writes a document as JSON, YAML or TOML, with a comment for each of its fields.

use serde_json::{Map, Value};

use super::{Format, yaml};

/// `document` in `format`. Its fields come in the order of `words`, each below its comment where
/// the format has comments; fields that `words` does not list come last.
pub fn render(format: Format, document: &Value, words: &[(&str, &str)]) -> String {
    let Value::Object(fields) = document else {
        return format!("{document:#}\n");
    };
    let known = words.iter().filter_map(|(name, words)| {
        let (name, value) = fields.get_key_value(*name)?;
        Some((name, *words, value))
    });
    let others = fields.iter().filter(|(name, _)| {
        let listed = |(known, _): &(&str, &str)| known == name;
        !words.iter().any(listed)
    });
    let others = others.map(|(name, value)| (name, "", value));
    let all: Vec<(&String, &str, &Value)> = known.chain(others).collect();
    match format {
        Format::Json => format!("{document:#}\n"),
        Format::Yaml => commented(&all, yaml::render),
        Format::Toml => {
            // Everything below a table header belongs to the table, so plain values come first.
            let (tables, plain): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(_, _, value)| is_table(value));
            commented(&plain, toml) + "\n" + &commented(&tables, toml)
        }
    }
}

fn commented(fields: &[(&String, &str, &Value)], render: fn(&Value) -> String) -> String {
    let mut text = String::new();
    for (name, words, value) in fields {
        if !words.is_empty() {
            text += &format!("# {words}\n");
        }
        let one = Map::from_iter([((*name).clone(), (*value).clone())]);
        text += render(&Value::Object(one)).trim_start();
    }
    text
}

/// Whether TOML would write `value` below a header of its own.
fn is_table(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

fn toml(value: &Value) -> String {
    // The values have no null, so TOML holds them all.
    ::toml::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[test]
    fn what_is_written_reads_back_in_every_format() {
        let document = json!({
            "task_id": "a: \"b\" # c", "paths": ["x", "y'z"], "none": [], "count": 5,
            "tests": [{ "cmd": "a b", "must_pass": true }, { "cmd": "c", "must_pass": false }],
            "x": { "net": [], "limits": { "memory": 1 }, "flag": false },
        });
        let words = [
            ("x", "More."),
            ("tests", "What decides."),
            ("task_id", "Its name."),
        ];
        for format in [Format::Json, Format::Yaml, Format::Toml] {
            let text = render(format, &document, &words);
            let read = parse(format, text.as_bytes());
            assert_eq!(read.unwrap(), document, "{format:?}\n{text}");
            let comments = text.lines().filter(|line| line.starts_with("# ")).count();
            assert_eq!(
                comments,
                if format == Format::Json { 0 } else { 3 },
                "{text}"
            );
        }
    }
}
