//! Locks of cached directories.

use std::io;
use std::path::Path;

use provost_fs::lock::{FileLock, Hold};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Locks the file `path`; `None` if it does not exist or another process holds the lock.
pub(super) fn lock(path: &Path, hold: Hold) -> io::Result<Option<FileLock>> {
    let locked = FileLock::try_at(path, OFlags::RDWR, hold);
    match locked.as_ref().map_err(Errno::from_io_error) {
        // It does not exist, or is not a lock of ours and will be set aside.
        Err(Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR)) => Ok(None),
        _ => locked,
    }
}

/// The lock on a directory that has no holder.
pub(super) fn unused(place: &Path) -> Option<FileLock> {
    lock(&place.join("lock"), Hold::Alone).ok()?
}
