//! Detects whether a run, a plan or a chain changed since it was judged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use provost_core::bundle::layout::DRIVER_LOCK;

/// The names and sizes of the files in a directory. Ledgers only grow and files only appear, so
/// every continuation changes a length or a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark(BTreeMap<OsString, u64>);

impl Mark {
    /// The mark of `directory` now; its driver is not a part of it.
    pub(super) fn of(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| entry.file_name() != DRIVER_LOCK);
        let length = |entry: &fs::DirEntry| entry.metadata().map_or(0, |data| data.len());
        Self(
            entries
                .map(|entry| (entry.file_name(), length(&entry)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_or_a_file_more_is_another_mark_and_a_driver_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("ledger", "one\n");
        let mark = Mark::of(directory.path());
        write(DRIVER_LOCK, "a driver");
        assert_eq!(Mark::of(directory.path()), mark);
        write("ledger", "one\ntwo\n");
        assert_ne!(Mark::of(directory.path()), mark);
        write("ledger", "one\n");
        assert_eq!(Mark::of(directory.path()), mark);
        write("seal", "");
        assert_ne!(Mark::of(directory.path()), mark);
    }
}
