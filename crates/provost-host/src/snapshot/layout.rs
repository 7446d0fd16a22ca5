//! Finds the git directories of a checkout, without starting git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use provost_core::path::RawPath;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::files::read_file;

/// The longest `.git`, `commondir` or `gitdir` file that is read, in bytes.
const LONGEST: u64 = 8192;

/// Paths of a checkout and its git directories; absolute, without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    worktree: RawPath,
    git_dir: RawPath,
    common_dir: RawPath,
}

impl Layout {
    /// Finds the git directories of the checkout `directory`, which may also be a git directory.
    pub fn find(directory: &Path) -> Result<Self, SnapshotError> {
        let nothing = || SnapshotError::NoCheckout(directory.to_owned());
        let place = directory.canonicalize().map_err(|_| nothing())?;
        let dot_git = place.join(".git");
        let (worktree, git_dir) = if dot_git.is_dir() {
            (place, absolute(&dot_git)?)
        } else if dot_git.is_file() {
            let line = line_of(&dot_git)?.ok_or_else(nothing)?;
            let target = line
                .strip_prefix(b"gitdir: ")
                .ok_or_else(|| SnapshotError::Malformed(dot_git.clone()))?;
            let git_dir = absolute(&place.join(OsStr::from_bytes(target)))?;
            (place, git_dir)
        } else {
            (checkout_of(&place).ok_or_else(nothing)?, place)
        };
        let common_dir = match line_of(&git_dir.join("commondir"))? {
            Some(line) => absolute(&git_dir.join(OsStr::from_bytes(&line)))?,
            None => git_dir.clone(),
        };
        if !common_dir.join("objects").is_dir() {
            return Err(nothing());
        }
        let raw = |path: PathBuf| RawPath::new(path.as_os_str().as_bytes());
        Ok(Self {
            worktree: raw(worktree),
            git_dir: raw(git_dir),
            common_dir: raw(common_dir),
        })
    }

    /// The directory with the files.
    pub fn worktree(&self) -> PathBuf {
        host_path(&self.worktree)
    }

    /// The git directory of this checkout alone.
    pub fn git_dir(&self) -> PathBuf {
        host_path(&self.git_dir)
    }

    /// The git directory that all checkouts share.
    pub fn common_dir(&self) -> PathBuf {
        host_path(&self.common_dir)
    }

    pub fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }
}

pub(super) fn host_path(path: &RawPath) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path.as_bytes()))
}

/// The checkout that a git directory names as its own.
fn checkout_of(git_dir: &Path) -> Option<PathBuf> {
    git_dir.join("HEAD").symlink_metadata().ok()?;
    if let Some(line) = line_of(&git_dir.join("gitdir")).ok()? {
        let dot_git = git_dir.join(OsStr::from_bytes(&line));
        return dot_git.parent()?.canonicalize().ok();
    }
    let named = git_dir.file_name().is_some_and(|name| name == ".git");
    git_dir.parent().filter(|_| named).map(Path::to_owned)
}

fn absolute(path: &Path) -> Result<PathBuf, SnapshotError> {
    path.canonicalize()
        .map_err(|source| SnapshotError::Unreadable {
            path: path.to_owned(),
            source,
        })
}

/// The only line of a small file; `None` if the file does not exist.
fn line_of(path: &Path) -> Result<Option<Vec<u8>>, SnapshotError> {
    let Some(bytes) = read_file(path, LONGEST)? else {
        return Ok(None);
    };
    let line = bytes.trim_ascii_end();
    if line.is_empty() || line.contains(&b'\n') || line.contains(&0) {
        return Err(SnapshotError::Malformed(path.to_owned()));
    }
    Ok(Some(line.to_vec()))
}
