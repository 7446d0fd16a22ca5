//! The protected files: files that decide about a change instead of being part of it.
//!
//! There are three kinds. *Control* files configure git and Provost or hold secrets, and no
//! contract permits them. *Oracle* files decide what "passing" means; *governing* files instruct or
//! configure an agent. Oracle and governing files change only with the contract's permission, even
//! inside the scope.
//!
//! The names are listed once, in [`table`], by the tool that reads them.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Configures git or Provost, or holds secrets; never permitted.
    Control,
    /// Decides what "passing" means.
    Oracle,
    /// Instructs or configures an agent.
    Governing,
}

/// Directories that no contract permits, at any depth.
const CONTROL_DIRECTORIES: &[&str] = &[".git", ".provost", ".runtime-cache"];

/// The control directory that contains `path`, in any spelling.
pub fn control_directory(path: &RepoPath) -> Option<&'static str> {
    path.parts().find_map(|part| {
        let reading = Reading::of(part);
        CONTROL_DIRECTORIES
            .iter()
            .copied()
            .find(|name| reading.is(name))
    })
}

/// The edition of the table for new runs.
pub const EDITION: u32 = 2;

/// The names for a run: an edition of the table, and more from the repository's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// The edition of the table; absent in ledgers from before there were several.
    #[serde(default = "first_edition")]
    pub edition: u32,
    /// Additional oracle files and directories.
    #[serde(default)]
    pub oracle: Scope,
    /// Additional governing files and directories.
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

/// How `path` is protected, if it is; includes names that some file system treats as a protected
/// one.
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

/// Whether `path` may be read as `.gitmodules`.
pub fn names_submodules(path: &RepoPath) -> bool {
    Reading::of(path.name()).is(".gitmodules")
}

/// `.env` and its variants hold secrets; the template `.env.example` does not.
fn is_secret(name: &Reading) -> bool {
    (name.is(".env") || name.begins(".env.")) && !name.is_plainly(".env.example")
}

#[cfg(test)]
mod tests;
