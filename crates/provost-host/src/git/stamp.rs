//! Says whether a file or directory is the one that was looked at before.
//!
//! The kernel stamps whatever changes. A stamp that is old enough when it is taken shows every later
//! change; the change time counts, so setting the modification time back gains nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Something whose times are this near to the looking may change afterwards without a trace; some
/// file systems count in whole seconds.
const RACY_NANOS: i128 = 2_000_000_000;

/// How long a stamp is.
pub(super) const LENGTH: usize = 8 + 8 + 8 + 4 + 16 + 16;

/// What the kernel says of something, as bytes.
pub(super) type Stamp = [u8; LENGTH];

/// The stamp of what `stat` is about.
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

/// Whether every change after `began` shows in the stamp of what `stat` is about.
pub(super) fn is_settled(stat: &Stat, began: i128) -> bool {
    let nanos = |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let modified = nanos(stat.st_mtime, stat.st_mtime_nsec);
    let changed = nanos(stat.st_ctime, stat.st_ctime_nsec);
    modified.max(changed) + RACY_NANOS < began
}

/// Now, by the clock that files are stamped with.
pub(super) fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}
