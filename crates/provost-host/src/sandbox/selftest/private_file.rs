//! Small files that only their writer could have written, and that are there whole or not at all.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use provost_core::object::hex;
use rustix::fs::OFlags;

/// Reads up to `largest` bytes, if `place` is a plain file of this user in a directory of this user,
/// both closed to everybody else.
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

/// Whether it belongs to this user, and nobody else can touch it.
fn is_private(found: &fs::Metadata) -> bool {
    let for_others = found.mode() & 0o077;
    found.uid() == rustix::process::geteuid().as_raw() && for_others == 0
}

/// Puts `bytes` into the file `place`.
pub(super) fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    // Of this writer alone: another thread, or another process of the same number, has its own.
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    let beside = place.with_extension(format!("{}.new", hex(&number)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let kept = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, place));
    if kept.is_err() {
        let _ = fs::remove_file(&beside);
    }
    kept
}
