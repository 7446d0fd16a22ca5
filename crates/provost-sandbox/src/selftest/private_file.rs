//! Small files that only this user could have written, and that are complete or absent.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use provost_fs::atomic::{self, Durability};
use rustix::fs::OFlags;

/// Reads up to `largest` bytes, if `place` is a regular file of this user in a directory of this
/// user, and no other user has access to either.
pub(super) fn read(place: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let odd = |what: &str| io::Error::other(what.to_owned());
    let directory = place.parent().ok_or_else(|| odd("no directory"))?;
    let found = fs::symlink_metadata(directory)?;
    if !found.is_dir() || !is_private(&found) {
        return Err(odd("the directory is not this user's alone"));
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(place)?;
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() != 1 || found.len() > largest || !is_private(&found) {
        return Err(odd("the file is not this user's alone"));
    }
    let mut bytes = Vec::new();
    file.take(largest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether it belongs to this user, and no other user has access.
fn is_private(found: &fs::Metadata) -> bool {
    let for_others = found.mode() & 0o077;
    found.uid() == rustix::process::geteuid().as_raw() && for_others == 0
}

/// Replaces the file `place` by one with `bytes`.
pub(super) fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    atomic::replace(place, bytes, 0o600, Durability::Synced)
}
