//! Makes, salvages and removes the private directory that an attempt works in.
//!
//! # Invariants
//!
//! - A workspace is a copy of its own or an overlay. An overlay is a shared pristine checkout below
//!   a layer with only what was written in this workspace.
//! - The checkout is written from git objects, byte by byte: no filter, no line ending conversion,
//!   no attribute. Capturing it untouched gives the same tree.
//! - Its git directory is disposable: it borrows objects, and its content is not trusted.
//! - Removal never follows a link and never leaves the given root.

pub(crate) mod build_cache;
mod checkout;
mod delta;
pub(crate) mod directory_cache;
mod index;
pub(crate) mod layer;
mod lower;
mod manifest;
mod size;
pub(crate) mod submodule;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::change::{Change, Finding, Node};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_engine::ports::PortError;
use provost_fs::remove::RemoveError;

use crate::capture::{self, CaptureError, Limits, Source};
use crate::git::{GitError, Repository, config};
use crate::sandbox::Mount;

pub use build_cache::BuildCaches;
pub use checkout::Dates;
pub use directory_cache::{Collected, ROOM, Wanted};
pub use layer::{Layer, Layers};
pub use lower::{Lower, Lowers};
pub use size::size;
pub use submodule::{Submodule, submodules};

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workspace {
    /// The directory that contains all of it; only its owner may enter.
    pub root: PathBuf,
    /// The checkout; of an overlay, the upper layer.
    pub tree: PathBuf,
    /// The lower layers of an overlay, the topmost first; empty for a copy.
    pub lowers: Vec<PathBuf>,
    pub git: Option<PathBuf>,
}

/// The checkout of a copy.
const COPY: &str = "tree";

/// The upper layer of an overlay.
const UPPER: &str = "upper";

/// What differs from the shared checkout from the start, in an overlay.
const DELTA: &str = "delta";

/// The work directory that the kernel needs for an overlay.
const WORK: &str = "work";

impl Workspace {
    /// Where the captured bytes are.
    pub fn source(&self) -> Source {
        let tree = self.tree.clone();
        if self.lowers.is_empty() {
            Source::Directory(tree)
        } else {
            Source::Upper(tree)
        }
    }

    /// The workspace that was made in `dir`; an overlay if there are `lowers`.
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

    /// The mount of the workspace in a sandbox, at `target`.
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

/// Where the bytes are that an earlier attempt left in the workspace `dir`, if it exists.
pub fn left_in(dir: &Path) -> Option<Source> {
    let (copy, upper) = (dir.join(COPY), dir.join(UPPER));
    if upper.exists() {
        return Some(Source::Upper(upper));
    }
    copy.exists().then_some(Source::Directory(copy))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateGit {
    pub commit: Oid,
    /// The path of the repository's objects as seen inside the sandbox.
    pub objects: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A system call failed.
    #[error("cannot {what} `{}`", path.display())]
    System {
        /// What was tried, after "cannot".
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// Another process holds the lock for longer than the wait.
    #[error("another process holds `{}` for too long", path.display())]
    Busy { path: PathBuf },
    /// A cached checkout is removed or changed again and again, as soon as it is made.
    #[error("`{}` does not stay as it was made", path.display())]
    Unsteady { path: PathBuf },
    /// A path of objects that a git directory cannot name.
    #[error("`{}` cannot be named in a git directory", path.display())]
    BadObjects { path: PathBuf },
    #[error("git failed while the workspace was made")]
    Git(#[from] GitError),
}

impl From<WorkspaceError> for PortError {
    fn from(error: WorkspaceError) -> Self {
        Self::of(Code::HostFailed, error)
    }
}

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

/// Removes the directory `dir`, which must lie below `root`; a missing one is no error.
pub fn remove(root: &Path, dir: &Path) -> Result<(), WorkspaceError> {
    Ok(provost_fs::remove::remove(root, dir)?)
}

/// Makes the workspace `dir`, which must not exist, with a checkout of `tree`.
///
/// On failure, what was written stays there until [`remove()`].
pub fn create(
    repo: &Repository,
    tree: &Oid,
    dir: &Path,
    private: Option<&PrivateGit>,
) -> Result<Workspace, WorkspaceError> {
    create_dated(repo, tree, dir, private, &Dates::default())
}

/// The same, with some files dated later.
pub fn create_dated(
    repo: &Repository,
    tree: &Oid,
    dir: &Path,
    private: Option<&PrivateGit>,
    dates: &Dates,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    let checkout = dir.join(COPY);
    make_private(&checkout)?;
    let read = repo.read_tree(tree)?;
    let files = &read.files;
    let written = checkout::write(repo, files, &checkout, dates)?;
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
/// It is usable as long as `lower` is held.
pub fn create_over(
    repo: &Repository,
    lower: &Lower,
    dir: &Path,
    private: &PrivateGit,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    overlay(repo, vec![lower.files()], dir, private, lower.index())
}

/// Makes the workspace `dir`, which must not exist, as an overlay that shows exactly `tree`. The
/// layer with the differences lies on `lower`.
///
/// It is usable as long as `lower` is held.
pub fn create_between(
    repo: &Repository,
    lower: &Lower,
    tree: &Oid,
    dir: &Path,
    private: &PrivateGit,
    dates: &Dates,
) -> Result<Workspace, WorkspaceError> {
    make_private(dir)?;
    let delta = dir.join(DELTA);
    make_private(&delta)?;
    let mut changes = repo.differences(lower.tree(), tree)?;
    add_dated(&mut changes, &repo.read_tree(tree)?.files, dates);
    let written = delta::write(repo, tree, &changes, &delta, dates)?;
    let index = index::spliced(repo.format(), lower.index(), &changes, &written);
    let index = index.ok_or_else(|| WorkspaceError::Unsteady {
        path: lower.files(),
    })?;
    overlay(repo, vec![delta, lower.files()], dir, private, &index)
}

/// Adds the unchanged files that are dated later, which the lower layer has with their first date.
fn add_dated(changes: &mut Vec<Change>, files: &BTreeMap<RawPath, Node>, dates: &Dates) {
    let known: BTreeSet<RawPath> = changes.iter().map(|it| it.path.clone()).collect();
    let others = dates.newer.iter().filter(|path| !known.contains(*path));
    changes.extend(others.filter_map(|path| {
        let node = files.get(path)?;
        Some(Change {
            path: path.clone(),
            before: Some(node.clone()),
            after: Some(node.clone()),
            binary: false,
            origin: None,
            link: None,
        })
    }));
    changes.sort_by(|one, other| one.path.cmp(&other.path));
}

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
    let tags = tags(repo)?;
    let user = "[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n";
    // In a sandbox the files have another owner than the index records.
    let core = "bare = false\n\tlogAllRefUpdates = true\n\tcheckStat = minimal";
    let config = config(repo.format(), core) + user;
    let files: [(&str, &[u8]); 7] = [
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
        ("packed-refs", tags.as_bytes()),
        ("index", index),
    ];
    for (name, bytes) in files {
        let path = git.join(name);
        std::fs::write(&path, bytes).map_err(system("write", &path))?;
    }
    Ok(git)
}

/// The tags of `repo` as a file of refs; programs name versions by them. Without a header git
/// itself looks which of them are annotated.
fn tags(repo: &Repository) -> Result<String, GitError> {
    let tags = repo.refs("refs/tags/")?;
    let lines: Vec<String> = tags
        .iter()
        .map(|(name, oid)| format!("{oid} {name}\n"))
        .collect();
    Ok(lines.concat())
}

/// Makes a directory that only its owner may enter.
fn make_private(path: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(system("make the directory", path))
}

/// Makes a directory that only its owner may enter, and its parents likewise.
fn make_all_private(path: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(system("make the directory", path))
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The tree of everything that a tree can represent.
    pub tree: Oid,
    /// What could not be saved faithfully, and why.
    pub findings: Vec<Finding>,
}

/// Saves the content of `source`, untracked files included, as a tree; ignored files are left out.
///
/// A finding is no failure: what a tree cannot represent is listed. The tree has no ref yet.
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
