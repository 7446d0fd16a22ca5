//! Checks that the field names of foreign formats are spelled by types, not by string literals.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::product;
use crate::repository::SourceFile;

/// How often a name may stand in the string literals of the product.
const MOST: usize = 2;

/// Counts `names` in all literals of the crates.
pub(super) fn check(files: &[SourceFile], names: &BTreeSet<String>) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        if product::crate_of(&file.path).is_none_or(|name| name == "xtask") {
            continue;
        }
        let code: Vec<&str> = product::lines_of(&file.text).collect();
        for literal in literals(&code.join("\n")) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            for word in literal.split(|letter| !is_part(letter)) {
                if let Some(name) = names.get(word) {
                    places.entry(name).or_default().push(&file.path);
                }
            }
        }
    }
    let finding = |(name, places): (&str, Vec<&str>)| {
        let count = places.len();
        let files: BTreeSet<&str> = places.into_iter().collect();
        let what = format!("`{name}` stands in {count} literals, and {MOST} may: {files:?}");
        (count > MOST).then(|| Finding::new("crates/", what))
    };
    places.into_iter().filter_map(finding).collect()
}

/// The string literals of Rust source, without their quotes.
fn literals(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let here = &rest[at..];
        let after = if here.starts_with("//") {
            here.find('\n').unwrap_or(here.len())
        } else if here.starts_with("'\"'") {
            3
        } else if here.starts_with("'\\\"'") {
            4
        } else if let Some(text) = here.strip_prefix('"') {
            let before = rest[..at].trim_end_matches('#');
            let end = if before.ends_with('r') {
                let close = format!("\"{}", "#".repeat(at - before.len()));
                text.find(&close)
            } else {
                end_of_text(text)
            };
            let end = end.unwrap_or(text.len());
            found.push(&text[..end]);
            (end + 2).min(here.len())
        } else {
            1
        };
        rest = &here[after..];
    }
    found
}

/// Where the quote is that closes `text`.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let closes = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        closes.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{files, lines};
    use super::*;

    #[test]
    fn literals_are_found_in_code_only() {
        let source = r##"let a = "one \" two"; // "no"
            /// "no"
            let b = ('"', r#"three " four"#, br"five\", "six
            seven");"##;
        let want = [
            "one \\\" two",
            "three \" four",
            "five\\",
            "six\n            seven",
        ];
        assert_eq!(literals(source), want);
    }

    #[test]
    fn a_name_that_is_spelled_a_third_time_is_found() {
        let names = BTreeSet::from(["heartbeat_seconds".to_owned()]);
        let line = "let a = \"/task/heartbeat_seconds\"; // \"heartbeat_seconds\"\n";
        let once = [line, "let heartbeat_seconds = \"x_heartbeat_seconds\";\n"].concat();
        let list = [
            ("crates/a/src/x.rs", once.as_str()),
            ("crates/b/src/x.rs", &once),
            ("crates/b/src/x/tests.rs", &once),
            ("xtask/src/x.rs", &once),
        ];
        assert_eq!(check(&files(&list), &names), []);
        let list = [("crates/c/src/x.rs", once.repeat(3))];
        let list = list.each_ref().map(|(path, text)| (*path, text.as_str()));
        let want = "crates/: `heartbeat_seconds` stands in 3 literals, and 2 may: \
            {\"crates/c/src/x.rs\"}";
        assert_eq!(lines(&check(&files(&list), &names)), [want]);
    }
}
