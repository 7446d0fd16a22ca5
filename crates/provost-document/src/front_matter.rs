//! Splits Markdown from the YAML in front of it.
//!
//! Front matter begins with a line `---` that is the very first of the file and ends with the next
//! line that is `---` or `...`. Blanks after the dashes, a byte order mark and CRLF are accepted.
//! Front matter without an end is refused: a reader that took it for plain Markdown would not see
//! its fields.

use serde_json::Value;

use super::yaml;
use provost_evidence::json::{self, LARGEST, ReadError};

/// Markdown, and the YAML in front of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The front matter; `null` when it is empty.
    pub front: Value,
    /// Everything after it.
    pub body: &'a str,
}

/// Splits `bytes`; lines and columns in errors count from the first line of the whole file.
pub fn parse(bytes: &[u8]) -> Result<Page<'_>, ReadError> {
    let text = json::text(bytes, LARGEST)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(at_start("no front matter, the first line is not `---`"));
    }
    let mut end = first.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            // The first line is included: `---` is YAML as well, and the line numbers stay true.
            let front = yaml::parse(&text.as_bytes()[..end])?;
            let body = &text[end + line.len()..];
            return Ok(Page { front, body });
        }
        end += line.len();
    }
    Err(at_start("the front matter does not end with a line `---`"))
}

fn at_start(what: &str) -> ReadError {
    ReadError::Syntax {
        line: 1,
        column: 1,
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn front_matter_is_what_stands_between_the_first_two_lines_of_dashes() {
        let cases = [
            ("---\na: 1\n---\nbody\n", json!({"a": 1}), "body\n"),
            ("---\r\na: 1\r\n---\r\nbody", json!({"a": 1}), "body"),
            ("\u{feff}--- \na: 1\n...\nbody", json!({"a": 1}), "body"),
            ("---\n---\n", json!(null), ""),
            ("---\na: 1\n---", json!({"a": 1}), ""),
            (
                "---\na: 1\n---\n---\nb: 2\n---\n",
                json!({"a": 1}),
                "---\nb: 2\n---\n",
            ),
            ("---\na: |\n  ---\n---\nx", json!({"a": "---\n"}), "x"),
        ];
        for (text, front, body) in cases {
            let page = parse(text.as_bytes()).unwrap();
            assert_eq!(page, Page { front, body }, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_there_or_not_whole_is_refused() {
        let cases = [
            (
                "",
                "line 1, column 1: no front matter, the first line is not `---`",
            ),
            (
                "\n---\na: 1\n---\n",
                "line 1, column 1: no front matter, the first line is not `---`",
            ),
            (
                "# a\n",
                "line 1, column 1: no front matter, the first line is not `---`",
            ),
            (
                "---\na: 1\n",
                "line 1, column 1: the front matter does not end with a line `---`",
            ),
            (
                "---\na: 1\na: 2\n---\n",
                "line 3, column 1: the key `a` is there twice",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(
                parse(text.as_bytes()).unwrap_err().to_string(),
                want,
                "{text:?}"
            );
        }
        assert!(matches!(parse(b"---\n\xff"), Err(ReadError::NotText(4))));
    }
}
