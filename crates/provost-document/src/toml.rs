//! Reads TOML as the same kind of value as JSON and YAML.
//!
//! Dates and times become text, as they are written. `nan` and `inf` are refused, because JSON
//! cannot hold them. TOML itself has no repeated keys, and no others than text.

use provost_evidence::json::{self, DEEPEST, MOST, ReadError};
use serde_json::{Map, Number, Value};

/// The largest document we read, in bytes. The parser holds many times the text in memory, and
/// the documents that people write in TOML are small.
pub const LARGEST: usize = 1024 * 1024;

/// Reads one document; its root is always a mapping.
pub fn parse(bytes: &[u8]) -> Result<Value, ReadError> {
    let text = json::text(bytes, LARGEST)?;
    let table = text.parse::<toml::Table>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ReadError::Syntax {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: error.message().to_owned(),
        }
    })?;
    let mut left = MOST;
    convert(toml::Value::Table(table), "", 0, &mut left)
}

fn convert(
    value: toml::Value,
    field: &str,
    depth: usize,
    left: &mut usize,
) -> Result<Value, ReadError> {
    let refuse = |what: String| ReadError::Shape {
        field: field.to_owned(),
        what,
    };
    if depth > DEEPEST {
        return Err(refuse(format!("nested deeper than {DEEPEST} levels")));
    }
    *left = left
        .checked_sub(1)
        .ok_or_else(|| refuse(format!("more than {MOST} values")))?;
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Float(number) => Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| refuse(format!("`{number}` is not a finite number")))?,
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let item = |(at, item)| convert(item, &format!("{field}[{at}]"), depth + 1, left);
            Value::Array(items.map(item).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let path = if field.is_empty() {
                    key.clone()
                } else {
                    format!("{field}.{key}")
                };
                map.insert(key, convert(value, &path, depth + 1, left)?);
            }
            Value::Object(map)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn toml_becomes_what_json_would_say() {
        let text = "a = 1\nb = [true, 1.5, 'x']\nat = 2026-02-14T10:00:00Z\n[t.u]\nv = ''\n";
        let want = json!({
            "a": 1, "b": [true, 1.5, "x"], "at": "2026-02-14T10:00:00Z", "t": {"u": {"v": ""}},
        });
        assert_eq!(parse(text.as_bytes()).unwrap(), want);
    }

    #[test]
    fn what_json_cannot_hold_or_toml_is_not_is_refused_with_its_place() {
        let cases = [
            ("a = 1\na = 2", "line 2, column 1: "),
            ("a = 1\n  b = ", "line 2, column "),
            ("a = [1, nan]", "`a[1]`: `NaN` is not a finite number"),
            ("[x]\ny = -inf", "`x.y`: `-inf` is not a finite number"),
        ];
        for (text, want) in cases {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text:?}: {error}");
        }
        assert!(matches!(parse(b"a = '\xff'"), Err(ReadError::NotText(5))));
        assert!(matches!(
            parse(&vec![b'\n'; LARGEST + 1]),
            Err(ReadError::TooLarge { .. })
        ));
    }

    #[test]
    fn no_nesting_ends_the_stack() {
        for (start, part) in [
            ("a = ", "["),
            ("a = ", "{a="),
            ("", "a."),
            ("[", "a."),
            ("", "[["),
        ] {
            let text = format!("{start}{}", part.repeat(LARGEST / part.len() - 8));
            assert!(parse(text.as_bytes()).is_err(), "{start}{part}");
            let text = format!("{start}{}a = 1", part.repeat(300_000));
            assert!(parse(text.as_bytes()).is_err(), "{start}{part}");
        }
    }
}
