//! Records the files of a git directory that steer git, so that a later change of them shows.
//!
//! An agent in a shared checkout can write the git directory: point it elsewhere, hide files, name
//! programs to be started, move refs. A snapshot is taken before the agent starts and kept where
//! the agent cannot write; [`Snapshot::compare`] tells what differs afterwards.
//!
//! # Invariants
//!
//! - No git is started and no link is followed; every file is read with a limit.
//! - A file that cannot be read is recorded as such; it never counts as unchanged content.

mod files;
mod layout;
mod refs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use provost_core::gate::diff::{Reason, Sign};
use provost_core::index;
use provost_core::json::{self, JsonError};
use provost_core::object::{ObjectFormat, Oid};
use provost_core::path::RawPath;
use provost_core::run::refs::KEPT;
use serde::{Deserialize, Serialize};

pub use files::Control;
pub(crate) use files::read_file;
pub use layout::Layout;
pub use refs::{Refs, named};

/// The version of the snapshot format.
const VERSION: u32 = 1;

/// The control files and refs of a checkout at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Snapshot {
    version: u32,
    /// Where the checkout and its git directories are.
    pub layout: Layout,
    /// `HEAD` and all refs.
    pub refs: Refs,
    /// The control files, by a name below `.git`.
    pub files: BTreeMap<String, Control>,
    /// Paths that git was told not to look at, with whether they were on disk.
    pub unwatched: BTreeMap<RawPath, Presence>,
    /// Whether our own runtime directory lies in the checkout.
    pub runtime: bool,
}

/// Whether a path was on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Present,
    /// It was not.
    Absent,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The directory is no checkout.
    #[error("`{}` is not a git checkout", .0.display())]
    NoCheckout(PathBuf),
    /// A file that is needed cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is not what git writes.
    #[error("`{}` is not what git writes there", .0.display())]
    Malformed(PathBuf),
    /// The refs are kept in a way we do not read.
    #[error("the refs are kept as `{0}`, which is not read here")]
    RefFormat(&'static str),
    /// There is more than we read.
    #[error("`{}` holds more than we read", .0.display())]
    TooMuch(PathBuf),
    /// A snapshot that does not parse.
    #[error("the snapshot does not parse")]
    Syntax(#[from] JsonError),
    /// A snapshot of another version.
    #[error("the snapshot has version {0}; this program reads version {VERSION}")]
    Version(u32),
}

impl Snapshot {
    /// Records the checkout at `directory`.
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
    /// The branch that was checked out may move: the commits on it are judged by themselves.
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
                let what = "tells git to leave files out of the checkout";
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

/// The entries of the checkout's index.
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

/// An index that cannot be read hides nothing here: judging it will fail.
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

/// A full object id, if `text` is one.
pub(crate) fn full_id(text: &str) -> Option<Oid> {
    Oid::try_from(text).ok()
}

#[cfg(test)]
mod tests;
