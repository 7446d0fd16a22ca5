//! Keeps pristine checkouts, one a tree, for many overlays to stand on.
//!
//! # Invariants
//!
//! - A checkout is used only after its manifest held, and nothing of ours writes to it afterwards.
//! - It appears under its name whole and synced, or not at all; a maker that was killed leaves only
//!   what the next one removes.
//! - Whoever uses one holds a shared lock that dies with the process; only what nobody holds is
//!   removed.

mod collect;
mod lock;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use provost_core::object::Oid;
use provost_core::path::RawPath;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW};

use super::manifest::{Facts, Manifest};
use super::{WorkspaceError, checkout, index, make_all_private, make_private, remove, system};
use crate::git::Repository;
pub use collect::Collected;
use lock::{is_still, lock};

/// How long somebody else may take to make the checkout we want too.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often we look whether they are ready.
const GLANCE: Duration = Duration::from_millis(20);

/// How often a checkout may vanish between its making and its use.
const ROUNDS: usize = 3;

/// How much all checkouts of a repository may hold, in bytes.
const ROOM: u64 = 20 << 30;

/// The checkouts of one repository.
#[derive(Debug, Clone)]
pub struct Lowers {
    root: PathBuf,
}

/// A pristine checkout that stays as it is while this value lives.
#[derive(Debug)]
pub struct Lower {
    place: PathBuf,
    manifest: Manifest,
    _lock: OwnedFd,
}

impl Lower {
    /// The files.
    pub fn files(&self) -> PathBuf {
        self.place.join("tree")
    }

    /// The tree that was checked out.
    pub fn tree(&self) -> &Oid {
        &self.manifest.tree
    }

    /// A git index of them.
    pub(super) fn index(&self) -> PathBuf {
        self.place.join("index")
    }

    /// What the kernel says about each file.
    pub(super) fn facts(&self) -> BTreeMap<RawPath, Facts> {
        self.manifest.facts()
    }
}

impl Lowers {
    /// Those below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            root: cache.join("lower"),
        }
    }

    /// Whether a checkout of `tree` was made before; it may be damaged.
    pub fn know(&self, tree: &Oid) -> bool {
        self.place(tree).join("lock").exists()
    }

    /// The checkout of `tree`, made if it is missing or anybody touched it.
    pub fn hold(&self, repo: &Repository, tree: &Oid) -> Result<Lower, WorkspaceError> {
        if let Some(lower) = self.existing(tree)? {
            return Ok(lower);
        }
        make_all_private(&self.root)?;
        for _ in 0..ROUNDS {
            let maker = self.lock_making(tree)?;
            if let Some(lower) = self.existing(tree)? {
                return Ok(lower);
            }
            if let Some(aside) = self.set_aside(tree)? {
                self.remove_unused(&aside)?;
            }
            self.make(repo, tree)?;
            drop(maker);
            if let Some(lower) = self.existing(tree)? {
                // Room is a courtesy: without it this checkout is as good.
                let _ = self.collect(ROOM);
                return Ok(lower);
            }
        }
        let path = self.place(tree);
        Err(WorkspaceError::Unsteady { path })
    }

    fn place(&self, tree: &Oid) -> PathBuf {
        self.root.join(tree.as_str())
    }

    /// The checkout of `tree`, if it is there and nobody touched it.
    fn existing(&self, tree: &Oid) -> Result<Option<Lower>, WorkspaceError> {
        let place = self.place(tree);
        let path = place.join("lock");
        let failed = system("lock", &path);
        let Some(lock) = lock(&path, FlockOperation::NonBlockingLockShared).map_err(failed)? else {
            return Ok(None);
        };
        if !is_still(&lock, &path) {
            return Ok(None);
        }
        let manifest = Manifest::read(&place.join("manifest"))
            .filter(|manifest| manifest.tree == *tree && manifest.holds(&place.join("tree")));
        let Some(manifest) = manifest else {
            return Ok(None);
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let used = Timestamps {
            last_access: now,
            last_modification: now,
        };
        rustix::fs::futimens(&lock, &used).map_err(system("touch", &path))?;
        Ok(Some(Lower {
            place,
            manifest,
            _lock: lock,
        }))
    }

    /// Becomes the only one who makes the checkout of `tree`.
    fn lock_making(&self, tree: &Oid) -> Result<OwnedFd, WorkspaceError> {
        let path = self.root.join(format!("{tree}.lock"));
        let deadline = Instant::now() + PATIENCE;
        loop {
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(system("make", &path))?;
            let locked = lock(&path, FlockOperation::NonBlockingLockExclusive);
            match locked.map_err(system("lock", &path))? {
                Some(lock) if is_still(&lock, &path) => return Ok(lock),
                _ if Instant::now() >= deadline => {
                    return Err(WorkspaceError::Busy { path });
                }
                _ => std::thread::sleep(GLANCE),
            }
        }
    }

    /// Makes the checkout of `tree`; what was begun is removed when that fails.
    fn make(&self, repo: &Repository, tree: &Oid) -> Result<(), WorkspaceError> {
        let begun = self.root.join(format!("{tree}.new"));
        remove(&self.root, &begun)?;
        let made = fill(repo, tree, &begun).and_then(|()| {
            fs::rename(&begun, self.place(tree)).map_err(system("rename", &begun))?;
            sync(&self.root)
        });
        if made.is_err() {
            // The first error says more than one of the removal.
            let _ = remove(&self.root, &begun);
        }
        made
    }
}

/// Writes everything a checkout has into the new directory `begun`, and waits until it is on disk.
fn fill(repo: &Repository, tree: &Oid, begun: &Path) -> Result<(), WorkspaceError> {
    make_private(begun)?;
    let root = begun.join("tree");
    make_private(&root)?;
    let files = repo.read_tree(tree)?;
    let written = checkout::write(repo, &files, &root)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = begun.join(name);
        fs::write(&path, bytes).map_err(system("write", &path))
    };
    write("index", &index::render(repo.format(), &files, &written))?;
    write("lock", b"")?;
    // All at once: one call a file would take longer than the checkout.
    File::open(begun)
        .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
        .map_err(system("sync", begun))?;
    let path = begun.join("manifest");
    Manifest::take(&root, tree, files.keys())
        .and_then(|manifest| manifest.write(&path))
        .map_err(system("write", &path))?;
    sync(begun)
}

/// Waits until the names in a directory are on disk.
fn sync(directory: &Path) -> Result<(), WorkspaceError> {
    File::open(directory)
        .and_then(|file| file.sync_all())
        .map_err(system("sync", directory))
}
