//! The ignore rules of the base mean what they mean to git.

use std::collections::BTreeSet;

use proptest::prelude::*;
use provost_core::path::RawPath;

use crate::scratch::{Scratch, changed, put, take};

/// One `.gitignore` in a directory of its own, and another one in `b` below.
type Rules = (String, String);

/// The paths that capture and git would add, by the number of their rules.
type Added = Vec<[BTreeSet<String>; 2]>;

/// Captures a workspace with `files` under each of the rules, and asks git about the same.
fn both(rules: &[Rules], tracked: &[&str], files: &[&str]) -> Added {
    let scratch = Scratch::new();
    for (number, (top, inner)) in rules.iter().enumerate() {
        scratch.file(&format!("{number}/.gitignore"), top);
        scratch.file(&format!("{number}/b/.gitignore"), inner);
        for path in tracked {
            scratch.file(&format!("{number}/{path}"), "tracked");
        }
    }
    scratch.git(&["add", "-f", "-A"]);
    scratch.git(&["commit", "-q", "-m", "x"]);
    let (repo, tree, workspace) = scratch.workspace("w");
    for number in 0..rules.len() {
        for path in files.iter().filter(|path| !tracked.contains(path)) {
            put(&workspace.tree, &format!("{number}/{path}"), "untracked");
            put(&scratch.root(), &format!("{number}/{path}"), "untracked");
        }
    }
    let mut added = vec![Default::default(); rules.len()];
    let mut sort = |who: usize, path: &str| {
        let (number, path) = path.split_once('/').unwrap();
        let sets: &mut [BTreeSet<String>; 2] = &mut added[number.parse::<usize>().unwrap()];
        sets[who].insert(path.to_owned());
    };
    for path in changed(&take(&repo, &tree, &workspace)) {
        sort(0, &path);
    }
    let listed = scratch.git(&["ls-files", "-z", "--others", "--exclude-standard"]);
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        sort(1, &RawPath::new(path).to_string());
    }
    added
}

/// Names that patterns may match.
#[rustfmt::skip]
const FILES: &[&str] = &[
    "a.o", "d/a.o", "d/e/a.o", "keep.o", "build/x", "d/build/x", "logs/1.log", "d/logs/1.log",
    "doc/frotz/a", "a/doc/frotz/a", "foo/x", "foo/y/z", "{x,y}", "x", "y", "b1", "b2", "b-",
    "#hash", "!bang", "tail ", "tab\t", "q?", "star*", "[x]", "a/b/c/d", "a/z/c/d", "a/c/d",
    "UPPER", "upper", "w.tmp", "d/w.tmp",
];

/// Patterns of every kind, and texts that are no pattern.
#[rustfmt::skip]
const PATTERNS: &[&str] = &[
    "*.o\n!keep.o", "build/", "/build", "logs/*.log", "doc/frotz", "doc/frotz/", "foo/*",
    "foo/*\n!foo/y", "foo/**", "**/foo", "**/build/x", "a/**/d", "a/**", "{x,y}", "[b]1",
    "b[!1]", "b[^1]", "b[[:digit:]]", "b[0-9]", "\\#hash", "\\!bang", "#hash", "tail\\ ",
    "tail ", "q\\?", "star\\*", "\\[x\\]", "*", "*\n!*/", "/*\n!/foo", "UPPER", "?", "??", "d",
    "d/", "!d", "/d/e", "d/e", "b[", "[", "\\", "a\\", "b[1-", "tab\t", "  x", "*.o   ", "**",
    "**/", "/**", "x/", "d/*", "d/**/a.o", "**.o", "a**d", "*/a.o", "*/*/a.o", "[!a]", "[]x]",
    "[\\]x]", "\u{feff}x", "x\r", "d//e", "./x", "../x", "d/../x", "!", "/", "//",
];

#[test]
fn patterns_match_as_in_git() {
    let rules: Vec<Rules> = PATTERNS
        .iter()
        .map(|pattern| ((*pattern).to_owned(), String::new()))
        .collect();
    let added = both(&rules, &[], FILES);
    for (pattern, [ours, git]) in PATTERNS.iter().zip(added) {
        let missed: Vec<_> = ours.difference(&git).collect();
        let wrong: Vec<_> = git.difference(&ours).collect();
        assert_eq!((missed, wrong), (vec![], vec![]), "{pattern:?}");
    }
}

#[test]
fn a_tracked_file_is_never_ignored() {
    let scratch = Scratch::new();
    scratch.file(".gitignore", "*\n");
    scratch.file("d/tracked", "x");
    scratch.git(&["add", "-f", "-A"]);
    scratch.git(&["commit", "-q", "-m", "x"]);
    let (repo, tree, workspace) = scratch.workspace("w");
    put(&workspace.tree, "d/tracked", "changed");
    put(&workspace.tree, "d/untracked", "12345");
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(changed(&captured), ["d/tracked"]);
    assert_eq!((captured.ignored.files, captured.ignored.bytes), (1, 5));
}

/// Patterns of few letters, so that they often match.
const TOP: &str = "!?/?([ab*?]|\\*\\*/|\\[ab\\]){1,3}(/[ab*]{1,2})?/?";

/// Patterns of the file in the directory below.
const INNER: &str = "!?/?[ab*]{1,2}(/[ab*])?/?";

fn rules() -> impl Strategy<Value = Rules> {
    let top = proptest::collection::vec(TOP, 1..4);
    let inner = proptest::collection::vec(INNER, 0..3);
    (top, inner).prop_map(|(top, inner)| (top.join("\n"), inner.join("\n")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn rules_mean_what_they_mean_to_git(rules in proptest::collection::vec(rules(), 40)) {
        let files = [
            "a", "b/a", "b/b/a", "ab/a", "ab/b/b", "ba", "aa/aa", "aa/bb/ab", "bb/a/b", "bb/b",
            "abc", "b/ab",
        ];
        let added = both(&rules, &["b/tracked", "ab/b/b"], &files);
        for (rules, [ours, git]) in rules.iter().zip(added) {
            prop_assert_eq!(ours, git, "{:?}", rules);
        }
    }
}
