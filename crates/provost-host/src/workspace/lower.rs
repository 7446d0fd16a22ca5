//! Keeps pristine checkouts, one a tree, for many overlays to stand on.
//!
//! # Invariants
//!
//! - A checkout is used only after its manifest held, and nothing of ours writes to it afterwards.
//! - It appears under its name whole and synced, or not at all; a maker that was killed leaves only
//!   what the next one removes.
//! - Whoever uses one holds a shared lock that dies with the process; only what nobody holds is
//!   removed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use provost_core::object::Oid;
use provost_core::path::RawPath;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW,
};
use rustix::io::Errno;

use super::manifest::{Facts, Manifest};
use super::{WorkspaceError, checkout, index, make_all_private, make_private, remove, system};
use crate::git::Repository;

/// How long somebody else may take to make the checkout we want too.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often we look whether they are ready.
const GLANCE: Duration = Duration::from_millis(20);

/// How often a checkout may vanish between its making and its use.
const ROUNDS: usize = 3;

/// How much all checkouts of a repository may hold, in bytes.
const ROOM: u64 = 20 << 30;

/// How the name of a checkout that is out of use begins.
const ASIDE: &str = "gone.";

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

/// What a collection removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// How many checkouts.
    pub checkouts: u64,
    /// What they held, in bytes.
    pub bytes: u64,
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

    /// Removes what nobody holds, the least recently used first, until the rest fits into `room`
    /// bytes; also what was set aside or never finished.
    pub fn collect(&self, room: u64) -> Result<Collected, WorkspaceError> {
        let mut found: Vec<(SystemTime, Oid, u64)> = Vec::new();
        let mut others = Vec::new();
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Collected::default());
            }
            entries => entries.map_err(system("list", &self.root))?,
        };
        for entry in entries {
            let entry = entry.map_err(system("list", &self.root))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match Oid::try_from(name.as_str()) {
                Ok(tree) => {
                    let used = fs::metadata(entry.path().join("lock")).and_then(|it| it.modified());
                    let manifest = Manifest::read(&entry.path().join("manifest"));
                    let bytes = manifest.map_or(0, |manifest| manifest.bytes);
                    found.push((used.unwrap_or(SystemTime::UNIX_EPOCH), tree, bytes));
                }
                Err(_) => others.push(name),
            }
        }
        found.sort();
        let mut held = found.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        let mut collected = Collected::default();
        for (_, tree, bytes) in found {
            if held <= room {
                break;
            }
            let Some(_lock) = unused(&self.place(&tree)) else {
                continue;
            };
            if let Some(aside) = self.set_aside(&tree)? {
                remove(&self.root, &aside)?;
            }
            held = held.saturating_sub(bytes);
            collected.checkouts += 1;
            collected.bytes = collected.bytes.saturating_add(bytes);
        }
        self.sweep(&others)?;
        Ok(collected)
    }

    /// Removes what was never finished, and what was set aside and is not used any more.
    fn sweep(&self, names: &[String]) -> Result<(), WorkspaceError> {
        for name in names {
            let path = self.root.join(name);
            if let Some(tree) = name.strip_suffix(".new") {
                let maker = self.root.join(format!("{tree}.lock"));
                let lock = lock(&maker, FlockOperation::NonBlockingLockExclusive);
                if matches!(lock, Ok(Some(_))) {
                    remove(&self.root, &path)?;
                }
            } else if name.starts_with(ASIDE) {
                self.remove_unused(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what was set aside, unless somebody still uses it; then a later collection does.
    fn remove_unused(&self, aside: &Path) -> Result<(), WorkspaceError> {
        let without_lock = !aside.join("lock").exists();
        if without_lock || unused(aside).is_some() {
            remove(&self.root, aside)?;
        }
        Ok(())
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

    /// Takes the checkout of `tree` out of use; where it is now, if there was one.
    fn set_aside(&self, tree: &Oid) -> Result<Option<PathBuf>, WorkspaceError> {
        let place = self.place(tree);
        for number in 0_u32.. {
            let name = format!("{ASIDE}{tree}.{}.{number}", std::process::id());
            let aside = self.root.join(name);
            match rustix::fs::renameat_with(CWD, &place, CWD, &aside, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(Some(aside)),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(system("rename", &place)(error)),
            }
        }
        Ok(None)
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

/// Locks the file `path`; nothing if it is not there or somebody else has it.
fn lock(path: &Path, operation: FlockOperation) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        // Nothing, or something that is none of ours and will be set aside.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => return Ok(None),
        file => file?,
    };
    match rustix::fs::flock(&file, operation) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lock on a checkout that nobody uses.
fn unused(place: &Path) -> Option<OwnedFd> {
    lock(
        &place.join("lock"),
        FlockOperation::NonBlockingLockExclusive,
    )
    .ok()?
}

/// Whether `path` still names the file that was locked.
fn is_still(lock: &OwnedFd, path: &Path) -> bool {
    let (Ok(one), Ok(other)) = (
        rustix::fs::fstat(lock),
        rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW),
    ) else {
        return false;
    };
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
