//! Reads the marks that an overlay leaves in its upper layer.
//!
//! The kernel hides these marks from the payload. What a payload sets by the same names is stored
//! under longer ones, and it cannot make a device. So only the kernel can have written these marks.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// A directory that hides the one below it.
const OPAQUE: &str = "user.overlay.opaque";
/// A file that represents a removal.
const WHITEOUT: &str = "user.overlay.whiteout";
/// A directory whose content is elsewhere; our mounts make none.
const REDIRECT: &str = "user.overlay.redirect";

/// How a directory of an upper layer relates to the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Both are merged.
    Merged,
    /// Only the upper one is visible.
    Opaque,
}

/// Whether this is a device that represents a removal.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Whether this empty file represents a removal.
pub(super) fn is_marked_whiteout(file: impl AsFd) -> rustix::io::Result<bool> {
    Ok(attribute(file, WHITEOUT)?.is_some())
}

/// How the directory relates to the one below it; an unknown mark is an error.
pub(super) fn cover(directory: impl AsFd) -> rustix::io::Result<Cover> {
    if attribute(&directory, REDIRECT)?.is_some() {
        return Err(Errno::NOTSUP);
    }
    match attribute(&directory, OPAQUE)? {
        // `x` says that removals are marked by attributes; it hides nothing.
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
        // A file system without such attributes has no marks either.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}
