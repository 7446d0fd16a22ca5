//! Which acceptance commands of a part are narrower than one of the whole.
//!
//! A part may test less than the whole, because the commands of the whole always decide about the
//! whole. It may not run anything else.

use provost_core::contract::{Contract, Test};
use provost_core::path::RepoPath;

/// The command of `whole` that `test` is: the same one, or the same one with paths added.
pub(super) fn command_of<'a>(test: &Test, whole: &'a Contract) -> Option<&'a Test> {
    let mut tests = whole.tests.iter();
    let same = tests.find(|it| it.text == test.text);
    same.or_else(|| whole.tests.iter().find(|it| is_narrower(test, it)))
}

/// Whether `test` is `whole` with paths of the repository as further arguments: for most runners
/// that selects some of the tests.
///
/// Options, settings (`NAME=value`) and plain words are no paths: they can ask a program for
/// something else.
fn is_narrower(test: &Test, whole: &Test) -> bool {
    let more = test.argv.strip_prefix(whole.argv.as_slice());
    more.is_some_and(|more| !more.is_empty() && more.iter().all(|word| is_path(word)))
}

/// Whether `word` names a file or directory, or one test in a file (`tests/a.py::case`).
fn is_path(word: &str) -> bool {
    let file = word.split_once("::").map_or(word, |(file, _)| file);
    let file = file.strip_prefix("./").unwrap_or(file);
    let is_plain = !word.contains(['/', '.']);
    !is_plain && !word.starts_with('-') && !word.contains('=') && RepoPath::try_from(file).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_core::gate::command;

    fn test(text: &str) -> Test {
        Test {
            name: "it".to_owned(),
            text: text.to_owned(),
            argv: command::split(text).unwrap(),
            must_pass: true,
        }
    }

    #[test]
    fn only_paths_make_a_command_narrower() {
        let cases = [
            ("pytest -q", "pytest -q tests/unit", true),
            ("pytest -q", "pytest -q tests/a.py::one tests/b.py", true),
            ("go test", "go test ./pkg", true),
            ("pytest -q", "pytest -q", false),
            ("pytest -q", "pytest tests/unit", false),
            ("pytest -q", "pytest -q --co tests/unit", false),
            ("pytest -q", "pytest -q ../elsewhere/x", false),
            ("pytest -q", "pytest -q /etc/passwd", false),
            ("make test", "make test deploy", false),
            ("make test", "make test SHELL=bin/x", false),
            ("pytest -q tests/unit", "pytest -q", false),
        ];
        for (whole, part, want) in cases {
            assert_eq!(is_narrower(&test(part), &test(whole)), want, "{part}");
        }
    }
}
