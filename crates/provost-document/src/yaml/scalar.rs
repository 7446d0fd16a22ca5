//! Types the scalars of YAML by its core schema.

use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

/// The value of `text`, written in `style` and with `tag`; an error is a message.
pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => plain(text),
            _ => Ok(Value::String(text.to_owned())),
        };
    };
    let name = tag.core_suffix();
    if name == Some("str") {
        return Ok(Value::String(text.to_owned()));
    }
    let value = plain(text)?;
    let fits = match (name, &value) {
        (Some("int"), Value::Number(number)) => !number.is_f64(),
        (Some("null"), Value::Null)
        | (Some("bool"), Value::Bool(_))
        | (Some("float"), Value::Number(_)) => true,
        (Some("null" | "bool" | "int" | "float"), _) => false,
        _ => return Err(super::foreign(tag)),
    };
    if fits {
        Ok(value)
    } else {
        Err(format!("`{text}` does not fit its tag"))
    }
}

/// The core schema for plain text.
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Err(not_finite(text)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Err(not_finite(text));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            let number = u64::from_str_radix(digits, radix);
            return number
                .map(|number| Value::Number(number.into()))
                .map_err(|_| format!("the number `{text}` is too large"));
        }
    }
    if !is_number(unsigned) {
        return Ok(Value::String(text.to_owned()));
    }
    number(text)
}

/// Whether `text`, its sign taken off, is a decimal integer or a float of the core schema.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let some = !whole.is_empty() || !fraction.is_empty();
    some && digits(whole) && digits(fraction) && exponent_fits
}

/// Reads what [`is_number`] accepted. An integer beyond 64 bits becomes the nearest float, as in
/// JSON readers.
fn number(text: &str) -> Result<Value, String> {
    let unsigned_text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(integer) = unsigned_text.parse::<u64>() {
        return Ok(Value::Number(integer.into()));
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Value::Number(integer.into()));
    }
    let float = text.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| not_finite(text))
}

fn not_finite(text: &str) -> String {
    format!("`{text}` is not a finite number")
}
