//! Stamps of files and directories: two equal stamps mean that nothing changed in between.
//!
//! The kernel updates the stamp with every change. A stamp that is old enough when it is taken
//! shows every later change. The change time counts, so resetting the modification time hides
//! nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// A file whose times are this close to the time of reading may change later without a trace; some
/// file systems count in whole seconds.
const RACY_NANOS: i128 = 2_000_000_000;

/// Bytes of a stamp.
pub(super) const LENGTH: usize = 8 + 8 + 8 + 4 + 16 + 16;

/// What the kernel says about a file, as bytes.
pub(super) type Stamp = [u8; LENGTH];

pub(super) fn of(stat: &Stat) -> Stamp {
    let mut bytes = [0; LENGTH];
    let parts: [&[u8]; 8] = [
        &stat.st_dev.to_le_bytes(),
        &stat.st_ino.to_le_bytes(),
        &stat.st_size.to_le_bytes(),
        &stat.st_mode.to_le_bytes(),
        &stat.st_mtime.to_le_bytes(),
        &stat.st_mtime_nsec.to_le_bytes(),
        &stat.st_ctime.to_le_bytes(),
        &stat.st_ctime_nsec.to_le_bytes(),
    ];
    for (place, byte) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *place = *byte;
    }
    bytes
}

/// Whether every change after `began` shows in the stamp of the file that `stat` describes.
pub(super) fn is_settled(stat: &Stat, began: i128) -> bool {
    let nanos = |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let modified = nanos(stat.st_mtime, stat.st_mtime_nsec);
    let changed = nanos(stat.st_ctime, stat.st_ctime_nsec);
    modified.max(changed) + RACY_NANOS < began
}

/// The current time, by the clock of file stamps.
pub(super) fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}
