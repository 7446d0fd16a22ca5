//! Every ignore pattern means what it means to git: thousands of generated files of patterns are
//! compared with `git check-ignore`.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use provost_host::git::ignore::Patterns;

/// How many files of patterns are compared.
const FILES: usize = 1000;

/// What a line of patterns is made of. The first row is what most patterns consist of; the others
/// are what readers get wrong.
#[rustfmt::skip]
const PIECES: &[&[&[u8]]] = &[
    &[b"a", b"b", b"ab", b"A", b"*", b"**", b"?", b"/", b"[a-c]", b"[!a]"],
    &[b"[^b]", b"[", b"]", b"[a-", b"-", b"[]a]", b"[!]a]", b"[\\]]", b"[a\\-c]", b"[b-a]",
      b"[--0]", b"[a/b]", b"[/]", b"[[:alpha:]]", b"[[:upper:]]", b"[[:space:]]", b"[[:punct:]]",
      b"[[:cntrl:]]", b"[[:none:]]", b"[[:alpha:]"],
    &[b"\\", b"\\*", b"\\ ", b"\\/", b"\\\\", b" ", b"  ", b"!", b"#", b"\t", b"\r", b"\0", b"$",
      b"~", b".", b"..", b"{a,b}", b"**/", b"/**", b"/**/", b"*/", b"***", b"\x7f", b"\xff",
      "é".as_bytes(), "\u{feff}".as_bytes()],
];

/// Names that such patterns may match.
#[rustfmt::skip]
const NAMES: &[&[&str]] = &[
    &["a", "b", "ab", "c"],
    &["A", "abc", "aab", "ba", "a b", "a ", " ", "!a", "#a", "[a", "a]", "]", "*", "**", "a*", "?",
      "\\", "a\\", "-", "$a", "{a,b}", ".a", "a.b", "\t", "a\r", "~", "\x7f", "é", "\u{feff}a"],
];

/// One of the members of any row; each row has the same chance.
fn one_of<T: Copy + std::fmt::Debug + 'static>(
    rows: &'static [&'static [T]],
) -> impl Strategy<Value = T> {
    proptest::sample::select(rows).prop_flat_map(proptest::sample::select)
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let edge = |piece: &'static [u8]| proptest::option::weighted(0.2, Just(piece));
    let parts = (
        edge(b"!"),
        edge(b"/"),
        vec(one_of(PIECES), 0..6),
        edge(b"/"),
    );
    parts.prop_map(|(not, root, middle, directory)| {
        let ends = [not, root].into_iter().flatten();
        let pieces: Vec<&[u8]> = ends.chain(middle).chain(directory).collect();
        pieces.concat()
    })
}

/// A file of patterns, and paths relative to its directory.
fn case() -> impl Strategy<Value = (Vec<u8>, Vec<String>)> {
    let mark = proptest::option::weighted(0.05, Just("\u{feff}".as_bytes()));
    let end = proptest::sample::select(vec![&b""[..], b"\n", b"\r\n"]);
    let rules = (mark, vec(line(), 1..4), end).prop_map(|(mark, lines, end)| {
        let text = lines.join(&b'\n');
        [mark.unwrap_or_default(), &text, end].concat()
    });
    let path = vec(one_of(NAMES), 1..5).prop_map(|names| names.join("/"));
    (rules, vec(path, 14))
}

/// What `patterns` say about `path`: an ignored directory excludes everything below it.
fn decide(patterns: &Patterns, path: &str) -> Option<bool> {
    let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
    if above.any(|directory| patterns.decide(directory.as_bytes(), true) == Some(true)) {
        return Some(true);
    }
    patterns.decide(path.as_bytes(), false)
}

/// What git says about each path: ignored, not ignored by a pattern with `!`, or nothing.
fn ask_git(cases: &[(Vec<u8>, Vec<String>)]) -> Vec<Option<bool>> {
    let place = tempfile::tempdir().unwrap();
    provost_testkit::git(place.path(), &["init", "-q"]);
    let mut input = Vec::new();
    for (number, (rules, paths)) in cases.iter().enumerate() {
        let directory = place.path().join(number.to_string());
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(".gitignore"), rules).unwrap();
        for path in paths {
            input.extend(format!("{number}/{path}\0").into_bytes());
        }
    }
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(list.path(), input).unwrap();
    let output = Command::new("git")
        .args([
            "-c",
            "core.excludesFile=/dev/null",
            "check-ignore",
            "--no-index",
        ])
        .args(["--verbose", "--non-matching", "-z", "--stdin"])
        .current_dir(place.path())
        .stdin(File::open(list.path()).unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    let answers = fields.chunks_exact(4);
    // The source of the pattern, its line, the pattern and the path.
    answers
        .map(|answer| (!answer[0].is_empty()).then(|| !answer[2].starts_with(b"!")))
        .collect()
}

#[test]
fn patterns_agree_with_check_ignore() {
    let mut runner = TestRunner::deterministic();
    let cases: Vec<_> = (0..FILES)
        .map(|_| case().new_tree(&mut runner).unwrap().current())
        .collect();
    let mut answers = ask_git(&cases).into_iter();
    let mut decided = 0;
    for (rules, paths) in &cases {
        let patterns = Patterns::parse(rules);
        for path in paths {
            let ours = decide(&patterns, path);
            let git = answers.next().unwrap();
            let shown = std::ffi::OsStr::from_bytes(rules);
            assert_eq!(ours, git, "{path:?} by {shown:?}");
            decided += usize::from(git.is_some());
        }
    }
    assert_eq!(answers.next(), None);
    // Patterns that match nothing would compare nothing.
    assert!(decided > FILES, "{decided}");
}
