//! Hashes every file in a directory.
//!
//! A file is opened, stat'ed and read once, on all cores. With a [`Cache`], a file is not opened if
//! its inode, size, times and mode are unchanged since it was read. Its times must also be old
//! enough that every later change shows. The change time counts, so resetting the modification time
//! hides nothing.
//!
//! # Invariants
//!
//! - Symbolic links are never followed: the digest of a link is that of its target path.
//! - What is neither file, link nor directory counts by its kind and is never opened.
//! - Anything that cannot be read or named stops the inventory; nothing is left out silently.
//! - `.git` and `.provost` at the top are not part of the work and are skipped.

mod cache;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use provost_core::path::{PathError, RawPath, RepoPath};
use provost_fs::stamp::{self, Stamp};
use rayon::prelude::*;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

pub use cache::Cache;
use cache::Remembered;

/// The deepest directory that is read.
pub const DEEPEST: usize = 128;

pub const MOST: usize = 2_000_000;

/// The most bytes that are read; a sparse file may claim any size.
pub const MOST_BYTES: u64 = 64 << 30;

/// How many bytes a file may grow while it is read.
const GROWTH: u64 = 64 << 20;

/// Bytes read at a time; most files are smaller.
const BUFFER: usize = 128 * 1024;

/// Bytes of the buffer for directory entries; a name has at most 255 bytes.
const LISTING: usize = 32 * 1024;

/// A few small files are not worth a second thread.
const TOGETHER: usize = 64;

/// Directories that git and Provost use themselves; not part of the work.
const SKIPPED: [&[u8]; 2] = [b".git", b".provost"];

pub type Sha = [u8; 32];

#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: RawPath, source: io::Error },
    /// A name that an inventory cannot represent.
    #[error("`{path}` {why}, so it cannot be listed")]
    Name { path: RawPath, why: PathError },
    /// More than [`DEEPEST`] nested directories.
    #[error("`{0}` lies deeper than {DEEPEST} levels")]
    TooDeep(RawPath),
    /// More than [`MOST_BYTES`] in all files.
    #[error("`{0}` is beyond the {MOST_BYTES} bytes that are read in all")]
    TooLarge(RawPath),
    #[error("there are more than {MOST} files")]
    TooMany,
    /// The directory itself cannot be opened.
    #[error("`{}` cannot be opened", path.display())]
    Open { path: PathBuf, source: io::Error },
}

/// Every file of a directory with the digest of its content.
pub type Files = BTreeMap<RepoPath, Sha>;

/// Every file of a directory, at one time.
#[derive(Debug)]
pub struct Inventory {
    /// Sorted by path.
    rows: Vec<Row>,
    /// When the first file was stat'ed.
    began: i128,
    /// Whether the cache has exactly these files, all unchanged.
    known: bool,
}

impl Inventory {
    /// The files, sorted by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&RepoPath, &Sha)> {
        self.rows.iter().map(|row| (&row.path, &row.sha))
    }

    pub fn into_files(self) -> Files {
        let files = self.rows.into_iter();
        files.map(|row| (row.path, row.sha)).collect()
    }
}

/// Takes the inventory of `directory`. A cache saves reading unchanged files; [`Cache::keep`] adds
/// the others to it.
pub fn take(directory: &Path, cache: Option<&Cache>) -> Result<Inventory, InventoryError> {
    let open = |source: io::Error| InventoryError::Open {
        path: directory.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(|error| open(error.into()))?;
    let began = stamp::now();
    let walk = Walk {
        room: AtomicU64::new(MOST_BYTES),
        known: cache.map(Cache::known).unwrap_or_default(),
    };
    let mut rows = walk.directory(&root, &RawPath::new(""), 0)?;
    if rows.len() > MOST {
        return Err(InventoryError::TooMany);
    }
    let known = walk.known.len() == rows.len() && rows.iter().all(|row| !row.read);
    rows.par_sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(Inventory { rows, began, known })
}

#[derive(Debug)]
struct Row {
    path: RepoPath,
    stat: Stamp,
    sha: Sha,
    /// Whether its bytes had to be read.
    read: bool,
}

struct Walk<'a> {
    /// How many more bytes may be read.
    room: AtomicU64,
    known: Remembered<'a>,
}

/// An entry of a directory, and its kind as far as the listing says it.
type Entry = (Vec<u8>, FileType);

impl Walk<'_> {
    /// All files below a directory, on all cores.
    fn directory(
        &self,
        handle: &OwnedFd,
        path: &RawPath,
        depth: usize,
    ) -> Result<Vec<Row>, InventoryError> {
        if depth > DEEPEST {
            return Err(InventoryError::TooDeep(path.clone()));
        }
        let mut entries = list(handle, depth).map_err(|error| unreadable(path, error))?;
        // Nearly the final order of the inventory, which makes its sorting cheap.
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let (below, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, kind)| {
            // Some file systems do not say what an entry is; it may be a directory.
            matches!(kind, FileType::Directory | FileType::Unknown)
        });
        let all = |entries: &[Entry]| {
            let mut rows = Vec::with_capacity(entries.len());
            for entry in entries {
                self.entry(handle, path, entry, depth, &mut rows)?;
            }
            Ok(rows)
        };
        let parts = files.par_chunks(TOGETHER).chain(below.par_chunks(1));
        let parts: Result<Vec<Vec<Row>>, _> = parts.map(all).collect();
        Ok(parts?.into_iter().flatten().collect())
    }

    fn entry(
        &self,
        directory: &OwnedFd,
        path: &RawPath,
        (name, kind): &Entry,
        depth: usize,
        rows: &mut Vec<Row>,
    ) -> Result<(), InventoryError> {
        let path = path.join(name);
        let wrong = |error: Errno| unreadable(&path, error);
        let known = self.known.get(path.as_bytes());
        let (stat, sha, read) = if known.is_none() && *kind == FileType::RegularFile {
            let (stat, sha) = self.read(directory, name, &path)?;
            (stat, sha, true)
        } else {
            let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let stat = stat.map_err(wrong)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind == FileType::Directory {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let below = rustix::fs::openat(directory, name, flags, Mode::empty());
                rows.extend(self.directory(&below.map_err(wrong)?, &path, depth + 1)?);
                return Ok(());
            }
            let stat = Stamp::of(&stat);
            match known {
                Some((known, sha)) if **known == stat.bytes() => (stat, **sha, false),
                _ => {
                    let (stat, sha) = match kind {
                        FileType::RegularFile => self.read(directory, name, &path)?,
                        FileType::Symlink => (stat, link(directory, name).map_err(wrong)?),
                        other => (stat, Sha256::digest(format!("special\0{other:?}")).into()),
                    };
                    (stat, sha, true)
                }
            }
        };
        let path = RepoPath::try_from(&path).map_err(|why| InventoryError::Name { path, why })?;
        rows.push(Row {
            path,
            stat,
            sha,
            read,
        });
        Ok(())
    }

    /// Reads one file once. Its facts are those of the opened file, not of its name.
    fn read(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        path: &RawPath,
    ) -> Result<(Stamp, Sha), InventoryError> {
        let wrong = |error: Errno| unreadable(path, error);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(wrong)?;
        let stat = rustix::fs::fstat(&file).map_err(wrong)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(wrong(Errno::STALE));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let take = |room: u64| room.checked_sub(size);
        if self.room.fetch_update(Relaxed, Relaxed, take).is_err() {
            return Err(InventoryError::TooLarge(path.clone()));
        }
        let sha = hash(&file, size).map_err(wrong)?;
        Ok((Stamp::of(&stat), sha))
    }
}

fn unreadable(path: &RawPath, error: Errno) -> InventoryError {
    let path = if path.as_bytes().is_empty() {
        RawPath::new(".")
    } else {
        path.clone()
    };
    InventoryError::Unreadable {
        path,
        source: error.into(),
    }
}

fn list(handle: &OwnedFd, depth: usize) -> rustix::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut space = Vec::with_capacity(LISTING);
    let mut listing = RawDir::new(handle, space.spare_capacity_mut());
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let skipped = depth == 0 && SKIPPED.contains(&name);
        if !matches!(name, b"." | b"..") && !skipped {
            entries.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(entries)
}

/// The digest of a link is that of its target path, not of the file there.
fn link(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Sha> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(Sha256::digest([b"symlink\0", target.to_bytes()].concat()).into())
}

/// The digest of `file`, whose stat data gave `size` bytes.
fn hash(file: &OwnedFd, size: u64) -> rustix::io::Result<Sha> {
    thread_local! {
        // Allocating fresh memory costs more than reading a small file.
        static SPACE: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
    }
    SPACE.with_borrow_mut(|space| {
        let mut sha = Sha256::new();
        let mut total = 0_u64;
        loop {
            let count = rustix::io::read(file, &mut space[..])?;
            sha.update(&space[..count]);
            total += count as u64;
            if total > size.saturating_add(GROWTH) {
                // The file grows faster than it is read, or has no end at all.
                return Err(Errno::FBIG);
            }
            // At the size from stat the file ends; another read would double the calls.
            if count == 0 || (total == size && count < BUFFER) {
                return Ok(sha.finalize().into());
            }
        }
    })
}
