//! Counts words that leave a sentence without a named subject.
//!
//! They are right now and then, so there is a limit instead of a ban; see `docs/glossary.md`.

use super::Finding;
use crate::repository::SourceFile;

/// The words, in parts, so that this file does not count.
const VAGUE: [[&str; 2]; 7] = [
    ["no", "body"],
    ["some", "body"],
    ["who", "ever"],
    ["to", "ld"],
    ["he", "ard"],
    ["goes", " on"],
    ["came", " to"],
];

/// How often they may stand in `crates/` and `docs/` together.
const MOST: usize = 60;

/// Counts them in all code and pages.
pub(super) fn check(files: &[SourceFile]) -> Option<Finding> {
    let words = VAGUE.map(|parts| parts.concat());
    let is_prose = |file: &&SourceFile| {
        let ours = file.path.starts_with("crates/") || file.path.starts_with("docs/");
        let kind = file.path.rsplit('.').next().unwrap_or_default();
        ours && matches!(kind, "rs" | "md")
    };
    let count = |file: &SourceFile| -> usize {
        let text = file.text.to_lowercase();
        words.iter().map(|word| whole_words(&text, word)).sum()
    };
    let found: usize = files.iter().filter(is_prose).map(count).sum();
    let what = format!(
        "{found} of the words {} stand there, and {MOST} may: name the agent, the user, the driver",
        words.join(", ")
    );
    (found > MOST).then(|| Finding::new("crates/, docs/", what))
}

/// How often `word` stands in `text` with no letter, digit or underscore around it.
fn whole_words(text: &str, word: &str) -> usize {
    let is_part = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    let starts = text.match_indices(word).map(|(start, _)| start);
    starts
        .filter(|start| {
            let before = text[..*start].chars().next_back();
            let after = text[start + word.len()..].chars().next();
            !is_part(before) && !is_part(after)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_counted_in_code_and_pages() {
        let word = VAGUE[0].concat();
        let file = |path: &str, times: usize| SourceFile {
            path: path.to_owned(),
            text: format!("{word} x{word} ").repeat(times),
        };
        assert_eq!(check(&[file("crates/a.rs", MOST)]), None);
        assert_eq!(check(&[file("tests/a.rs", 2 * MOST)]), None);
        assert!(check(&[file("crates/a.rs", MOST), file("docs/b.md", 1)]).is_some());
    }
}
