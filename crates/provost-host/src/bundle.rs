//! Reads the directory of a bundle from an untrusted source.
//!
//! # Invariants
//!
//! - Only regular files are read, none through a symbolic link, and nothing outside the directory.
//! - Reading never blocks: a fifo is not opened for its bytes.
//! - Count, depth and size are limited; an entry beyond a limit is reported with the reason.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use provost_core::bundle::layout::{LARGEST_FILE, MOST_BYTES};
use provost_core::path::RawPath;
use provost_engine::bundle::verify::Files;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use provost_fs::beneath::Beneath;

/// The most entries that are listed.
pub const MOST_ENTRIES: usize = 20_000;

/// The deepest directory that is listed.
pub const DEEPEST: usize = 32;

#[derive(Debug, thiserror::Error)]
#[error("the directory `{}` cannot be read", path.display())]
pub struct Unreadable {
    path: PathBuf,
    source: std::io::Error,
}

#[derive(Debug)]
pub struct Directory {
    root: Beneath,
    /// Every entry that is no directory, and why it cannot be read if that is known.
    entries: BTreeMap<RawPath, Option<String>>,
    room: Cell<u64>,
}

impl Directory {
    /// Lists every entry below `path`.
    pub fn open(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |source| Unreadable {
            path: path.to_owned(),
            source,
        };
        // The caller may name the directory by a link; its entries may not be links.
        let real = path.canonicalize().map_err(unreadable)?;
        let root = Beneath::new(&real).map_err(|error| unreadable(error.into()))?;
        let top = root
            .directory(b"")
            .map_err(|error| unreadable(error.into()))?;
        let mut directory = Self {
            root,
            entries: BTreeMap::new(),
            room: Cell::new(MOST_BYTES),
        };
        directory.walk(top);
        Ok(directory)
    }

    fn walk(&mut self, top: OwnedFd) {
        let mut seen = 0;
        let mut open = vec![(RawPath::new(""), 0, Some(top))];
        while let Some((path, depth, handle)) = open.pop() {
            let handle = handle.map_or_else(|| self.root.directory(path.as_bytes()), Ok);
            let children = handle.and_then(|handle| list(&handle, &path, MOST_ENTRIES - seen));
            let Ok(children) = children else {
                self.note(path, "is a directory that cannot be read");
                continue;
            };
            for (child, kind) in children {
                if seen == MOST_ENTRIES {
                    self.note(
                        child,
                        "is beyond the largest number of files that is checked",
                    );
                    return;
                }
                seen += 1;
                match kind {
                    FileType::RegularFile => {
                        self.entries.insert(child, None);
                    }
                    FileType::Directory if depth == DEEPEST => {
                        self.note(child, "is a directory deeper than are looked into");
                    }
                    FileType::Directory => open.push((child, depth + 1, None)),
                    FileType::Symlink => self.note(child, "is a symbolic link"),
                    _ => self.note(child, "is no regular file"),
                }
            }
        }
    }

    fn note(&mut self, path: RawPath, problem: &str) {
        let path = if path.as_bytes().is_empty() {
            RawPath::new(".")
        } else {
            path
        };
        self.entries.insert(path, Some(problem.to_owned()));
    }
}

/// The entries of one directory with their kinds, at most one more than `most`.
fn list(
    directory: &OwnedFd,
    path: &RawPath,
    most: usize,
) -> rustix::io::Result<Vec<(RawPath, FileType)>> {
    let mut children = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        children.push((path.join(name.to_bytes()), kind));
        if children.len() > most {
            break;
        }
    }
    Ok(children)
}

impl Files for Directory {
    fn names(&self) -> Vec<RawPath> {
        self.entries.keys().cloned().collect()
    }

    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String> {
        match self.entries.get(name) {
            None => return Err("is missing".into()),
            Some(Some(problem)) => return Err(problem.clone()),
            Some(None) => {}
        }
        let cannot = |error: std::io::Error| format!("cannot be read: {error}");
        let file = self
            .root
            .open(name.as_bytes(), OFlags::RDONLY, Mode::empty())
            .map_err(|error| cannot(error.into()))?;
        let file = File::from(file);
        // Its kind may have changed since it was listed.
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err("is no regular file".into());
        }
        let most = LARGEST_FILE.min(self.room.get());
        let mut bytes = Vec::new();
        file.take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(cannot)?;
        let size = bytes.len() as u64;
        if size > LARGEST_FILE {
            return Err(format!(
                "is larger than the {LARGEST_FILE} bytes that are read"
            ));
        }
        if size > most {
            return Err(format!(
                "is beyond the {MOST_BYTES} bytes that are read in all"
            ));
        }
        self.room.set(self.room.get() - size);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn problem(directory: &Directory, name: &str) -> String {
        directory.read(&RawPath::new(name)).unwrap_err()
    }

    #[test]
    fn only_regular_files_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::create_dir_all(root.join("a/empty")).unwrap();
        fs::write(root.join("a/file"), b"bytes").unwrap();
        symlink("a/file", root.join("link")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), fifo, 0o600.into(), 0).unwrap();
        let strange = std::ffi::OsStr::from_bytes(b"\xff");
        fs::write(root.join(strange), b"").unwrap();
        let directory = Directory::open(root).unwrap();
        let names: Vec<_> = directory.names().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a/file", "etc", "fifo", "link", "\\xff"]);
        assert_eq!(directory.read(&RawPath::new("a/file")).unwrap(), b"bytes");
        assert_eq!(problem(&directory, "link"), "is a symbolic link");
        assert_eq!(problem(&directory, "etc"), "is a symbolic link");
        assert_eq!(problem(&directory, "fifo"), "is no regular file");
        assert_eq!(problem(&directory, "etc/passwd"), "is missing");
        assert!(Directory::open(&root.join("a/file")).is_err());
        assert!(Directory::open(&root.join("none")).is_err());
    }

    #[test]
    fn what_changes_after_it_was_listed_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("bundle");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/file"), b"bytes").unwrap();
        fs::create_dir(scratch.path().join("b")).unwrap();
        fs::write(scratch.path().join("b/file"), b"secret").unwrap();
        let directory = Directory::open(&root).unwrap();
        fs::remove_dir_all(root.join("a")).unwrap();
        symlink("../b", root.join("a")).unwrap();
        assert!(problem(&directory, "a/file").starts_with("cannot be read"));
    }

    #[test]
    fn limits_are_findings() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let large = File::create(root.join("large")).unwrap();
        large.set_len(LARGEST_FILE + 1).unwrap();
        let deep = vec!["d"; DEEPEST + 1].join("/");
        fs::create_dir_all(root.join(&deep)).unwrap();
        fs::write(root.join(&deep).join("file"), b"").unwrap();
        let directory = Directory::open(root).unwrap();
        assert!(problem(&directory, "large").contains("larger"));
        assert!(problem(&directory, &deep).contains("deeper"));
        fs::remove_dir_all(root.join("d")).unwrap();
        for number in 0..MOST_ENTRIES {
            File::create(root.join(number.to_string())).unwrap();
        }
        let directory = Directory::open(root).unwrap();
        let beyond = directory.entries.values().flatten();
        assert_eq!(
            beyond.filter(|problem| problem.contains("beyond")).count(),
            1
        );
        directory.room.set(3);
        fs::write(root.join("1"), b"four").unwrap();
        fs::write(root.join("2"), b"two").unwrap();
        assert_eq!(directory.read(&RawPath::new("2")).unwrap(), b"two");
        assert!(problem(&directory, "1").contains("in all"));
    }
}
