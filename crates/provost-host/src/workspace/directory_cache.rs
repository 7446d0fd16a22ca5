//! Cache of directories that are made once, by name, and read by many.
//!
//! # Invariants
//!
//! - A directory is used only after its manifest was verified, and is never written to afterwards.
//! - It appears under its name whole and synced, or not at all. What a killed process began is
//!   removed by the next one.
//! - Every user of a directory holds a shared lock that ends with its process. Only directories
//!   without a holder are removed.

mod collect;
mod lock;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::path::RawPath;
use provost_fs::atomic;
use provost_fs::lock::{FileLock, Hold};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use super::manifest::Manifest;
use super::{WorkspaceError, make_all_private, make_private, remove, system};
pub use collect::{Collected, Wanted};
use lock::lock;

/// How many bytes the directories of one cache may occupy together.
pub const ROOM: u64 = 20 << 30;

/// How long to wait while another process makes the same directory.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often a directory may vanish between being made and being used.
const ROUNDS: usize = 3;

/// Name of the directory of files in a cache entry.
pub(crate) const FILES: &str = "tree";

/// Directories by name; a name consists of hexadecimal digits.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryCache {
    root: PathBuf,
}

/// A directory that stays unchanged while this value lives.
#[derive(Debug)]
pub(crate) struct HeldDirectory {
    pub(crate) place: PathBuf,
    pub(crate) manifest: Manifest,
    /// Whether it was made for this holder.
    pub(crate) is_new: bool,
    /// Whether it replaced an entry that had been modified.
    pub(crate) was_damaged: bool,
    _lock: FileLock,
}

impl HeldDirectory {
    pub(crate) fn files(&self) -> PathBuf {
        self.place.join(FILES)
    }
}

impl DirectoryCache {
    /// The cache in the directory `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Whether `name` was made before; it may be damaged.
    pub(crate) fn know(&self, name: &str) -> bool {
        self.place(name).join("lock").exists()
    }

    /// The directory `name`, filled by `fill` if it is missing or was modified.
    ///
    /// `fill` gets a new directory, and must end with [`finish`].
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
                // Best effort: without room this directory is usable all the same.
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

    /// Makes the next holder create `name` again; present holders keep theirs.
    pub(crate) fn discard(&self, name: &str) -> Result<(), WorkspaceError> {
        let _maker = self.lock_making(name)?;
        match self.set_aside(name)? {
            Some(aside) => self.remove_unused(&aside),
            None => Ok(()),
        }
    }

    /// The path of the entry `name`, whether it exists or not.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory `name`, if it exists and is unmodified.
    pub(crate) fn existing(&self, name: &str) -> Result<Option<HeldDirectory>, WorkspaceError> {
        let place = self.place(name);
        let path = place.join("lock");
        let failed = system("lock", &path);
        let Some(lock) = lock(&path, Hold::Shared).map_err(failed)? else {
            return Ok(None);
        };
        if !lock.is_at(&path) {
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
        rustix::fs::futimens(lock.file(), &used).map_err(system("touch", &path))?;
        Ok(Some(HeldDirectory {
            place,
            manifest,
            is_new: false,
            was_damaged: false,
            _lock: lock,
        }))
    }

    /// Takes the exclusive lock for making `name`.
    fn lock_making(&self, name: &str) -> Result<FileLock, WorkspaceError> {
        let path = self.root.join(format!("{name}.lock"));
        let attempt = || -> Result<_, WorkspaceError> {
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(system("make", &path))?;
            let locked = lock(&path, Hold::Alone).map_err(system("lock", &path))?;
            Ok(locked.filter(|lock| lock.is_at(&path)))
        };
        let locked = provost_fs::lock::wait(PATIENCE, attempt)?;
        locked.ok_or(WorkspaceError::Busy { path })
    }

    /// Makes `name`; on failure the begun directory is removed.
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

/// Completes the directory `begun`, whose files are exactly `paths`: syncs everything and writes
/// the manifest. `note` is kept in it.
pub(crate) fn finish<'a>(
    begun: &Path,
    (name, note): (&str, &str),
    paths: impl Iterator<Item = &'a RawPath>,
) -> Result<(), WorkspaceError> {
    let path = begun.join("lock");
    fs::write(&path, b"").map_err(system("write", &path))?;
    // One call for all: a call per file would take longer than writing them.
    File::open(begun)
        .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
        .map_err(system("sync", begun))?;
    let path = begun.join("manifest");
    Manifest::take(&begun.join(FILES), (name, note), paths)
        .and_then(|manifest| manifest.write(&path))
        .map_err(system("write", &path))?;
    sync(begun)
}

/// Syncs the names in a directory.
fn sync(directory: &Path) -> Result<(), WorkspaceError> {
    atomic::sync_directory(directory).map_err(system("sync", directory))
}
