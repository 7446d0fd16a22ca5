//! Checks for words that the code must not contain.

use super::Finding;
use super::house::is_source;
use crate::repository::SourceFile;

/// Where `unsafe` is permitted.
const SANDBOX: &str = "crates/provost-sandbox/src";

/// The crates of the program itself.
const SURFACES: [&str; 2] = ["crates/provost/src/", "crates/provost-surface/src/"];

/// The one module that names stores.
const STORES: &str = "crates/provost-surface/src/stores";

/// Where text becomes a tree.
const JSON: &str = "crates/provost-evidence/src/json";

/// Test cases from outside the project, which are never edited.
const CORPUS: &str = "tests/corpus/";

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    // Assembled here, so that this file does not contain what it searches.
    let places = ["work", "root"].map(|name| format!("/{name}/"));
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let mut report = |what: String| {
                let place = format!("{}:{}", file.path, index + 1);
                findings.push(Finding::new(place, what));
            };
            if !file.path.starts_with(CORPUS) {
                for place in places.iter().filter(|place| names(line, place)) {
                    report(format!("names a place of one machine: {place}"));
                }
            }
            if is_source(&file.path) {
                banned(&file.path, &code_of(line)).for_each(&mut report);
            }
        }
    }
    findings
}

/// Findings about words that this line of code must not contain.
fn banned(path: &str, code: &str) -> impl Iterator<Item = String> {
    let sandboxed = path
        .strip_prefix(SANDBOX)
        .is_some_and(|rest| rest.starts_with(['/', '.']));
    let found = [
        (
            code.contains("[allow("),
            "`allow`; use `expect` with a reason",
        ),
        (code.contains("todo!"), "`todo!`"),
        (code.contains("unimplemented!"), "`unimplemented!`"),
        (
            is_surface(path) && has_word(code, "provost_store"),
            "a concrete store; use the ports that `stores.rs` wires",
        ),
        (
            !sandboxed && has_word(code, "unsafe"),
            "`unsafe` outside of the sandboxes",
        ),
        (
            is_product(path) && reads_type(code),
            "a type that `serde_json` reads; `json::parse_as` and `json::from_value` read types",
        ),
    ];
    found
        .into_iter()
        .filter(|(there, _)| *there)
        .map(|(_, what)| what.to_owned())
}

/// Whether `path` is a part of the program that reaches stores through ports only.
fn is_surface(path: &str) -> bool {
    let wiring = [".rs", "/"].map(|end| format!("{STORES}{end}"));
    let is_program = SURFACES.iter().any(|surface| path.starts_with(surface));
    is_program && !wiring.iter().any(|wiring| path.starts_with(wiring))
}

/// Whether `path` is of the program, and does not itself turn text into a tree.
fn is_product(path: &str) -> bool {
    let others = [
        JSON,
        "crates/provost-testkit/",
        "crates/provost-sandbox/src/bin/",
    ];
    let is_other = others.iter().any(|other| path.starts_with(other));
    let is_of_crate = path.starts_with("crates/") && path.contains("/src/");
    is_of_crate && !path.contains("/tests") && !is_other
}

/// Whether `serde_json` reads anything but a value of any shape: each of its readers would add
/// another copy of the code of the type.
fn reads_type(code: &str) -> bool {
    code.contains("serde_json::from_") && !code.contains("Value>(")
}

/// Whether `line` contains `place` as the beginning of a path.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        // After a letter, a dot or a variable it is the middle of another path.
        !before.is_some_and(|before| before.is_alphanumeric() || "._-~)}>*".contains(before))
    })
}

fn has_word(code: &str, word: &str) -> bool {
    let inside = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(inside);
        let after = code[at + word.len()..].chars().next().is_some_and(inside);
        !before && !after
    })
}

/// A line without its comment and without quoted text.
///
/// Texts over several lines count as code, which can only find too much.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        code.push_str(&rest[..at]);
        let here = &rest[at..];
        let skip = if here.starts_with("//") {
            return code;
        } else if here.starts_with("'\"'") {
            3
        } else if here.starts_with("'\\\"'") {
            4
        } else if here.starts_with('"') {
            end_of_text(here)
        } else {
            code.push_str(&here[..1]);
            1
        };
        rest = &here[skip..];
    }
    code + rest
}

/// Where the text that begins with a quote ends; an unterminated one ends with the line.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::files;
    use super::*;

    fn count(path: &str, line: &str) -> usize {
        check(&files(&[(path, line)])).len()
    }

    #[test]
    fn words_that_are_not_allowed_are_found_in_code_only() {
        let cases = [
            ("#[allow(dead_code)]", 1),
            ("#![allow(dead_code)]", 1),
            ("#[expect(dead_code, reason = \"[allow(\")]", 0),
            ("    todo!()", 1),
            ("let x = \"todo!\"; unimplemented!()", 1),
            ("// todo! later", 0),
            ("unsafe { call() }", 1),
            ("#[unsafe(no_mangle)]", 1),
            ("unsafe_code", 0),
            ("//! `unsafe` is in the sandbox", 0),
            ("let quote = '\"'; unsafe { call() }", 1),
            ("let quote = '\\\"'; unsafe { call() }", 1),
            ("let text = \"a \\\" b\"; unsafe { call() }", 1),
            ("let text = \"a \\\" unsafe\";", 0),
            ("let x = a / b; unsafe { call() }", 1),
            ("let x: X = serde_json::from_slice(bytes)?;", 1),
            ("let x = serde_json::from_slice::<Value>(bytes)?;", 0),
        ];
        for (line, want) in cases {
            assert_eq!(count("crates/a/src/x.rs", line), want, "{line}");
            assert_eq!(count("docs/x.md", line), 0, "{line}");
        }
    }

    #[test]
    fn unsafe_code_has_one_place() {
        let line = "unsafe { call() }";
        let cases = [
            ("crates/provost-sandbox/src/sys.rs", 0),
            ("crates/provost-sandbox/src.rs", 0),
            ("crates/provost-sandbox/src_too.rs", 1),
            ("crates/provost-git/src/run.rs", 1),
            ("crates/provost-core/src/sandbox/sys.rs", 1),
        ];
        for (path, want) in cases {
            assert_eq!(count(path, line), want, "{path}");
        }
    }

    #[test]
    fn stores_are_named_by_the_wiring_only() {
        let line = "use provost_store::ledger;";
        let cases = [
            ("crates/provost-surface/src/stores.rs", 0),
            ("crates/provost-surface/src/stores/crash_points.rs", 0),
            ("crates/provost-surface/src/session.rs", 1),
            ("crates/provost/src/stores.rs", 1),
            ("crates/provost/src/cli/runs.rs", 1),
            ("crates/provost-store/tests/processes.rs", 0),
        ];
        for (path, want) in cases {
            assert_eq!(count(path, line), want, "{path}");
        }
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_every_file() {
        let [work, root] = ["work", "root"].map(|name| format!("/{name}/x"));
        for (line, want) in [
            (work.clone(), 1),
            (format!("see `{root}`"), 1),
            (format!("target = \"{work}\""), 1),
            (format!("src{work}"), 0),
            (format!("$HOME{root} ${{HOME}}{root}"), 0),
            ("/works/ /rooted".to_owned(), 0),
        ] {
            assert_eq!(count("docs/x.md", &line), want, "{line}");
            assert_eq!(count("tests/corpus/x.json", &line), 0, "{line}");
        }
    }
}
