//! The protected names, by the tool that reads them.
//!
//! This table is the only list: the diff gate, the read-only mounts of a sandbox and
//! `docs/protected.md` are derived from it, and every program of the command list has a row.
//!
//! A pattern is a name at any depth. `*` matches any letters; `a/b` is `b` directly in `a`; a
//! leading `/` is the root of the repository. Names are written folded.

use super::Protection::{self, Control, Governing, Oracle};
use super::{agents, builds, scripts};

/// The files of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub protection: Protection,
    pub tool: &'static str,
    /// Programs and modules of this tool, as a command calls them.
    pub programs: &'static str,
    /// Patterns of files.
    pub files: &'static str,
    /// Patterns of directories, with everything in them.
    pub directories: &'static str,
}

/// A row of files that decide what "passing" means.
pub(super) const fn oracle(
    tool: &'static str,
    programs: &'static str,
    files: &'static str,
    directories: &'static str,
) -> Row {
    Row {
        protection: Oracle,
        tool,
        programs,
        files,
        directories,
    }
}

/// A row of files that instruct or configure an agent.
pub(super) const fn governing(
    tool: &'static str,
    files: &'static str,
    directories: &'static str,
) -> Row {
    Row {
        protection: Governing,
        tool,
        programs: "",
        files,
        directories,
    }
}

/// Files that configure git and Provost; `.env` and its variants are recognised by code.
const CONTROL: &[Row] = &[
    Row {
        protection: Control,
        tool: "git",
        programs: "git",
        files: ".gitignore .gitattributes .gitmodules .gitconfig .mailmap",
        directories: ".git",
    },
    // `.runtime-cache` is the runtime directory of the contract format's first implementation,
    // whose files are as sensitive as Provost's.
    Row {
        protection: Control,
        tool: "Provost",
        programs: "provost",
        files: "provost.toml /policies/*",
        directories: ".provost* .runtime-cache /policies/*",
    },
];

pub fn rows() -> impl Iterator<Item = &'static Row> {
    let groups = [
        CONTROL,
        scripts::PYTHON,
        scripts::JAVASCRIPT,
        builds::COMPILED,
        builds::OTHERS,
        agents::CI,
        agents::AGENTS,
    ];
    groups.into_iter().flatten()
}

impl Row {
    pub fn programs(&self) -> impl Iterator<Item = &'static str> {
        self.programs.split_ascii_whitespace()
    }

    pub fn files(&self) -> impl Iterator<Item = &'static str> {
        self.files.split_ascii_whitespace()
    }

    pub fn directories(&self) -> impl Iterator<Item = &'static str> {
        self.directories.split_ascii_whitespace()
    }
}
