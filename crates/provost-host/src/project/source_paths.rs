//! Chooses the paths that an agent may write by default: where the source files are.
//!
//! Tests are left out where they have directories or files of their own, so that an agent cannot
//! weaken what judges it. Where they are among the sources there is nothing else to name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::listing::{Language, Listing, is_test};

/// Directories whose sources are no part of what a project delivers.
const BESIDE: &[&str] = &[
    "docs",
    "doc",
    "examples",
    "example",
    "samples",
    "benches",
    "bench",
    "benchmarks",
    "scripts",
    "script",
    "tools",
    "ci",
    "fuzz",
];

/// The most paths below one directory at the top; beyond that the directory itself is named.
const MOST: usize = 12;

/// The most files at the top that are named one by one.
const MOST_FILES: usize = 40;

/// Where an agent may write by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SourcePaths {
    pub allow: Vec<String>,
    /// Test files and directories at the top that are left out.
    pub left_out: Vec<String>,
    /// Whether tests are among what may be written.
    pub tests_inside: bool,
}

/// A directory with what is of interest in it.
#[derive(Default)]
struct Directory {
    below: BTreeMap<String, Directory>,
    sources: BTreeSet<String>,
    tests: Vec<String>,
}

/// The paths with sources in one of `languages`; in any language if none of them has any.
pub(super) fn of(listing: &Listing, languages: &[Language]) -> SourcePaths {
    let in_languages = |found: Language| languages.contains(&found);
    let anything = |_: Language| true;
    let of = |is_ours: &dyn Fn(Language) -> bool, beside: bool| {
        let mut top = Directory::default();
        for (path, _) in listing.sources().filter(|(_, found)| is_ours(*found)) {
            let first = path.split('/').next().unwrap_or(path);
            if beside || !BESIDE.contains(&first) {
                top.add(path);
            }
        }
        top.paths()
    };
    let tries = [
        of(&in_languages, false),
        of(&in_languages, true),
        of(&anything, true),
    ];
    let some = tries.into_iter().find(|paths| !paths.allow.is_empty());
    some.unwrap_or_default()
}

impl Directory {
    fn add(&mut self, path: &str) {
        let mut here = self;
        let mut parts = path.split('/').peekable();
        let mut at = String::new();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                if is_test(path) {
                    here.tests.push(path.to_owned());
                } else {
                    here.sources.insert(path.to_owned());
                }
                return;
            }
            at = if at.is_empty() {
                part.to_owned()
            } else {
                format!("{at}/{part}")
            };
            here = here.below.entry(at.clone()).or_default();
        }
    }

    fn has_sources(&self) -> bool {
        !self.sources.is_empty() || self.below.values().any(Self::has_sources)
    }

    fn has_tests(&self) -> bool {
        !self.tests.is_empty() || self.below.values().any(Self::has_tests)
    }

    fn paths(&self) -> SourcePaths {
        let mut paths = SourcePaths::default();
        for (name, directory) in &self.below {
            if !directory.has_sources() {
                paths.left_out.push(name.clone());
                continue;
            }
            let mut narrow = Vec::new();
            directory.narrow(name, &mut narrow);
            if narrow.len() > MOST {
                narrow = vec![(name.clone(), true)];
            }
            for (path, with_tests) in narrow {
                paths.tests_inside |= with_tests;
                paths.allow.push(path);
            }
        }
        paths.left_out.extend(self.tests.iter().cloned());
        if self.sources.len() <= MOST_FILES {
            paths.allow.extend(self.sources.iter().cloned());
        }
        paths
    }

    /// The directories at or below `name` that hold sources and no tests; where sources stand beside
    /// tests, the directory with both.
    fn narrow(&self, name: &str, found: &mut Vec<(String, bool)>) {
        if !self.has_tests() {
            found.push((name.to_owned(), false));
        } else if !self.sources.is_empty() {
            found.push((name.to_owned(), true));
        } else {
            let below = self.below.iter().filter(|(_, it)| it.has_sources());
            for (name, directory) in below {
                directory.narrow(name, found);
            }
        }
    }
}
