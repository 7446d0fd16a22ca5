//! What kind of file a changed path is, for a person who reads a change.

use provost_core::path::{RawPath, RepoPath};
use provost_core::protect;
use provost_core::run::State;
use provost_core::testfile::is_test_file;
use serde::Serialize;

/// The kinds, in the order in which a person reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeGroup {
    /// Not covered by the paths of the contract.
    Outside,
    /// Covered, and protected by default or by the policy.
    Protected,
    Scope,
    Tests,
    /// Lock files and files that programs write.
    Generated,
}

impl ChangeGroup {
    pub const ALL: [Self; 5] = [
        Self::Outside,
        Self::Protected,
        Self::Scope,
        Self::Tests,
        Self::Generated,
    ];

    pub fn of(state: &State, path: &RawPath) -> Self {
        let covered = state
            .contract
            .as_ref()
            .is_ok_and(|it| it.scope.covers_raw(path));
        let known = RepoPath::try_from(path.to_string()).ok();
        let protected = known
            .as_ref()
            .and_then(|known| protect::classify(known, &state.opened.protect));
        if !covered {
            Self::Outside
        } else if is_generated(path) {
            Self::Generated
        } else if is_test_file(path) {
            Self::Tests
        } else if protected.is_some() {
            Self::Protected
        } else {
            Self::Scope
        }
    }
}

const LOCK_FILES: [&str; 13] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
];

const ENDINGS: [&str; 7] = [
    ".min.js",
    ".min.css",
    ".pb.go",
    "_pb2.py",
    ".g.dart",
    ".designer.cs",
    ".map",
];

const DIRECTORIES: [&str; 4] = ["dist", "generated", "__generated__", "vendor"];

fn is_generated(path: &RawPath) -> bool {
    let Ok(path) = std::str::from_utf8(path.as_bytes()) else {
        return false;
    };
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    LOCK_FILES.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || directory.split('/').any(|part| DIRECTORIES.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_and_what_programs_write_are_generated() {
        for (path, want) in [
            ("Cargo.lock", true),
            ("web/package-lock.json", true),
            ("web/dist/a.js", true),
            ("a/b.min.js", true),
            ("src/lock.rs", false),
            ("src/dist.rs", false),
        ] {
            assert_eq!(is_generated(&RawPath::new(path)), want, "{path}");
        }
    }
}
