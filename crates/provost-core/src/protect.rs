//! Knows the files that decide instead of being decided about.
//!
//! Three kinds: *control* files steer git, Provost and secrets, and no contract opens them; *oracle*
//! files decide what "passing" means; *governing* files instruct or configure an agent. Oracle and
//! governing files change only by the contract's permission, even inside the scope.
//!
//! Which names these are is said once, in [`table`], by the tool that reads them.

mod agents;
mod builds;
mod first;
mod index;
pub mod page;
mod scripts;
pub mod table;

use serde::{Deserialize, Serialize};

use crate::file_system_names::Reading;
use crate::path::{RawPath, RepoPath};
use crate::scope::Scope;

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Steers git, Provost or secrets; never permitted.
    Control,
    /// Decides what "passing" means.
    Oracle,
    /// Instructs or configures an agent.
    Governing,
}

/// Directories that no contract opens, at any depth.
const CONTROL_DIRECTORIES: &[&str] = &[".git", ".provost", ".runtime-cache"];

/// The control directory `path` lies in, if any, in whatever spelling.
pub fn control_directory(path: &RepoPath) -> Option<&'static str> {
    path.parts().find_map(|part| {
        let reading = Reading::of(part);
        CONTROL_DIRECTORIES
            .iter()
            .copied()
            .find(|name| reading.is(name))
    })
}

/// Which edition of the table new runs are judged by.
pub const EDITION: u32 = 2;

/// The names a run is judged by: an edition of the table, and more from the repository's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// The edition of the table; ledgers from before there were several name none.
    #[serde(default = "first_edition")]
    pub edition: u32,
    /// Further oracle files and directories.
    #[serde(default)]
    pub oracle: Scope,
    /// Further governing files and directories.
    #[serde(default)]
    pub governing: Scope,
}

impl Default for Extra {
    fn default() -> Self {
        Self {
            edition: EDITION,
            oracle: Scope::default(),
            governing: Scope::default(),
        }
    }
}

fn first_edition() -> u32 {
    1
}

/// How `path` is protected, if it is; a name that some file system takes for a protected one is too.
pub fn classify(path: &RepoPath, extra: &Extra) -> Option<Protection> {
    let raw = RawPath::from(path);
    let parts: Vec<Reading> = path.parts().map(Reading::of).collect();
    let known = index::index(extra.edition).classify(&parts);
    if known == Some(Protection::Control) || parts.last().is_some_and(is_secret) {
        return Some(Protection::Control);
    }
    if known == Some(Protection::Oracle) || extra.oracle.covers_alias(&raw) {
        return Some(Protection::Oracle);
    }
    known.or_else(|| {
        let governs = extra.governing.covers_alias(&raw);
        governs.then_some(Protection::Governing)
    })
}

/// Whether `path` may be read as the file that says where submodules come from.
pub fn names_submodules(path: &RepoPath) -> bool {
    Reading::of(path.name()).is(".gitmodules")
}

/// `.env` and its variants hold secrets; the template `.env.example` does not.
fn is_secret(name: &Reading) -> bool {
    (name.is(".env") || name.begins(".env.")) && !name.is_plainly(".env.example")
}

#[cfg(test)]
mod tests;
