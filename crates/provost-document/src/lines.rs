//! Finds the line of each part of a document in its text.
//!
//! The lines help people to find a place in their file; nothing is decided by them. A document that
//! cannot be read has no lines.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser};
use provost_evidence::json::{DEEPEST, LARGEST};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Format;

/// The line of each part of a document, from 1, by its JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The lines of `bytes`, written as `format`; none if that cannot be read.
    pub fn of(format: Format, bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        let text = text.filter(|text| text.len() <= LARGEST);
        let lines = text.and_then(|text| match format {
            // Outside of texts JSON may be indented by tabs, which YAML does not accept.
            Format::Json => events(&text.replace('\t', " ")),
            Format::Yaml => events(text),
            Format::Toml => tables(text),
        });
        Self(lines.unwrap_or_default())
    }

    /// The line of the part at `pointer`, or of its nearest parent.
    pub fn line(&self, pointer: &str) -> Option<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return Some(*line);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }
}

/// A list or a mapping that has begun.
enum Open {
    List(usize),
    /// The key whose value comes next.
    Mapping(Option<String>),
}

/// Where the parts of a YAML document begin; JSON is YAML.
fn events(text: &str) -> Option<BTreeMap<String, usize>> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST + 1,
        block_nesting_limit: DEEPEST + 1,
    };
    let mut lines = BTreeMap::new();
    let mut open: Vec<(String, Open)> = Vec::new();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.ok()?;
        let opens = match &event {
            Event::Scalar(..) | Event::Alias(_) => None,
            Event::SequenceStart(..) => Some(Open::List(0)),
            Event::MappingStart(..) => Some(Open::Mapping(None)),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let pointer = match open.last_mut() {
            None => String::new(),
            Some((above, Open::List(next))) => {
                *next += 1;
                let pointer = format!("{above}/{}", *next - 1);
                lines.insert(pointer.clone(), span.start.line());
                pointer
            }
            Some((above, Open::Mapping(key))) => match (key.take(), &event) {
                (Some(pointer), _) => pointer,
                (None, Event::Scalar(name, ..)) => {
                    let pointer = format!("{above}/{}", escaped(name));
                    // A part stands on the line of its key, wherever its value begins.
                    lines.insert(pointer.clone(), span.start.line());
                    *key = Some(pointer);
                    continue;
                }
                (None, _) => return None,
            },
        };
        if let Some(opens) = opens {
            open.push((pointer, opens));
        }
    }
    Some(lines)
}

/// Where the parts of a TOML document begin.
fn tables(text: &str) -> Option<BTreeMap<String, usize>> {
    let table = DeTable::parse(text).ok()?;
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| starts.partition_point(|newline| *newline < at) + 1;
    let mut lines = BTreeMap::new();
    let mut left: Vec<(String, &DeValue<'_>)> = Vec::new();
    members("", table.get_ref(), &line, &mut lines, &mut left);
    while let Some((above, value)) = left.pop() {
        match value {
            DeValue::Table(table) => members(&above, table, &line, &mut lines, &mut left),
            DeValue::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let pointer = format!("{above}/{at}");
                    lines.insert(pointer.clone(), line(Spanned::span(item).start));
                    left.push((pointer, item.get_ref()));
                }
            }
            _ => {}
        }
    }
    Some(lines)
}

fn members<'t>(
    above: &str,
    table: &'t DeTable<'_>,
    line: &dyn Fn(usize) -> usize,
    lines: &mut BTreeMap<String, usize>,
    left: &mut Vec<(String, &'t DeValue<'t>)>,
) {
    for (key, value) in table {
        let pointer = format!("{above}/{}", escaped(key.get_ref()));
        lines.insert(pointer.clone(), line(key.span().start));
        left.push((pointer, value.get_ref()));
    }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_lines() {
        let json = "{\n\t\"allow\": [\n\t\t\"src\",\n\t\t\"docs\"\n\t],\n\t\"x\": {\"net\": [],\n\
                    \"permit\": {}}\n}\n";
        let yaml = "allow:\n  - src\n  # more\n  - docs\nx:\n  net: []\n  permit: {}\n";
        let toml = "allow = [\n  'src',\n  'docs']\n\n[x]\nnet = []\n[x.permit]\n";
        let cases = [
            (Format::Json, json, [2, 3, 4, 6, 6, 7]),
            (Format::Yaml, yaml, [1, 2, 4, 5, 6, 7]),
            (Format::Toml, toml, [1, 2, 3, 5, 6, 7]),
        ];
        let pointers = [
            "/allow",
            "/allow/0",
            "/allow/1",
            "/x",
            "/x/net",
            "/x/permit",
        ];
        for (format, text, want) in cases {
            let lines = Lines::of(format, text.as_bytes());
            let found = pointers.map(|pointer| lines.line(pointer).unwrap_or_default());
            assert_eq!(found, want, "{format:?}");
            // A missing part has the line of its parent.
            assert_eq!(lines.line("/x/permit/oracle"), Some(want[5]), "{format:?}");
            assert_eq!(lines.line("/elsewhere"), None, "{format:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_has_no_lines() {
        for format in [Format::Json, Format::Yaml, Format::Toml] {
            for bytes in [&b"{\"a\": ["[..], b"\xff", b"]", b"= 1"] {
                let lines = Lines::of(format, bytes);
                assert_eq!(lines.line("/elsewhere"), None, "{format:?} {bytes:?}");
            }
        }
    }
}
