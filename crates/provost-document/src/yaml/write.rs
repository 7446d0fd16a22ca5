//! Writes YAML that every reader reads in the same way.
//!
//! Text is always in double quotes with JSON's escapes, so that no version of YAML reads it as a
//! number, a date or a boolean.

use serde_json::Value;

/// `value` as a document in block style.
pub fn render(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => block(value, 0, &mut text),
        Value::Array(items) if !items.is_empty() => block(value, 0, &mut text),
        _ => {
            text += &flow(value);
            text.push('\n');
        }
    }
    text
}

/// Writes the lines of a list or mapping that is not empty.
fn block(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                *text += &format!("{margin}{}:", name(key));
                below(value, indent + 2, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inside = String::new();
                below(item, indent + 2, &mut inside);
                // The value of an item begins beside its dash.
                *text += &format!("{margin}- {}", inside.trim_start());
            }
        }
        _ => {}
    }
}

/// Writes what comes after a key or a dash.
fn below(value: &Value, indent: usize, text: &mut String) {
    let nested = match value {
        Value::Object(entries) => !entries.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        text.push('\n');
        block(value, indent, text);
    } else {
        *text += &format!(" {}\n", flow(value));
    }
}

/// A scalar, or an empty list or mapping: as JSON has it.
fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => quoted(string),
        other => other.to_string(),
    }
}

/// A key; a word needs no quotes, except where old readers see a boolean.
fn name(key: &str) -> String {
    let of_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let is_word = key.starts_with(|letter: char| letter.is_ascii_lowercase());
    let is_taken = matches!(
        key,
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    if is_word && key.bytes().all(of_word) && !is_taken {
        key.to_owned()
    } else {
        quoted(key)
    }
}

fn quoted(string: &str) -> String {
    let mut text = String::from("\"");
    for character in string.chars() {
        match character {
            '"' => text += "\\\"",
            '\\' => text += "\\\\",
            '\n' => text += "\\n",
            '\t' => text += "\\t",
            // Characters that are not printable in YAML, or break a line there.
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                text += &format!("\\u{:04X}", u32::from(character));
            }
            '\u{fffe}' | '\u{ffff}' => text += &format!("\\u{:04X}", u32::from(character)),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}
