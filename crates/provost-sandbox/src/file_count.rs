//! Counts the files of directories while other processes write there.
//!
//! # Invariants
//!
//! - No link is followed and nothing is changed; a file that appears or vanishes is no failure.
//! - The result says whether the count missed something.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

/// How deep directories are entered: as deep as a capture does, and no deeper than the number of
/// descriptors permits.
const DEEPEST: usize = 128;
/// The block of `st_blocks`.
const BLOCK: u64 = 512;
/// The magic number of tmpfs in `statfs`.
const TMPFS: u64 = 0x0102_1994;

/// The count of some directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileCount {
    /// Files and directories.
    pub(crate) count: u64,
    /// What they take on disk; a file with several names counts once.
    pub(crate) bytes: u64,
    /// Differs if a file was made, removed or written.
    pub(crate) mark: u64,
    /// Whether a directory was too deep or could not be opened.
    pub(crate) unseen: bool,
    /// Files with several names.
    linked: BTreeSet<(u64, u64)>,
}

/// Counts the files below `roots`, up to one more than `most`; `None` once `is_over` returns true.
pub(crate) fn count(roots: &[PathBuf], most: u64, is_over: &dyn Fn() -> bool) -> Option<FileCount> {
    let mut files = FileCount::default();
    for root in roots {
        let Ok(stat) = rustix::fs::statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        files.add(&stat);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let walk = Walk { most, is_over };
            walk.enter(CWD, root.as_os_str().as_encoded_bytes(), 0, &mut files)?;
        }
    }
    Some(files)
}

struct Walk<'a> {
    most: u64,
    is_over: &'a dyn Fn() -> bool,
}

impl Walk<'_> {
    fn enter(&self, at: impl AsFd, name: &[u8], depth: usize, files: &mut FileCount) -> Option<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = if depth < DEEPEST {
            rustix::fs::openat(at, name, flags, Mode::empty()).ok()
        } else {
            None
        };
        match opened.map(|directory| (Dir::read_from(&directory), directory)) {
            Some((Ok(entries), directory)) => self.list(entries, &directory, depth, files),
            Some((Err(_), _)) | None => {
                files.unseen = true;
                Some(())
            }
        }
    }

    fn list(
        &self,
        entries: Dir,
        directory: &OwnedFd,
        depth: usize,
        files: &mut FileCount,
    ) -> Option<()> {
        for entry in entries {
            if (self.is_over)() {
                return None;
            }
            let Ok(entry) = entry else {
                files.unseen = true;
                break;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            files.add(&stat);
            if files.count > self.most {
                break;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.enter(directory, name.to_bytes(), depth + 1, files)?;
            }
        }
        Some(())
    }
}

impl FileCount {
    fn add(&mut self, stat: &Stat) {
        self.count += 1;
        // The order of a directory listing is arbitrary, so the marks are added up.
        let parts = [
            stat.st_ino,
            u64::from_ne_bytes(stat.st_ctime.to_ne_bytes()),
            stat.st_ctime_nsec,
            u64::from_ne_bytes(stat.st_size.to_ne_bytes()),
        ];
        let mark = parts.into_iter().fold(1, |mark, part| mix(mark ^ part));
        self.mark = self.mark.wrapping_add(mark);
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory || stat.st_nlink == 1 || self.linked.insert((stat.st_dev, stat.st_ino)) {
            let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
            self.bytes = self.bytes.saturating_add(blocks.saturating_mul(BLOCK));
        }
    }
}

/// Scatters the bits of a number.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number ^ (number >> 29)
}

/// Bytes on disk of deleted files that the processes `pids` hold open.
///
/// Files in memory are limited elsewhere, unless `roots` are in memory themselves.
pub(crate) fn nameless(pids: &[i32], roots: &[PathBuf]) -> u64 {
    let device = |root: &PathBuf| fs::symlink_metadata(root).ok().map(|facts| facts.dev());
    let devices: BTreeSet<u64> = roots.iter().filter_map(device).collect();
    let mut seen = BTreeSet::new();
    let mut bytes = 0_u64;
    for pid in pids {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for entry in open.filter_map(Result::ok) {
            let Ok(facts) = fs::metadata(entry.path()) else {
                continue;
            };
            let is_on_disk = || {
                let kind = rustix::fs::statfs(entry.path()).map(|found| found.f_type);
                kind.is_ok_and(|kind| u64::try_from(kind).unwrap_or(0) != TMPFS)
            };
            if facts.is_file()
                && facts.nlink() == 0
                && (devices.contains(&facts.dev()) || is_on_disk())
                && seen.insert((facts.dev(), facts.ino()))
            {
                bytes = bytes.saturating_add(facts.blocks().saturating_mul(BLOCK));
            }
        }
    }
    bytes
}

/// Free bytes on the file system of `root`.
pub(crate) fn room(root: &PathBuf) -> Option<u64> {
    let found = rustix::fs::statvfs(root).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn counted(root: &PathBuf) -> FileCount {
        count(std::slice::from_ref(root), u64::MAX, &|| false).unwrap()
    }

    #[test]
    fn every_change_of_a_file_differs() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let place = |name: &str| root.join(name);
        let changes: [(&str, &dyn Fn()); 7] = [
            ("made", &|| fs::write(place("a"), "one").unwrap()),
            ("written", &|| fs::write(place("a"), "two").unwrap()),
            ("directory", &|| fs::create_dir(place("d")).unwrap()),
            ("below", &|| fs::write(place("d/b"), "").unwrap()),
            ("renamed", &|| fs::rename(place("a"), place("c")).unwrap()),
            ("linked", &|| fs::hard_link(place("c"), place("e")).unwrap()),
            ("removed", &|| fs::remove_file(place("d/b")).unwrap()),
        ];
        let mut before = counted(&root);
        for (name, change) in changes {
            // The kernel's clock for files has steps of some milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(12));
            change();
            let after = counted(&root);
            assert_ne!(after.mark, before.mark, "{name}");
            before = after;
        }
        assert_eq!(before.count, 4);
        assert_eq!(counted(&root), before);
    }

    #[test]
    fn what_is_on_disk_counts_once_and_holes_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let empty = counted(&root).bytes;
        fs::write(root.join("a"), vec![7; 1 << 20]).unwrap();
        fs::hard_link(root.join("a"), root.join("b")).unwrap();
        fs::File::create(root.join("hole"))
            .and_then(|file| file.set_len(1 << 30))
            .unwrap();
        let grown = counted(&root).bytes - empty;
        assert!((1 << 20..3 << 20).contains(&grown), "{grown}");
    }

    #[test]
    fn a_count_ends_beyond_its_limit_and_when_it_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        for number in 0..20 {
            fs::write(root.join(number.to_string()), "").unwrap();
        }
        let roots = std::slice::from_ref(&root);
        assert_eq!(count(roots, 5, &|| false).unwrap().count, 6);
        assert_eq!(count(roots, 5, &|| true), None);
        let gone = [root.join("gone")];
        assert_eq!(count(&gone, 5, &|| false), Some(FileCount::default()));
    }

    #[test]
    fn what_is_too_deep_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        fs::create_dir_all(root.join("d/".repeat(DEEPEST - 1))).unwrap();
        assert!(!counted(&root).unseen);
        fs::create_dir_all(root.join("d/".repeat(DEEPEST))).unwrap();
        assert!(counted(&root).unseen);
    }

    #[test]
    fn a_file_without_a_name_counts_while_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let own = [i32::try_from(std::process::id()).unwrap()];
        let mut file = fs::File::create(root.join("a")).unwrap();
        file.write_all(&vec![7; 8 << 20]).unwrap();
        let roots = [root.clone()];
        let named = nameless(&own, &roots);
        fs::remove_file(root.join("a")).unwrap();
        let grown = nameless(&own, &roots).saturating_sub(named);
        assert!(grown >= 8 << 20, "{grown}");
    }
}
