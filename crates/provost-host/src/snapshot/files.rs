//! Reads the control files of a git directory: those that decide what git does.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use provost_core::object;
use provost_core::path::RawPath;
use provost_fs::regular_file::{self, RegularFileError};
use serde::{Deserialize, Serialize};

use super::{Layout, SnapshotError};

const FILES: &[&str] = &[
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "shallow",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// Directories of such files.
const DIRECTORIES: &[&str] = &["branches", "hooks", "info", "remotes"];

/// The largest control file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

const MOST: usize = 10_000;

const DEEPEST: usize = 8;

/// What is at the path of a control file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Control {
    File {
        sha256: String,
        executable: bool,
    },
    /// A directory, where git expects a file.
    Directory,
    Link {
        /// As written in the link.
        target: RawPath,
    },
    /// Another kind, or a file that is too large or cannot be read.
    Unreadable,
}

/// The control files of a checkout, each named by its path from the repository's top.
pub(super) fn read(layout: &Layout) -> Result<BTreeMap<String, Control>, SnapshotError> {
    let mut found = BTreeMap::new();
    if let Some(control) = look(&layout.worktree().join(".git")) {
        found.insert(".git".to_owned(), control);
    }
    let common = layout.common_dir();
    read_directory(&common, ".git", &mut found)?;
    if layout.is_linked() {
        let own = layout.git_dir();
        let name = own.strip_prefix(&common).unwrap_or(Path::new("worktree"));
        let name = RawPath::new(name.as_os_str().as_bytes());
        read_directory(&own, &format!(".git/{name}"), &mut found)?;
    }
    Ok(found)
}

type Found = BTreeMap<String, Control>;

fn read_directory(root: &Path, label: &str, found: &mut Found) -> Result<(), SnapshotError> {
    for name in FILES {
        if let Some(control) = look_below(root, name) {
            found.insert(format!("{label}/{name}"), control);
        }
    }
    for name in DIRECTORIES {
        walk(&root.join(name), &format!("{label}/{name}"), DEEPEST, found)?;
    }
    Ok(())
}

fn walk(path: &Path, label: &str, depth: usize, found: &mut Found) -> Result<(), SnapshotError> {
    match look(path) {
        None => return Ok(()),
        Some(Control::Directory) if depth > 0 => {}
        Some(other) => {
            found.insert(label.to_owned(), other);
            return Ok(());
        }
    }
    let unreadable = |source| SnapshotError::Unreadable {
        path: path.to_owned(),
        source,
    };
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = RawPath::new(entry.file_name().as_bytes());
        // For servers without git: rewritten with the refs, which are compared themselves.
        if label.ends_with("/info") && name.as_bytes() == b"refs" {
            continue;
        }
        if found.len() >= MOST {
            return Err(SnapshotError::TooMuch(path.to_owned()));
        }
        walk(&entry.path(), &format!("{label}/{name}"), depth - 1, found)?;
    }
    Ok(())
}

/// What is at `name` below `root`, or at the first link on the way.
fn look_below(root: &Path, name: &str) -> Option<Control> {
    let mut path = root.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let control = look(&path)?;
        if parts.peek().is_none() || control != Control::Directory {
            return Some(control);
        }
    }
    None
}

/// What is at `path`; `None` if nothing is.
fn look(path: &Path) -> Option<Control> {
    let data = match path.symlink_metadata() {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => return Some(Control::Unreadable),
    };
    if data.is_dir() {
        return Some(Control::Directory);
    }
    if data.is_symlink() {
        let target = fs::read_link(path).ok();
        return Some(target.map_or(Control::Unreadable, |target| Control::Link {
            target: RawPath::new(target.as_os_str().as_bytes()),
        }));
    }
    match read_file(path, LARGEST) {
        Ok(Some(bytes)) => Some(Control::File {
            sha256: object::sha256(&bytes),
            executable: data.permissions().mode() & 0o111 != 0,
        }),
        Ok(None) => None,
        Err(_) => Some(Control::Unreadable),
    }
}

/// The bytes of the regular file at `path`, which must not be a link; `None` if it does not exist.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, SnapshotError> {
    regular_file::read(path, limit).map_err(|error| match error {
        RegularFileError::Unreadable(source) => SnapshotError::Unreadable {
            path: path.to_owned(),
            source,
        },
        RegularFileError::TooLarge { .. } => SnapshotError::TooMuch(path.to_owned()),
    })
}
