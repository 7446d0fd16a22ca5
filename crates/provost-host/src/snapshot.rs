//! Records the files of a git directory that control git, so that a later change of them shows.
//!
//! An agent in a shared checkout can write the git directory: redirect it, hide files, name
//! programs to be started, move refs. A snapshot is taken before the agent starts and kept where
//! the agent cannot write. [`Snapshot::compare`] lists what differs afterwards.
//!
//! # Invariants
//!
//! - No git is started and no link is followed; every file is read with a limit.
//! - A file that cannot be read is recorded as such; it never counts as unchanged.

mod files;
mod layout;
mod refs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use provost_core::gate::diff::{Reason, Sign};
use provost_core::json::{self, ReadError};
use provost_core::object::{ObjectFormat, Oid};
use provost_core::path::RawPath;
use provost_core::run::refs::KEPT;
use serde::{Deserialize, Serialize};

use crate::git::index;

pub use files::Control;
pub(crate) use files::read_file;
pub use layout::Layout;
pub use refs::{Refs, named};

const VERSION: u32 = 1;

/// The control files and refs of a checkout at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Snapshot {
    version: u32,
    /// Paths of the checkout and its git directories.
    pub layout: Layout,
    pub refs: Refs,
    /// The control files, by a name below `.git`.
    pub files: BTreeMap<String, Control>,
    /// Paths that git skips (skip-worktree, assume-unchanged), with whether they were on disk.
    pub unwatched: BTreeMap<RawPath, Presence>,
    /// Whether our own runtime directory lies in the checkout.
    pub runtime: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Present,
    Absent,
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("`{}` is not a git checkout", .0.display())]
    NoCheckout(PathBuf),
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not what git writes there", .0.display())]
    Malformed(PathBuf),
    /// The refs have a storage format that is not read here.
    #[error("the refs are kept as `{0}`, which is not read here")]
    RefFormat(&'static str),
    #[error("`{}` is larger than the limit", .0.display())]
    TooMuch(PathBuf),
    #[error("the snapshot does not parse")]
    Syntax(#[from] ReadError),
    #[error("the snapshot has version {0}; this program reads version {VERSION}")]
    Version(u32),
}

impl Snapshot {
    pub fn take(directory: &Path) -> Result<Self, SnapshotError> {
        Self::take_at(Layout::find(directory)?)
    }

    /// Records a checkout whose git directories are known already.
    pub fn take_at(layout: Layout) -> Result<Self, SnapshotError> {
        let worktree = layout.worktree();
        Ok(Self {
            version: VERSION,
            refs: Refs::read(&layout)?,
            files: files::read(&layout)?,
            unwatched: unwatched(&layout),
            runtime: worktree.join(".provost").symlink_metadata().is_ok(),
            layout,
        })
    }

    /// Reads a snapshot from the bytes that [`Snapshot::render`] wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let snapshot: Self = json::parse_as(bytes)?;
        if snapshot.version == VERSION {
            Ok(snapshot)
        } else {
            Err(SnapshotError::Version(snapshot.version))
        }
    }

    pub fn render(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What differs in `now`, a later snapshot of the same checkout.
    ///
    /// The branch that was checked out may move: its commits are judged separately.
    pub fn compare(&self, now: &Self) -> Vec<Sign> {
        let mut signs = Vec::new();
        let names = self.files.keys().chain(now.files.keys());
        for name in names.collect::<BTreeSet<_>>() {
            let (before, after) = (self.files.get(name), now.files.get(name));
            let readable = !matches!(after, Some(Control::Unreadable));
            if before == after && readable {
                continue;
            }
            let what = match (before, after) {
                (_, Some(Control::Unreadable)) => "steers git and cannot be read",
                (None, _) => "steers git and was not there before",
                (_, None) => "steers git and is gone",
                _ => "steers git and was changed",
            };
            signs.push(sign(name, Reason::RepoTamper, what));
            if name.ends_with("info/sparse-checkout") {
                let what = "makes git leave files out of the checkout";
                signs.push(sign(name, Reason::HiddenChange, what));
            }
        }
        signs.extend(self.compare_refs(now));
        signs
    }

    fn compare_refs(&self, now: &Self) -> Vec<Sign> {
        let mut signs = Vec::new();
        let branch = self.refs.head_branch();
        if branch != now.refs.head_branch() {
            let what = format!("named `{}` and names `{}`", self.refs.head, now.refs.head);
            signs.push(sign("HEAD", Reason::RefsChanged, what));
        }
        let names = self.refs.all.keys().chain(now.refs.all.keys());
        for name in names.collect::<BTreeSet<_>>() {
            let (before, after) = (self.refs.all.get(name), now.refs.all.get(name));
            let own = Some(name.as_str()) == branch && after.is_some();
            if before == after || own || name.starts_with(KEPT) {
                continue;
            }
            let what = match (before, after) {
                (None, _) => "was made beside the branch of the work",
                (_, None) => "was removed",
                _ => "was moved beside the branch of the work",
            };
            signs.push(sign(name, Reason::RefsChanged, what));
            if name.starts_with("refs/replace/") {
                let what = "makes git take one object for another";
                signs.push(sign(name, Reason::RepoTamper, what));
            }
        }
        signs
    }
}

fn sign(name: &str, reason: Reason, problem: impl Into<String>) -> Sign {
    // Names are written as raw paths already.
    let path = RawPath::try_from(name.to_owned()).unwrap_or_else(|_| RawPath::new(name));
    Sign {
        path,
        reason,
        problem: problem.into(),
    }
}

pub(crate) fn read_index(
    layout: &Layout,
    format: ObjectFormat,
) -> Result<Vec<index::Entry>, SnapshotError> {
    let path = layout.git_dir().join("index");
    let limit = u64::try_from(index::LARGEST).unwrap_or(u64::MAX);
    let bytes = files::read_file(&path, limit)?.ok_or_else(|| SnapshotError::Unreadable {
        path: path.clone(),
        source: io::ErrorKind::NotFound.into(),
    })?;
    index::parse(&bytes, format).map_err(|error| SnapshotError::Unreadable {
        path,
        source: io::Error::other(error),
    })
}

/// Skipped paths of the index. An unreadable index yields none: judging it will fail.
fn unwatched(layout: &Layout) -> BTreeMap<RawPath, Presence> {
    let formats = [ObjectFormat::Sha1, ObjectFormat::Sha256];
    let entries = formats
        .into_iter()
        .find_map(|format| read_index(layout, format).ok())
        .unwrap_or_default();
    let worktree = layout.worktree();
    let presence = |path: &RawPath| {
        let place = worktree.join(layout::host_path(path));
        if place.symlink_metadata().is_ok() {
            Presence::Present
        } else {
            Presence::Absent
        }
    };
    entries
        .into_iter()
        .filter(|entry| entry.skip_worktree || entry.assume_valid)
        .map(|entry| (entry.path.clone(), presence(&entry.path)))
        .collect()
}

pub(crate) fn full_id(text: &str) -> Option<Oid> {
    Oid::try_from(text).ok()
}

#[cfg(test)]
mod tests;
