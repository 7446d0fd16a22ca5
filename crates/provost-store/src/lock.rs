//! Locks: one process drives a run.
//!
//! The lock ([`provost_fs::lock`]) is on a file that is never removed, held for the life of the
//! driver. No child inherits it, so a sandbox that outlives its driver does not keep the run busy.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use provost_core::json;
use provost_core::lease::Owner;
use provost_fs::lock::{self, FileLock, Hold};
use rustix::fs::OFlags;

use crate::error::StoreError;
use crate::file;

/// How often a lock file may be replaced while it is taken, before that is an error.
const REPLACED_AT_MOST: u32 = 8;

/// The largest owner that is read back, in bytes.
const LARGEST_OWNER: u64 = 64 * 1024;

/// The right to drive a run, or to use a board; released when dropped.
#[derive(Debug)]
pub struct DriverLock(FileLock);

impl DriverLock {
    /// Takes the lock at `path` for `owner`; `None` if another process has it.
    pub fn try_acquire(path: &Path, owner: &Owner) -> Result<Option<Self>, StoreError> {
        for _ in 0..REPLACED_AT_MOST {
            let (file, _) = file::open(path, OFlags::RDWR | OFlags::CREATE)?;
            let Some(lock) = try_on(path, file)? else {
                return Ok(None);
            };
            if lock.is_at(path) {
                name_owner(lock.file(), owner).map_err(StoreError::io("write", path))?;
                return Ok(Some(Self(lock)));
            }
        }
        Err(StoreError::Moved {
            path: path.to_owned(),
            what: "it was removed again and again",
        })
    }

    /// Takes the lock at `path` for `owner`, and waits for it at most `patience`.
    pub fn acquire(path: &Path, owner: &Owner, patience: Duration) -> Result<Self, StoreError> {
        wait(path, patience, || Self::try_acquire(path, owner))
    }

    /// The process that has the lock at `path`, or died with it, if that can be read.
    ///
    /// For display only: whether the lock is held is known to the kernel alone.
    pub fn last_owner(path: &Path) -> Option<Owner> {
        let (file, _) = file::open(path, OFlags::RDONLY).ok()?;
        let mut bytes = Vec::new();
        file.take(LARGEST_OWNER).read_to_end(&mut bytes).ok()?;
        json::parse_as(&bytes).ok()
    }
}

impl Drop for DriverLock {
    fn drop(&mut self) {
        // The run has no driver from here on, and no seal covers this file: the owner is erased.
        let _ = self.0.file().set_len(0);
    }
}

fn name_owner(mut file: &File, owner: &Owner) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(owner)?;
    line.push(b'\n');
    file.set_len(0)?;
    file.write_all(&line)
}

/// A lock that is held for moments, by one process after the other.
#[derive(Debug)]
pub(crate) struct ShortLock {
    file: File,
    path: std::path::PathBuf,
    patience: Duration,
}

impl ShortLock {
    /// Opens the lock file at `path`; a caller waits for its turn at most `patience`.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let file = match file::open(path, OFlags::RDWR | OFlags::CREATE) {
            // A lock needs no right to write.
            Err(StoreError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem =>
            {
                file::open(path, OFlags::RDONLY)
            }
            file => file,
        };
        Ok(Self {
            file: file?.0,
            path: path.to_owned(),
            patience,
        })
    }

    /// Waits for a turn, which ends when the returned lock is dropped.
    pub(crate) fn enter(&self) -> Result<FileLock<&File>, StoreError> {
        wait(&self.path, self.patience, || try_on(&self.path, &self.file))
    }
}

/// Waits for the lock on the directory `path`, which ends when the returned lock is dropped.
pub(crate) fn directory(path: &Path, patience: Duration) -> Result<FileLock, StoreError> {
    wait(path, patience, || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        FileLock::try_at(path, flags, Hold::Alone).map_err(StoreError::io("lock", path))
    })
}

fn try_on<F: AsFd>(path: &Path, file: F) -> Result<Option<FileLock<F>>, StoreError> {
    FileLock::try_on(file, Hold::Alone).map_err(StoreError::io("lock", path))
}

fn wait<T>(
    path: &Path,
    patience: Duration,
    attempt: impl FnMut() -> Result<Option<T>, StoreError>,
) -> Result<T, StoreError> {
    lock::wait(patience, attempt)?.ok_or_else(|| StoreError::Busy {
        path: path.to_owned(),
        seconds: patience.as_secs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(pid: u32) -> Owner {
        Owner {
            host: "host".into(),
            boot: "boot".into(),
            pid_namespace: "pid:[1]".into(),
            pid,
            started: 1,
        }
    }

    #[test]
    fn a_run_has_one_driver_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("driver.lock");
        let first = DriverLock::try_acquire(&path, &owner(1)).unwrap();
        assert!(first.is_some());
        assert!(DriverLock::try_acquire(&path, &owner(2)).unwrap().is_none());
        assert_eq!(DriverLock::last_owner(&path), Some(owner(1)));
        drop(first);
        assert_eq!(DriverLock::last_owner(&path), None);
        let third = DriverLock::try_acquire(&path, &owner(3)).unwrap();
        assert!(third.is_some());
        assert_eq!(DriverLock::last_owner(&path), Some(owner(3)));
    }

    #[test]
    fn who_waits_gets_the_lock_when_it_is_free_or_gives_up() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("board.lock");
        let patience = Duration::from_millis(50);
        let first = DriverLock::acquire(&path, &owner(1), patience).unwrap();
        let late = DriverLock::acquire(&path, &owner(2), patience);
        assert!(matches!(late, Err(StoreError::Busy { .. })));
        drop(first);
        assert!(DriverLock::acquire(&path, &owner(2), patience).is_ok());
    }

    #[test]
    fn no_child_inherits_the_lock() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("driver.lock");
        let lock = DriverLock::try_acquire(&path, &owner(1)).unwrap().unwrap();
        let flags = rustix::io::fcntl_getfd(lock.0.file()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_lock_on_a_removed_file_does_not_count() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("driver.lock");
        let _old = DriverLock::try_acquire(&path, &owner(1)).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let _new = DriverLock::try_acquire(&path, &owner(2)).unwrap().unwrap();
        assert_eq!(DriverLock::last_owner(&path), Some(owner(2)));
    }

    #[test]
    fn a_lock_that_cannot_be_had_is_an_error_or_a_no_and_never_a_lock() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(DriverLock::try_acquire(scratch.path(), &owner(1)).is_err());
        let nowhere = scratch.path().join("nowhere/driver.lock");
        assert!(DriverLock::try_acquire(&nowhere, &owner(1)).is_err());
        assert_eq!(DriverLock::last_owner(&nowhere), None);
    }

    #[test]
    fn waiting_for_a_turn_has_a_limit() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("registry.lock");
        let patience = Duration::from_millis(50);
        let one = ShortLock::open(&path, patience).unwrap();
        let two = ShortLock::open(&path, patience).unwrap();
        let turn = one.enter().unwrap();
        assert!(matches!(two.enter(), Err(StoreError::Busy { .. })));
        drop(turn);
        assert!(two.enter().is_ok());
    }
}
