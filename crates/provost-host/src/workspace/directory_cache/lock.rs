//! File locks that end with the process.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Locks the file `path`; `None` if it does not exist or another process holds the lock.
pub(super) fn lock(path: &Path, operation: FlockOperation) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        // It does not exist, or is not a lock of ours and will be set aside.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => return Ok(None),
        file => file?,
    };
    match rustix::fs::flock(&file, operation) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lock on a directory that has no holder.
pub(super) fn unused(place: &Path) -> Option<OwnedFd> {
    lock(
        &place.join("lock"),
        FlockOperation::NonBlockingLockExclusive,
    )
    .ok()?
}

pub(super) fn is_still(lock: &OwnedFd, path: &Path) -> bool {
    let (Ok(one), Ok(other)) = (
        rustix::fs::fstat(lock),
        rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW),
    ) else {
        return false;
    };
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
