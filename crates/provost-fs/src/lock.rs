//! File locks that end with their process.
//!
//! The lock is a `flock`, which the kernel releases when the process dies, however it dies. Files
//! are opened so that they close on exec, so no child keeps a lock.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// How a lock is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Alone,
    Shared,
}

/// A lock on an open file or directory; released when dropped.
#[derive(Debug)]
pub struct FileLock<F: AsFd = File>(F);

impl<F: AsFd> FileLock<F> {
    /// Locks `file`; `None` if another process holds the lock.
    pub fn try_on(file: F, hold: Hold) -> io::Result<Option<Self>> {
        let operation = match hold {
            Hold::Alone => FlockOperation::NonBlockingLockExclusive,
            Hold::Shared => FlockOperation::NonBlockingLockShared,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub fn file(&self) -> &F {
        &self.0
    }

    /// Whether `path` leads to the locked file. A file that was removed before it was locked is
    /// another one, and then nothing is held.
    pub fn is_at(&self, path: &Path) -> bool {
        let (Ok(one), Ok(other)) = (rustix::fs::fstat(&self.0), rustix::fs::lstat(path)) else {
            return false;
        };
        (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
    }
}

impl FileLock {
    /// Locks the existing file or directory `path` with these `flags`; no link is followed.
    pub fn try_at(path: &Path, flags: OFlags, hold: Hold) -> io::Result<Option<Self>> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        Self::try_on(File::from(rustix::fs::open(path, flags, mode)?), hold)
    }
}

impl<F: AsFd> Drop for FileLock<F> {
    fn drop(&mut self) {
        // Explicitly, because a child that has not reached exec may still have a copy. Should this
        // fail, closing the file releases the lock as well.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Polls `attempt` until it gives a value, at most for `patience`.
///
/// Polling instead of waiting in the kernel limits the wait: a holder that is stopped must not stop
/// every other process.
pub fn wait<T, E>(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        let found = attempt()?;
        if found.is_some() || begin.elapsed() >= patience {
            return Ok(found);
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_alone_or_several_share() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lock");
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = |hold| FileLock::try_at(&path, flags, hold).unwrap();
        let alone = lock(Hold::Alone).unwrap();
        assert!(lock(Hold::Alone).is_none() && lock(Hold::Shared).is_none());
        drop(alone);
        let (one, two) = (lock(Hold::Shared), lock(Hold::Shared));
        assert!(one.is_some() && two.is_some() && lock(Hold::Alone).is_none());
    }

    #[test]
    fn a_lock_on_a_removed_file_is_not_at_its_path() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lock");
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = FileLock::try_at(&path, flags, Hold::Alone)
            .unwrap()
            .unwrap();
        assert!(lock.is_at(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!lock.is_at(&path));
        std::fs::write(&path, "").unwrap();
        assert!(!lock.is_at(&path));
    }

    #[test]
    fn waiting_has_a_limit() {
        let mut asked = 0;
        let patience = Duration::from_millis(20);
        let none = wait(patience, || {
            asked += 1;
            Ok::<Option<()>, io::Error>(None)
        });
        assert!(none.unwrap().is_none() && asked > 1);
        let third = wait(patience, || {
            asked += 1;
            Ok::<_, io::Error>((asked > 3).then_some(asked))
        });
        assert!(third.unwrap().is_some());
    }
}
