//! Makes, salvages and removes the private directory that an attempt works in.
//!
//! # Invariants
//!
//! - A workspace is a copy of its own, or an overlay: a pristine checkout that many share, below a
//!   layer that holds only what was written here.
//! - The checkout is written from git objects, byte by byte: no filter, no line ending, no
//!   attribute; capturing it untouched gives the same tree.
//! - The git directory in it is a disposable one: it borrows objects, and nothing in it is
//!   believed.
//! - Removal never follows a link and never leaves the root it was given.

mod checkout;
mod delta;
pub(crate) mod directory_cache;
mod index;
pub(crate) mod layer;
mod lower;
mod manifest;
mod remove;
mod size;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::change::Finding;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_engine::ports::PortError;

use crate::capture::{self, CaptureError, Limits, Source};
use crate::git::{GitError, Repository, config};
use crate::sandbox::Mount;

pub use directory_cache::{Collected, ROOM, Wanted};
pub use layer::{Layer, Layers};
pub use lower::{Lower, Lowers};
pub use remove::remove;
pub use size::size;

/// A directory that an attempt or a command works in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workspace {
    /// The directory of it all, for nobody else to enter.
    pub root: PathBuf,
    /// The checkout; of an overlay, what was written on top of it.
    pub tree: PathBuf,
    /// What an overlay stands on, the topmost first; a copy stands on nothing.
    pub lowers: Vec<PathBuf>,
    /// The private git directory, if it has one.
    pub git: Option<PathBuf>,
}

/// The checkout of a copy.
const COPY: &str = "tree";

/// What was written on top of the checkout, in an overlay.
const UPPER: &str = "upper";

/// What differs from the shared checkout before anybody wrote, in an overlay.
const DELTA: &str = "delta";

/// The kernel's own place in an overlay.
const WORK: &str = "work";

impl Workspace {
    /// Where the bytes are that are left here.
    pub fn source(&self) -> Source {
        let tree = self.tree.clone();
        if self.lowers.is_empty() {
            Source::Directory(tree)
        } else {
            Source::Upper(tree)
        }
    }

    /// The workspace that was made in `dir`, an overlay if there are `lowers`.
    pub fn open(dir: &Path, lowers: Vec<PathBuf>) -> Self {
        let name = if lowers.is_empty() { COPY } else { UPPER };
        let tree = dir.join(name);
        let git = tree.join(".git");
        Self {
            root: dir.to_owned(),
            tree,
            lowers,
            git: git.exists().then_some(git),
        }
    }

    /// The workspace as a sandbox has it, at `target`.
    pub fn mount(&self, target: &Path) -> Mount {
        let target = target.to_owned();
        if self.lowers.is_empty() {
            return Mount::Writable {
                source: self.tree.clone(),
                target,
            };
        }
        Mount::Overlay {
            lowers: self.lowers.clone(),
            upper: self.tree.clone(),
            work: self.root.join(WORK),
            target,
        }
    }
}

/// Where the bytes are that somebody left in the workspace `dir`, if there is one.
pub fn left_in(dir: &Path) -> Option<Source> {
    let (copy, upper) = (dir.join(COPY), dir.join(UPPER));
    if upper.exists() {
        return Some(Source::Upper(upper));
    }
    copy.exists().then_some(Source::Directory(copy))
}

/// The private git directory of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateGit {
    /// The commit that the workspace starts from.
    pub commit: Oid,
    /// Where the repository's objects will be found by those who work there.
    pub objects: PathBuf,
}

/// Why a workspace could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The system refused something.
    #[error("cannot {what} `{}`", path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A directory that is not ours to remove.
    #[error("`{}` does not lie below `{}`", path.display(), root.display())]
    Outside {
        /// The directory.
        path: PathBuf,
        /// Where it should be.
        root: PathBuf,
    },
    /// Somebody else takes too long.
    #[error("another process holds `{}` for too long", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// Somebody removes or changes a checkout as soon as it is made.
    #[error("`{}` does not stay as it was made", path.display())]
    Unsteady {
        /// The checkout.
        path: PathBuf,
    },
    /// A path for objects that git cannot be told.
    #[error("`{}` cannot be named in a git directory", path.display())]
    BadObjects {
        /// The path.
        path: PathBuf,
    },
    /// Git failed.
    #[error("git failed while the workspace was made")]
    Git(#[from] GitError),
}

impl From<WorkspaceError> for PortError {
    fn from(error: WorkspaceError) -> Self {
        Self::of(Code::HostFailed, error)
    }
}

/// Wraps an error of the system.
fn system<E: Into<std::io::Error>>(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> WorkspaceError {
    move |error| WorkspaceError::System {
        what,
        path: path.to_owned(),
        source: error.into(),
    }
}

/// Makes the workspace `dir`, which must not exist, with a checkout of `tree`.
///
/// What was written stays there when this fails; [`remove`] takes it away.
pub fn create(
    repo: &Repository,
    tree: &Oid,
    dir: &Path,
    private: Option<&PrivateGit>,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    let checkout = dir.join(COPY);
    make_private(&checkout)?;
    let read = repo.read_tree(tree)?;
    let files = &read.files;
    let written = checkout::write(repo, files, &checkout)?;
    let git = match private {
        None => None,
        Some(private) => {
            let index = index::render(repo.format(), files, &written);
            Some(make_git(repo, &checkout, private, &index)?)
        }
    };
    Ok(Workspace {
        root: dir.to_owned(),
        tree: checkout,
        lowers: Vec::new(),
        git,
    })
}

/// Makes the workspace `dir`, which must not exist, as an overlay on `lower`.
///
/// It can be used as long as `lower` is held.
pub fn create_over(
    repo: &Repository,
    lower: &Lower,
    dir: &Path,
    private: &PrivateGit,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    overlay(repo, vec![lower.files()], dir, private, lower.index())
}

/// Makes the workspace `dir`, which must not exist, as an overlay that shows exactly `tree`, with
/// `lower` below what differs from it.
///
/// It can be used as long as `lower` is held.
pub fn create_between(
    repo: &Repository,
    lower: &Lower,
    tree: &Oid,
    dir: &Path,
    private: &PrivateGit,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    let delta = dir.join(DELTA);
    make_private(&delta)?;
    let changes = repo.differences(lower.tree(), tree)?;
    let written = delta::write(repo, tree, &changes, &delta)?;
    let index = index::spliced(repo.format(), lower.index(), &changes, &written);
    let index = index.ok_or_else(|| WorkspaceError::Unsteady {
        path: lower.files(),
    })?;
    overlay(repo, vec![delta, lower.files()], dir, private, &index)
}

/// Makes an empty layer on `lowers` in the directory `dir`.
fn overlay(
    repo: &Repository,
    lowers: Vec<PathBuf>,
    dir: &Path,
    private: &PrivateGit,
    index: &[u8],
) -> Result<Workspace, WorkspaceError> {
    let upper = dir.join(UPPER);
    make_private(&upper)?;
    make_private(&dir.join(WORK))?;
    let git = make_git(repo, &upper, private, index)?;
    Ok(Workspace {
        root: dir.to_owned(),
        tree: upper,
        lowers,
        git: Some(git),
    })
}

/// Makes the disposable git directory, on the branch `provost` at the base commit.
fn make_git(
    repo: &Repository,
    tree: &Path,
    private: &PrivateGit,
    index: &[u8],
) -> Result<PathBuf, WorkspaceError> {
    let objects = private
        .objects
        .to_str()
        .filter(|path| path.starts_with('/') && !path.contains(char::is_control));
    let Some(objects) = objects else {
        let path = private.objects.clone();
        return Err(WorkspaceError::BadObjects { path });
    };
    let git = tree.join(".git");
    let directories = [
        "",
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "refs/heads",
        "refs/tags",
        "info",
    ];
    for directory in directories {
        make_private(&git.join(directory))?;
    }
    let user = "[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n";
    // In a sandbox the files have another owner than the index remembers.
    let core = "bare = false\n\tlogAllRefUpdates = true\n\tcheckStat = minimal";
    let config = config(repo.format(), core) + user;
    let files: [(&str, &[u8]); 6] = [
        ("HEAD", b"ref: refs/heads/provost\n"),
        ("config", config.as_bytes()),
        (
            "refs/heads/provost",
            &format!("{}\n", private.commit).into_bytes(),
        ),
        (
            "objects/info/alternates",
            &format!("{objects}\n").into_bytes(),
        ),
        ("info/exclude", b""),
        ("index", index),
    ];
    for (name, bytes) in files {
        let path = git.join(name);
        std::fs::write(&path, bytes).map_err(system("write", &path))?;
    }
    Ok(git)
}

/// Makes a directory that only we may enter.
fn make_private(path: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(system("make the directory", path))
}

/// Makes a directory that only we may enter, with those above it.
fn make_all_private(path: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(system("make the directory", path))
}

/// What was saved of a workspace before its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The tree of all that a tree can hold.
    pub tree: Oid,
    /// What could not be saved faithfully, and why.
    pub findings: Vec<Finding>,
}

/// Saves what is in `source`, untracked files included, as a tree; ignored files are left out.
///
/// No finding makes it fail: what a tree cannot hold is listed. The tree has no ref yet.
pub fn salvage(
    repo: &Repository,
    base_tree: &Oid,
    source: &Source,
) -> Result<Salvaged, CaptureError> {
    let generous = Limits {
        depth: 1024,
        count: 2_000_000,
        file_bytes: 1 << 30,
        total_bytes: 64 << 30,
        new_bytes: 2 << 30,
        ..Limits::default()
    };
    let captured = capture::capture(repo, base_tree, source, &generous, capture::Mode::Record)?;
    Ok(Salvaged {
        tree: captured.tree,
        findings: captured.findings,
    })
}
