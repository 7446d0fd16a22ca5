//! Reads the marks that an overlay leaves in its upper layer.
//!
//! The kernel hides these marks from the payload: what a payload sets by the same names is stored
//! under longer ones, and it cannot make a device. So what is read here is the kernel's own word.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// A directory that hides the one below it.
const OPAQUE: &str = "user.overlay.opaque";
/// A file that stands for a removal.
const WHITEOUT: &str = "user.overlay.whiteout";
/// A directory whose content is elsewhere; our mounts make none.
const REDIRECT: &str = "user.overlay.redirect";

/// What a directory of an upper layer is to the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Both are seen as one.
    Merged,
    /// Only the upper one is seen.
    Opaque,
}

/// Whether this is a device that stands for a removal.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Whether this file, which is empty, stands for a removal.
pub(super) fn is_marked_whiteout(file: impl AsFd) -> rustix::io::Result<bool> {
    Ok(attribute(file, WHITEOUT)?.is_some())
}

/// What the directory is to the one below it; a mark that we do not understand is an error.
pub(super) fn cover(directory: impl AsFd) -> rustix::io::Result<Cover> {
    if attribute(&directory, REDIRECT)?.is_some() {
        return Err(Errno::NOTSUP);
    }
    match attribute(&directory, OPAQUE)? {
        // `x` says that removals are marked by attributes, and hides nothing.
        None | Some(b'x') => Ok(Cover::Merged),
        Some(b'y') => Ok(Cover::Opaque),
        Some(_) => Err(Errno::NOTSUP),
    }
}

/// The first byte of an attribute, zero if it is empty.
fn attribute(file: impl AsFd, name: &str) -> rustix::io::Result<Option<u8>> {
    let mut value = [0; 8];
    match rustix::fs::fgetxattr(file, name, &mut value) {
        Ok(_) | Err(Errno::RANGE) => Ok(Some(value[0])),
        // A file system without such attributes holds no marks either.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}
