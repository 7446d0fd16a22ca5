//! Keeps directories that are made once, by name, and read by many.
//!
//! # Invariants
//!
//! - A directory is used only after its manifest held, and nothing of ours writes to it afterwards.
//! - It appears under its name whole and synced, or not at all; a maker that was killed leaves only
//!   what the next one removes.
//! - Whoever uses one holds a shared lock that dies with the process; only what nobody holds is
//!   removed.

mod collect;
mod lock;

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use provost_core::path::RawPath;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW};

use super::manifest::Manifest;
use super::{WorkspaceError, make_all_private, make_private, remove, system};
pub use collect::{Collected, Wanted};
use lock::{is_still, lock};

/// How much the directories of one shelf may hold together, in bytes.
pub const ROOM: u64 = 20 << 30;

/// How long somebody else may take to make what we want too.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often we look whether they are ready.
const GLANCE: Duration = Duration::from_millis(20);

/// How often a directory may vanish between its making and its use.
const ROUNDS: usize = 3;

/// The files, in a place on the shelf.
pub(crate) const FILES: &str = "tree";

/// Directories by name; a name is one of hexadecimal digits.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryCache {
    root: PathBuf,
}

/// A directory that stays as it is while this value lives.
#[derive(Debug)]
pub(crate) struct HeldDirectory {
    pub(crate) place: PathBuf,
    pub(crate) manifest: Manifest,
    /// Whether it was made for this holder.
    pub(crate) is_new: bool,
    /// Whether something stood in its place that somebody had changed.
    pub(crate) was_damaged: bool,
    _lock: OwnedFd,
}

impl HeldDirectory {
    pub(crate) fn files(&self) -> PathBuf {
        self.place.join(FILES)
    }
}

impl DirectoryCache {
    /// The shelf in the directory `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Whether `name` was made before; it may be damaged.
    pub(crate) fn know(&self, name: &str) -> bool {
        self.place(name).join("lock").exists()
    }

    /// The directory `name`, filled by `fill` if it is missing or anybody touched it.
    ///
    /// `fill` gets a new directory, and ends with [`finish`].
    pub(crate) fn hold<E: From<WorkspaceError>>(
        &self,
        name: &str,
        fill: &mut dyn FnMut(&Path) -> Result<(), E>,
    ) -> Result<HeldDirectory, E> {
        if let Some(held) = self.existing(name)? {
            return Ok(held);
        }
        make_all_private(&self.root)?;
        let mut was_damaged = false;
        for _ in 0..ROUNDS {
            let maker = self.lock_making(name)?;
            if let Some(held) = self.existing(name)? {
                return Ok(held);
            }
            if let Some(aside) = self.set_aside(name)? {
                was_damaged = true;
                self.remove_unused(&aside)?;
            }
            self.make(name, fill)?;
            drop(maker);
            if let Some(held) = self.existing(name)? {
                // Room is a courtesy: without it this directory is as good.
                let _ = self.collect(ROOM, &|_, _| true);
                return Ok(HeldDirectory {
                    is_new: true,
                    was_damaged,
                    ..held
                });
            }
        }
        let path = self.place(name);
        Err(WorkspaceError::Unsteady { path }.into())
    }

    /// Lets the next holder make `name` anew; whoever holds it now keeps it.
    pub(crate) fn discard(&self, name: &str) -> Result<(), WorkspaceError> {
        let _maker = self.lock_making(name)?;
        match self.set_aside(name)? {
            Some(aside) => self.remove_unused(&aside),
            None => Ok(()),
        }
    }

    /// Where `name` is or would be.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory `name`, if it is there and nobody touched it.
    pub(crate) fn existing(&self, name: &str) -> Result<Option<HeldDirectory>, WorkspaceError> {
        let place = self.place(name);
        let path = place.join("lock");
        let failed = system("lock", &path);
        let Some(lock) = lock(&path, FlockOperation::NonBlockingLockShared).map_err(failed)? else {
            return Ok(None);
        };
        if !is_still(&lock, &path) {
            return Ok(None);
        }
        let manifest = Manifest::read(&place.join("manifest"))
            .filter(|manifest| manifest.name == name && manifest.holds(&place.join(FILES)));
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
        Ok(Some(HeldDirectory {
            place,
            manifest,
            is_new: false,
            was_damaged: false,
            _lock: lock,
        }))
    }

    /// Becomes the only one who makes `name`.
    fn lock_making(&self, name: &str) -> Result<OwnedFd, WorkspaceError> {
        let path = self.root.join(format!("{name}.lock"));
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

    /// Makes `name`; what was begun is removed when that fails.
    fn make<E: From<WorkspaceError>>(
        &self,
        name: &str,
        fill: &mut dyn FnMut(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let begun = self.root.join(format!("{name}.new"));
        remove(&self.root, &begun)?;
        make_private(&begun)?;
        let made = fill(&begun).and_then(|()| {
            fs::rename(&begun, self.place(name)).map_err(system("rename", &begun))?;
            Ok(sync(&self.root)?)
        });
        if made.is_err() {
            // The first error says more than one of the removal.
            let _ = remove(&self.root, &begun);
        }
        made
    }
}

/// Closes the directory `begun`, whose files are exactly `paths`: waits until all of it is on disk,
/// and writes down how it looks. `note` is kept with it.
pub(crate) fn finish<'a>(
    begun: &Path,
    (name, note): (&str, &str),
    paths: impl Iterator<Item = &'a RawPath>,
) -> Result<(), WorkspaceError> {
    let path = begun.join("lock");
    fs::write(&path, b"").map_err(system("write", &path))?;
    // All at once: one call a file would take longer than writing them.
    File::open(begun)
        .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
        .map_err(system("sync", begun))?;
    let path = begun.join("manifest");
    Manifest::take(&begun.join(FILES), (name, note), paths)
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
