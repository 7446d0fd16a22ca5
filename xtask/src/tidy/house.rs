//! Checks sizes, names, pages and the list of dependencies.

use super::Finding;
use crate::repository::SourceFile;

const LONGEST_SOURCE: usize = 500;

const LONGEST_ARCHITECTURE: usize = 300;

/// Names that say nothing about the content.
const EMPTY_NAMES: &[&str] = &["common", "utils", "util", "types", "errors", "helpers"];

/// Checks everything that does not read the code itself.
pub(super) fn check(files: &[SourceFile], codes: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(size(file));
        findings.extend(name(file));
        if file.path == "Cargo.toml" {
            findings.extend(dependencies(file));
        }
    }
    findings.extend(pages(files, codes));
    findings
}

/// Whether a file is Rust of the project.
pub(super) fn is_source(path: &str) -> bool {
    let here = path.starts_with("crates/") || path.starts_with("xtask/");
    here && path.rsplit('.').next() == Some("rs")
}

fn size(file: &SourceFile) -> Option<Finding> {
    let limit = if is_source(&file.path) {
        LONGEST_SOURCE
    } else if file.path == "ARCHITECTURE.md" {
        LONGEST_ARCHITECTURE
    } else {
        return None;
    };
    let count = file.text.lines().count();
    let what = format!("has {count} lines; at most {limit} are allowed");
    (count > limit).then(|| Finding::new(&file.path, what))
}

fn name(file: &SourceFile) -> Option<Finding> {
    if !is_source(&file.path) && !file.path.ends_with("/Cargo.toml") {
        return None;
    }
    let empty = file
        .path
        .split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part))
        .map(|part| part.strip_prefix("provost-").unwrap_or(part))
        .find(|part| EMPTY_NAMES.contains(part))?;
    let what = format!("`{empty}` says nothing about what is inside");
    Some(Finding::new(&file.path, what))
}

/// Finds external dependencies of the workspace without a reason.
fn dependencies(file: &SourceFile) -> Vec<Finding> {
    let mut inside = false;
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.starts_with("[workspace.dependencies");
        }
        let entry = inside && line.contains('=') && !line.starts_with(['#', '[']);
        if entry && !line.contains("path =") && !line.contains(" # ") {
            let place = format!("{}:{}", file.path, index + 1);
            findings.push(Finding::new(place, "a dependency without a word why"));
        }
    }
    findings
}

/// Finds codes without a page, and pages without a code.
fn pages(files: &[SourceFile], codes: &[&str]) -> Vec<Finding> {
    let there: Vec<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("docs/codes/"))
        .collect();
    let wanted: Vec<String> = codes.iter().map(|code| format!("{code}.md")).collect();
    let missing = wanted
        .iter()
        .filter(|page| !there.contains(&page.as_str()))
        .map(|page| Finding::new(format!("docs/codes/{page}"), "a code has no page"));
    let stray = there
        .iter()
        .filter(|page| !wanted.iter().any(|name| name == *page))
        .map(|page| Finding::new(format!("docs/codes/{page}"), "a page of no code"));
    missing.chain(stray).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{files, lines};
    use super::*;

    #[test]
    fn what_is_too_long_is_found() {
        let long = "x\n".repeat(LONGEST_SOURCE + 1);
        let just = "x\n".repeat(LONGEST_SOURCE);
        let list = [
            ("crates/a/src/long.rs", long.as_str()),
            ("crates/a/src/just.rs", &just),
            ("crates/a/data/long.txt", &long),
            ("ARCHITECTURE.md", &long),
            ("README.md", &long),
        ];
        let want = [
            "crates/a/src/long.rs: has 501 lines; at most 500 are allowed",
            "ARCHITECTURE.md: has 501 lines; at most 300 are allowed",
        ];
        assert_eq!(lines(&check(&files(&list), &[])), want);
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        let bad = [
            "crates/a/src/utils.rs",
            "crates/a/src/common/mod.rs",
            "crates/provost-common/Cargo.toml",
            "crates/provost-types/src/lib.rs",
            "xtask/src/helpers/x.rs",
            "crates/a/tests/common/mod.rs",
        ];
        for path in bad {
            let findings = check(&files(&[(path, "")]), &[]);
            assert_eq!(findings.len(), 1, "{path}");
        }
        let good = ["crates/a/src/error.rs", "tests/corpus/common/x.json"];
        for path in good {
            assert_eq!(check(&files(&[(path, "")]), &[]), [], "{path}");
        }
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let text = "[workspace.dependencies]\n\
                    ours = { path = \"crates/ours\" }\n\
                    # A group.\n\
                    good = \"1\" # because\n\
                    bad = { version = \"1\" }\n\
                    [profile.dev]\n\
                    debug = false\n";
        let found = check(&files(&[("Cargo.toml", text)]), &[]);
        assert_eq!(
            lines(&found),
            ["Cargo.toml:5: a dependency without a word why"]
        );
    }

    #[test]
    fn codes_and_pages_match() {
        let list = [("docs/codes/OK.md", ""), ("docs/codes/OLD.md", "")];
        let want = [
            "docs/codes/NEW.md: a code has no page",
            "docs/codes/OLD.md: a page of no code",
        ];
        assert_eq!(lines(&check(&files(&list), &["OK", "NEW"])), want);
    }
}
