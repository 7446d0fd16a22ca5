//! Finds the checkouts of a repository, and who works with a branch.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::land::LandError;
use super::{GitError, Repository, system};

/// The most of a file about an operation that is read.
const MOST_READ: u64 = 1 << 20;

/// Files in which an operation notes the branches that it comes back to.
const NOTES: &[(&str, &str)] = &[
    ("rebase-merge/head-name", "rebase"),
    ("rebase-merge/update-refs", "rebase"),
    ("rebase-apply/head-name", "rebase"),
    ("BISECT_START", "bisection"),
];

/// A checkout of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkout {
    /// Where it is.
    pub path: PathBuf,
    /// The branch it is on, such as `refs/heads/main`.
    pub branch: Option<String>,
}

impl Repository {
    /// The one checkout that is on `branch`, if there is any.
    ///
    /// Fails if there are several, or if an operation somewhere will come back to the branch.
    pub fn checkout_of(&self, branch: &str) -> Result<Option<PathBuf>, LandError> {
        for git_dir in self.git_dirs()? {
            for (note, operation) in NOTES {
                if names(&git_dir.join(note), branch)? {
                    return Err(LandError::InUse {
                        branch: branch.to_owned(),
                        operation,
                        checkout: self.checkout_at(&git_dir),
                    });
                }
            }
        }
        let all = self.checkouts()?.into_iter();
        let on_it = all.filter(|one| one.branch.as_deref() == Some(branch));
        let mut paths: Vec<PathBuf> = on_it.map(|one| one.path).collect();
        if paths.len() > 1 {
            return Err(LandError::Several {
                branch: branch.to_owned(),
                checkouts: paths,
            });
        }
        Ok(paths.pop())
    }

    /// All checkouts of the repository, the main one first.
    pub fn checkouts(&self) -> Result<Vec<Checkout>, GitError> {
        let arguments = ["worktree", "list", "--porcelain", "-z"];
        let output = self.git.run(&self.at_refs(), &arguments, Vec::new())?;
        let mut checkouts: Vec<Checkout> = Vec::new();
        let mut bare = false;
        for line in output.stdout.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                checkouts.push(Checkout {
                    path: PathBuf::from(OsStr::from_bytes(path)),
                    branch: None,
                });
            } else if let Some(branch) = line.strip_prefix(b"branch ") {
                if let Some(last) = checkouts.last_mut() {
                    last.branch = Some(String::from_utf8_lossy(branch).into_owned());
                }
            } else if line == b"bare" {
                bare = true;
            }
        }
        if bare {
            checkouts.remove(0);
        }
        Ok(checkouts)
    }

    /// The git directories of all checkouts.
    fn git_dirs(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut all = vec![self.common_dir.clone()];
        let linked = self.common_dir.join("worktrees");
        let unread = || system(format!("read `{}`", linked.display()));
        let entries = match fs::read_dir(&linked) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(unread()(error)),
        };
        for entry in entries {
            all.push(entry.map_err(unread())?.path());
        }
        Ok(all)
    }

    /// The checkout that a git directory belongs to, for a person to read.
    fn checkout_at(&self, git_dir: &Path) -> PathBuf {
        if git_dir == self.common_dir {
            return self.top.clone().unwrap_or_else(|| git_dir.to_owned());
        }
        let line = fs::read(git_dir.join("gitdir")).unwrap_or_default();
        let path = PathBuf::from(OsStr::from_bytes(line.trim_ascii()));
        let checkout = path.parent().filter(|parent| parent.is_absolute());
        checkout.unwrap_or(git_dir).to_owned()
    }
}

/// Whether a line of the file at `path` names `branch`, in full or by its short name.
fn names(path: &Path, branch: &str) -> Result<bool, GitError> {
    let unread = || system(format!("read `{}`", path.display()));
    let there = match path.metadata() {
        // Not from a pipe: nothing may wait.
        Ok(data) => data.is_file(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            false
        }
        Err(error) => return Err(unread()(error)),
    };
    if !there {
        return Ok(false);
    }
    let file = fs::File::open(path).map_err(unread())?;
    let mut bytes = Vec::new();
    file.take(MOST_READ)
        .read_to_end(&mut bytes)
        .map_err(unread())?;
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let is_it = |line: &[u8]| {
        let line = line.trim_ascii();
        line == branch.as_bytes() || line == short.as_bytes()
    };
    Ok(bytes.split(|byte| *byte == b'\n').any(is_it))
}
