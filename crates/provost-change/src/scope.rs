//! The scope that an agent declared, and which paths it covers.
//!
//! One list is matched in four ways on purpose, and each has a function of its own: exact
//! membership, what lies below an entry, patterns that forbid, and findings that the change answers
//! for. `docs/change-control.md` says which applies where.

use serde::{Deserialize, Serialize};

use crate::hook::guard::never;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::{PathError, RawPath, RepoPath};
use provost_core::words;
use provost_lens::structure::pattern;

/// The most entries a list may have.
pub const MOST: usize = 10_000;

/// State of Provost and of its forerunner, which no agent may change.
pub const STATE: [&str; 8] = [
    ".codeclone",
    ".codeclone/*",
    ".provost",
    ".provost/*",
    ".cache/codeclone/*",
    "codeclone.baseline.json",
    "provost.baseline.json",
    "provost-baseline.json",
];

/// What an agent declared; every list is sorted and has no duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeScope {
    /// What it will touch.
    pub allowed_files: Vec<RepoPath>,
    /// What it may touch in passing.
    pub allowed_related: Vec<RepoPath>,
    /// Patterns of what it must not touch.
    pub forbidden: Vec<RepoPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("`allowed_files` must name at least one path")]
    Empty,
    #[error("`{list}` has more than {MOST} entries")]
    TooMany { list: &'static str },
    #[error(
        "`{}` in `{list}` names the whole repository; name files or directories",
        shown(entry)
    )]
    Whole { list: &'static str, entry: String },
    /// An entry that no change may declare.
    #[error("`{entry}` in `{list}` {why}: no change may declare it")]
    Never {
        list: &'static str,
        entry: RepoPath,
        why: &'static str,
    },
    /// An entry is not a path inside the repository.
    #[error("`{}` in `{list}` {why}", shown(entry))]
    Entry {
        list: &'static str,
        entry: String,
        why: PathError,
    },
}

/// As much of an entry as a message repeats.
fn shown(entry: &str) -> String {
    entry.chars().take(80).collect()
}

words! {
    /// Where a path lies relative to a scope.
    #[derive(Deserialize)]
    pub enum Relation {
        /// It is one of the files to touch, or lies below one.
        OwnAllowed = "own_allowed",
        /// It may be touched in passing.
        OwnRelated = "own_related",
        /// It is not declared.
        Outside = "outside",
    }
}

/// The list that some entries make: normalised, sorted, without blanks and duplicates.
///
/// `below` is the analysed root relative to the top of the repository; entries are relative to it.
pub fn normalise<S: AsRef<str>>(
    list: &'static str,
    entries: &[S],
    below: &str,
) -> Result<Vec<RepoPath>, ScopeError> {
    if entries.len() > MOST {
        return Err(ScopeError::TooMany { list });
    }
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.as_ref();
        let text = entry.trim().replace('\\', "/");
        if text.is_empty() {
            continue;
        }
        let wrong = |why| ScopeError::Entry {
            list,
            entry: shortened(entry),
            why,
        };
        if text.starts_with('/') {
            return Err(wrong(PathError::Absolute));
        }
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        if parts.is_empty() {
            return Err(ScopeError::Whole {
                list,
                entry: shortened(entry),
            });
        }
        let text = parts.join("/");
        let path = RepoPath::try_from(text.clone()).map_err(wrong)?;
        paths.push(if below.is_empty() {
            path
        } else {
            RepoPath::try_from(format!("{below}/{text}")).map_err(wrong)?
        });
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Refuses entries that no change may declare, before anything is done under it.
fn declarable(list: &'static str, entries: &[RepoPath]) -> Result<(), ScopeError> {
    let refused = entries
        .iter()
        .find_map(|entry| Some((entry, never(entry)?)));
    match refused {
        None => Ok(()),
        Some((entry, why)) => Err(ScopeError::Never {
            list,
            entry: entry.clone(),
            why,
        }),
    }
}

/// A pattern that matches `text` and nothing else.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[') {
            pattern.extend(['[', letter, ']']);
        } else {
            pattern.push(letter);
        }
    }
    pattern
}

fn shortened(entry: &str) -> String {
    entry.chars().take(200).collect()
}

impl ChangeScope {
    /// Reads the three lists, relative to the root `below` the top of the repository.
    pub fn parse<S: AsRef<str>>(
        allowed: &[S],
        related: &[S],
        forbidden: &[S],
        below: &str,
    ) -> Result<Self, ScopeError> {
        let [allowed_list, related_list] = ["allowed_files", "allowed_related"];
        let allowed_files = normalise(allowed_list, allowed, below)?;
        if allowed_files.is_empty() {
            return Err(ScopeError::Empty);
        }
        let mut allowed_related = normalise(related_list, related, below)?;
        declarable(allowed_list, &allowed_files)?;
        declarable(related_list, &allowed_related)?;
        allowed_related.retain(|path| allowed_files.binary_search(path).is_err());
        // The root is literal, even if its name looks like a pattern.
        let mut patterns = normalise("forbidden", forbidden, &literal(below))?;
        patterns.extend(STATE.iter().filter_map(|own| RepoPath::try_from(*own).ok()));
        patterns.sort();
        patterns.dedup();
        Ok(Self {
            allowed_files,
            allowed_related,
            forbidden: patterns,
        })
    }

    /// An entry covers itself and what lies below it.
    pub fn relation(&self, path: &RawPath) -> Relation {
        if covers(&self.allowed_files, path) {
            Relation::OwnAllowed
        } else if covers(&self.allowed_related, path) {
            Relation::OwnRelated
        } else {
            Relation::Outside
        }
    }

    /// Whether `path` is exactly one of the entries.
    pub fn names(&self, path: &RepoPath) -> bool {
        self.allowed_files.binary_search(path).is_ok()
            || self.allowed_related.binary_search(path).is_ok()
    }

    pub fn forbids(&self, path: &str) -> bool {
        self.forbidden
            .iter()
            .any(|forbidden| pattern::fits(forbidden.as_str(), path))
    }

    /// Whether a finding at `path` is attributed to this change.
    ///
    /// Beside membership and patterns a directory covers what lies below it, as in the other rules:
    /// an agent that declared a directory answers for all of it.
    pub fn answers_for(&self, path: &str) -> bool {
        let raw = RawPath::new(path);
        self.relation(&raw) != Relation::Outside
            || self
                .allowed_files
                .iter()
                .chain(&self.allowed_related)
                .any(|entry| pattern::fits(entry.as_str(), path))
    }

    /// SHA-256 of the scope, by which two requests are distinguished.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }
}

/// Whether `path` is one of the sorted `entries` or lies below one.
pub fn covers(entries: &[RepoPath], path: &RawPath) -> bool {
    let bytes = path.as_bytes();
    let is_entry = |place: &[u8]| {
        entries
            .binary_search_by(|entry| entry.as_str().as_bytes().cmp(place))
            .is_ok()
    };
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    ends.map(|(at, _)| at)
        .chain([bytes.len()])
        .any(|end| is_entry(&bytes[..end]))
}

/// Whether `path` is state of Provost (profile `state_artifact_change`).
pub fn is_state(path: &str) -> bool {
    STATE.iter().any(|own| pattern::fits(own, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(allowed: &[&str]) -> Result<ChangeScope, ScopeError> {
        ChangeScope::parse(allowed, &[], &[], "")
    }

    #[test]
    fn entries_are_normalised_sorted_and_refused() {
        let scope = parse(&["b/", " ./a.py ", "", "x\\y.py", "a.py", "d//e/./f"]).unwrap();
        let names: Vec<&str> = scope.allowed_files.iter().map(RepoPath::as_str).collect();
        assert_eq!(names, ["a.py", "b", "d/e/f", "x/y.py"]);
        let cases = [
            (&[][..], "`allowed_files` must name at least one path"),
            (&["", "  "], "`allowed_files` must name at least one path"),
            (
                &["/etc/passwd"],
                "`/etc/passwd` in `allowed_files` is absolute",
            ),
            (
                &["a/../b"],
                "`a/../b` in `allowed_files` has a `..` component",
            ),
            (
                &["./"],
                "`./` in `allowed_files` names the whole repository; name files or directories",
            ),
            (
                &["a\nb"],
                "`a\nb` in `allowed_files` holds a control character or a backslash",
            ),
        ];
        for (entries, want) in cases {
            assert_eq!(parse(entries).unwrap_err().to_string(), want);
        }
        let many = vec!["a"; MOST + 1];
        assert!(matches!(parse(&many), Err(ScopeError::TooMany { .. })));
    }

    #[test]
    fn the_state_of_the_tool_is_always_forbidden() {
        let scope = ChangeScope::parse(&["a"], &[], &["docs/*"], "").unwrap();
        for path in [
            ".provost/registry.db",
            "codeclone.baseline.json",
            "docs/x/y",
        ] {
            assert!(scope.forbids(path), "{path}");
        }
        assert!(!scope.forbids("a"));
    }

    #[test]
    fn no_change_declares_what_is_always_forbidden() {
        for held in [
            ".git",
            "a/.git/x",
            ".provost/x",
            "provost.baseline.json",
            ".codex/x",
        ] {
            let declared = parse(&["a.py", held]);
            assert!(matches!(declared, Err(ScopeError::Never { .. })), "{held}");
            let related = ChangeScope::parse(&["a.py"], &[held], &[], "");
            assert!(matches!(related, Err(ScopeError::Never { .. })), "{held}");
            assert!(ChangeScope::parse(&["a.py"], &[], &[held], "").is_ok());
        }
        let below = ChangeScope::parse(&["provost.baseline.json"], &[], &[], "sub");
        assert_eq!(
            below.unwrap_err().to_string(),
            "`sub/provost.baseline.json` in `allowed_files` says what the repository accepts, or \
             belongs to provost: no change may declare it"
        );
    }

    #[test]
    fn membership_is_literal_and_hygiene_looks_below() {
        let scope = ChangeScope::parse(&["docs/book", "a.py"], &["lib"], &[], "").unwrap();
        let literal = |path: &str| scope.names(&RepoPath::try_from(path).unwrap());
        assert!(literal("a.py") && literal("docs/book") && literal("lib"));
        assert!(!literal("docs/book/intro.md"));
        let cases = [
            ("docs/book/intro.md", Relation::OwnAllowed),
            ("docs/book", Relation::OwnAllowed),
            ("docs/bo", Relation::Outside),
            ("docs/books/x", Relation::Outside),
            ("lib/x", Relation::OwnRelated),
            ("a.py", Relation::OwnAllowed),
        ];
        for (path, want) in cases {
            assert_eq!(scope.relation(&RawPath::new(path)), want, "{path}");
        }
    }

    #[test]
    fn findings_are_attributed_by_patterns_too() {
        let scope = parse(&["pkg/a.py", "pkg/b*", "lib"]).unwrap();
        for (path, want) in [
            ("pkg/a.py", true),
            ("pkg/b.py", true),
            ("pkg/bx/y.py", true),
            ("lib/z.py", true),
            ("pkg/c.py", false),
        ] {
            assert_eq!(scope.answers_for(path), want, "{path}");
        }
    }

    #[test]
    fn entries_of_a_root_below_the_top_are_kept_as_seen_from_the_top() {
        let scope = ChangeScope::parse(&["a.py"], &[], &["*.md"], "sub[1]").unwrap();
        assert_eq!(scope.allowed_files[0].as_str(), "sub[1]/a.py");
        assert!(scope.forbids("sub[1]/x.md") && !scope.forbids("sub1/x.md"));
    }
}
