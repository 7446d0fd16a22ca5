//! Stamps of files and directories: two equal stamps mean that nothing changed in between.
//!
//! The kernel updates the stamp with every change. A stamp that is old enough when it is taken
//! shows every later change, which is git's rule for its index. The change time counts, so
//! resetting the modification time hides nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A file whose times are this close to the time of reading may change later without a trace; some
/// file systems count in whole seconds.
const RACY_NANOS: i128 = 2_000_000_000;

/// Length of [`Stamp::bytes`].
pub const LENGTH: usize = 8 + 8 + 8 + 4 + 16 + 16;

/// A stamp as bytes.
pub type StampBytes = [u8; LENGTH];

/// What the kernel says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub mode: u32,
    /// Seconds and nanoseconds.
    pub modified: (i64, u64),
    /// Seconds and nanoseconds.
    pub changed: (i64, u64),
}

impl Stamp {
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// All fields, for files that remember many stamps.
    pub fn bytes(&self) -> StampBytes {
        let mut bytes = [0; LENGTH];
        let parts: [&[u8]; 8] = [
            &self.device.to_le_bytes(),
            &self.inode.to_le_bytes(),
            &self.size.to_le_bytes(),
            &self.mode.to_le_bytes(),
            &self.modified.0.to_le_bytes(),
            &self.modified.1.to_le_bytes(),
            &self.changed.0.to_le_bytes(),
            &self.changed.1.to_le_bytes(),
        ];
        for (place, byte) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        bytes
    }

    /// Whether every change after `began`, a time of [`now`], shows in the stamp.
    pub fn is_settled(&self, began: i128) -> bool {
        let nanos = |(seconds, nanos)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        nanos(self.modified).max(nanos(self.changed)) + RACY_NANOS < began
    }
}

/// The current time in nanoseconds, by the clock of file stamps.
pub fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_only_when_the_file_is_older_than_two_seconds() {
        let second = |seconds| i128::from(seconds) * 1_000_000_000_i128;
        let stamp = |modified, changed| Stamp {
            device: 1,
            inode: 2,
            size: 3,
            mode: 4,
            modified: (modified, 0),
            changed: (changed, 0),
        };
        assert!(stamp(10, 10).is_settled(second(12) + 1));
        assert!(!stamp(10, 10).is_settled(second(12)));
        assert!(!stamp(10, 11).is_settled(second(12) + 1), "changed later");
        assert!(!stamp(11, 10).is_settled(second(12) + 1), "modified later");
        assert!(!stamp(20, 20).is_settled(second(12)), "from the future");
    }

    #[test]
    fn every_field_is_in_the_bytes() {
        let one = Stamp {
            device: 1,
            inode: 2,
            size: 3,
            mode: 4,
            modified: (5, 6),
            changed: (7, 8),
        };
        let others = [
            Stamp { device: 9, ..one },
            Stamp { inode: 9, ..one },
            Stamp { size: 9, ..one },
            Stamp { mode: 9, ..one },
            Stamp {
                modified: (9, 6),
                ..one
            },
            Stamp {
                modified: (5, 9),
                ..one
            },
            Stamp {
                changed: (9, 8),
                ..one
            },
            Stamp {
                changed: (7, 9),
                ..one
            },
        ];
        for other in others {
            assert_ne!(one.bytes(), other.bytes(), "{other:?}");
        }
    }
}
