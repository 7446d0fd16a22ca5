//! Finds the checkouts of a repository, and which of them use a branch.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use provost_core::object::Oid;

use super::attributes::read_if_there;
use super::land::LandError;
use super::locate::{is_git_dir, locate};
use super::run::{failed, unexpected};
use super::{GitError, Place, Repository, ref_files, system};

/// Files in which an operation, such as a rebase, notes the branches it returns to.
const NOTES: &[(&str, &str)] = &[
    ("rebase-merge/head-name", "rebase"),
    ("rebase-merge/update-refs", "rebase"),
    ("rebase-apply/head-name", "rebase"),
    ("BISECT_START", "bisection"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkout {
    pub path: PathBuf,
    /// The branch it is on, such as `refs/heads/main`.
    pub branch: Option<String>,
}

impl Repository {
    /// The one checkout on `branch`, if there is any.
    ///
    /// Fails if there are several, or if an operation in any checkout will return to the branch.
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

    /// The git directory of a checkout of this repository: `known` if it still is one, else that
    /// of the checkout at `path`; `None` if neither is a checkout of this repository.
    pub fn find_git_dir(
        &self,
        known: Option<&Path>,
        path: &Path,
    ) -> Result<Option<PathBuf>, GitError> {
        let all = self.git_dirs()?;
        let known = known.and_then(|known| known.canonicalize().ok());
        let is_one = |git_dir: &PathBuf| is_git_dir(git_dir) && all.contains(git_dir);
        if let Some(known) = known.filter(is_one) {
            return Ok(Some(known));
        }
        let at = locate(path).ok();
        let at = at.filter(|(_, top)| top.as_deref() == path.canonicalize().ok().as_deref());
        Ok(at.map(|(git_dir, _)| git_dir).filter(is_one))
    }

    /// The commit that the checkout with this git directory is at, if it is on no branch.
    pub fn detached_at(&self, git_dir: &Path) -> Result<Option<Oid>, GitError> {
        if self.branch_of(git_dir)?.is_some() {
            return Ok(None);
        }
        let place = Place {
            git_dir,
            ..self.at_refs()
        };
        let arguments = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let output = self.git.run(&place, &arguments, Vec::new())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let commit = Oid::try_from(text.trim()).map_err(|_| unexpected("rev-parse"))?;
        Ok(Some(commit))
    }

    /// The branches that the checkout with this git directory is on, or returns to when its rebase
    /// ends; none if this repository has no such checkout.
    pub fn branches_at(&self, git_dir: &Path) -> Result<Vec<String>, GitError> {
        let mut found = BTreeSet::new();
        for git_dir in self.git_dirs()?.into_iter().filter(|it| it == git_dir) {
            found.extend(self.branch_of(&git_dir)?);
            for note in ["rebase-merge/head-name", "rebase-apply/head-name"] {
                let text = read_if_there(&git_dir.join(note))?;
                let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
                found.extend(Some(text).filter(|name| name.starts_with("refs/heads/")));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The branch that the `HEAD` of a git directory names.
    fn branch_of(&self, git_dir: &Path) -> Result<Option<String>, GitError> {
        if self.is_plain
            && let Ok(branch) = ref_files::head(git_dir)
        {
            return Ok(Some(branch));
        }
        let place = Place {
            git_dir,
            ..self.at_refs()
        };
        let arguments = ["symbolic-ref", "--quiet", "HEAD"];
        let output = self.git.call(&place, &arguments, Vec::new())?;
        match output.status.code() {
            Some(0) => Ok(Some(
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            )),
            Some(1) => Ok(None),
            _ => Err(failed("symbolic-ref".to_owned(), &output)),
        }
    }

    pub fn is_new(&self, commit: &Oid) -> Result<bool, GitError> {
        let arguments = [
            "rev-list",
            "--max-count=1",
            commit.as_str(),
            "--not",
            "--glob=refs/*",
            "--",
        ];
        let output = self.git.run(&self.at_refs(), &arguments, Vec::new())?;
        Ok(!output.stdout.trim_ascii().is_empty())
    }

    /// Whether `commit` is on a local or remote branch other than `names`, and contains no commit
    /// that these or `head` have beyond `base`.
    pub fn is_elsewhere(
        &self,
        commit: &Oid,
        base: &Oid,
        names: &[String],
        head: Option<&Oid>,
    ) -> Result<bool, GitError> {
        let mut tips: Vec<Oid> = head.cloned().into_iter().collect();
        for name in names {
            tips.extend(self.ref_value(name)?);
        }
        for tip in tips {
            let arguments = ["merge-base", "--all", tip.as_str(), commit.as_str()];
            let output = self.git.call(&self.at_side(), &arguments, Vec::new())?;
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let shared = Oid::try_from(line).map_err(|_| unexpected("merge-base"))?;
                if !self.follows(base, &shared)? {
                    return Ok(false);
                }
            }
        }
        let contains = format!("--contains={commit}");
        let arguments = [
            "for-each-ref",
            "--format=%(refname)",
            &contains,
            "refs/heads",
            "refs/remotes",
        ];
        let output = self.git.run(&self.at_refs(), &arguments, Vec::new())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text
            .lines()
            .any(|line| names.iter().all(|name| name != line)))
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

    /// The checkout that a git directory belongs to, for messages.
    pub fn checkout_at(&self, git_dir: &Path) -> PathBuf {
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
    let bytes = read_if_there(path)?;
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let is_it = |line: &[u8]| {
        let line = line.trim_ascii();
        line == branch.as_bytes() || line == short.as_bytes()
    };
    Ok(bytes.split(|byte| *byte == b'\n').any(is_it))
}
