//! Takes the digest of every file in a directory.
//!
//! A file is opened, looked at and read once, on all cores. With a [`Cache`] a file is not opened
//! at all when its inode, size, times and mode are what they were when it was read, and those times
//! lie so far before that reading that a later change must show in them. The change time counts, so
//! a program that sets the modification time back gains nothing.
//!
//! # Invariants
//!
//! - Symbolic links are never followed: a link counts as its target's name, whatever that leads to.
//! - What is neither file, link nor directory counts by its kind and is never opened.
//! - Whatever cannot be read or named stops the inventory; nothing is left out silently.
//! - `.git` and `.provost` at the top are not part of the work and are skipped.

mod cache;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use provost_core::path::{PathError, RawPath, RepoPath};
use rayon::prelude::*;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use sha2::{Digest as _, Sha256};

pub use cache::Cache;
use cache::Known;

/// The deepest directory that is looked into.
pub const DEEPEST: usize = 128;

/// The most files that are counted.
pub const MOST: usize = 2_000_000;

/// The most bytes that are read; a file may say that it has any number of them.
pub const MOST_BYTES: u64 = 64 << 30;

/// How much a file may grow while it is read.
const GROWTH: u64 = 64 << 20;

/// How much is read at a time; most files are smaller.
const BUFFER: usize = 128 * 1024;

/// Not part of the work: where git and Provost keep their own things.
const SKIPPED: [&[u8]; 2] = [b".git", b".provost"];

/// A SHA-256.
pub type Sha = [u8; 32];

/// Why a directory has no inventory.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The machine refuses a file or directory.
    #[error("`{path}` cannot be read")]
    Unreadable {
        /// Which.
        path: RawPath,
        /// Why.
        source: io::Error,
    },
    /// A name that an inventory cannot hold.
    #[error("`{path}` {why}, so it cannot be listed")]
    Name {
        /// Which.
        path: RawPath,
        /// What is wrong with it.
        why: PathError,
    },
    /// More than [`DEEPEST`] directories inside each other.
    #[error("`{0}` lies deeper than {DEEPEST} levels")]
    TooDeep(RawPath),
    /// More than [`MOST_BYTES`] in all files.
    #[error("`{0}` is beyond the {MOST_BYTES} bytes that are read in all")]
    TooLarge(RawPath),
    /// More than [`MOST`] files.
    #[error("there are more than {MOST} files")]
    TooMany,
    /// The directory itself.
    #[error("`{}` cannot be opened", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Every file of a directory with the digest of what it holds.
pub type Files = BTreeMap<RepoPath, Sha>;

/// Takes the inventory of `directory`. A cache saves reading what did not change, and is brought
/// up to date.
pub fn take(directory: &Path, cache: Option<&mut Cache>) -> Result<Files, InventoryError> {
    let open = |source: io::Error| InventoryError::Open {
        path: directory.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(|error| open(error.into()))?;
    let began = cache::now();
    let walk = Walk {
        room: AtomicU64::new(MOST_BYTES),
        known: cache.as_deref().map(Cache::known).unwrap_or_default(),
    };
    let mut rows = walk.directory(&root, &RawPath::new(""), 0)?;
    if rows.len() > MOST {
        return Err(InventoryError::TooMany);
    }
    rows.par_sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let fresh = rows.iter().any(|row| row.read);
    let gone = walk.known.len() > rows.len();
    drop(walk);
    if let Some(cache) = cache
        && (fresh || gone)
    {
        cache.replace(&rows, began);
    }
    Ok(rows.into_iter().map(|row| (row.path, row.sha)).collect())
}

/// A file that was found.
#[derive(Debug)]
struct Row {
    path: RepoPath,
    stat: Known,
    sha: Sha,
    /// Whether its bytes had to be read.
    read: bool,
}

struct Walk<'a> {
    /// How many more bytes may be read.
    room: AtomicU64,
    known: std::collections::HashMap<&'a [u8], (Known, Sha)>,
}

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
        let names = list(handle, depth).map_err(|error| unreadable(path, error))?;
        let (below, files): (Vec<_>, Vec<_>) = names.into_iter().partition(|(_, kind)| {
            // Some file systems do not say what an entry is; asking for it costs a thread's turn.
            matches!(kind, FileType::Directory | FileType::Unknown)
        });
        let one = |buffer: &mut Vec<u8>, (name, _): &(Vec<u8>, FileType)| {
            self.entry(handle, path, name, depth, buffer)
        };
        // A few small files are not worth a second thread; a directory is.
        let files = || files.par_iter().with_min_len(16).map_init(Vec::new, one);
        let below = || below.par_iter().map_init(Vec::new, one);
        let (files, below): (Result<Vec<_>, _>, Result<Vec<_>, _>) =
            rayon::join(|| files().collect(), || below().collect());
        let parts = [files?, below?];
        Ok(parts.into_iter().flatten().flatten().collect())
    }

    fn entry(
        &self,
        directory: &OwnedFd,
        path: &RawPath,
        name: &[u8],
        depth: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<Row>, InventoryError> {
        let path = path.join(name);
        let wrong = |error: rustix::io::Errno| unreadable(&path, error);
        let stat = rustix::fs::statat(
            directory,
            OsStr::from_bytes(name),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(wrong)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(wrong)?;
            return self.directory(&below, &path, depth + 1);
        }
        let text = RepoPath::try_from(&path).map_err(|why| InventoryError::Name {
            path: path.clone(),
            why,
        })?;
        let stat = Known::of(&stat);
        if let Some((known, sha)) = self.known.get(path.as_bytes())
            && *known == stat
        {
            let (sha, read) = (*sha, false);
            return Ok(vec![Row {
                path: text,
                stat,
                sha,
                read,
            }]);
        }
        let (stat, sha) = match kind {
            FileType::RegularFile => {
                let size = u64::try_from(stat.size).unwrap_or(u64::MAX);
                let take = |room: u64| room.checked_sub(size);
                if self.room.fetch_update(Relaxed, Relaxed, take).is_err() {
                    return Err(InventoryError::TooLarge(path));
                }
                hash(directory, name, buffer).map_err(wrong)?
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new()).map_err(wrong)?;
                (
                    stat,
                    Sha256::digest([b"symlink\0", target.to_bytes()].concat()).into(),
                )
            }
            other => (stat, Sha256::digest(format!("special\0{other:?}")).into()),
        };
        Ok(vec![Row {
            path: text,
            stat,
            sha,
            read: true,
        }])
    }
}

fn unreadable(path: &RawPath, error: rustix::io::Errno) -> InventoryError {
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

/// The names in one directory, and what they are as far as it says.
fn list(handle: &OwnedFd, depth: usize) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(handle)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let skipped = depth == 0 && SKIPPED.contains(&name);
        if !matches!(name, b"." | b"..") && !skipped {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Reads one file once. What is told of it is what the opened file says, not its name.
fn hash(
    directory: &OwnedFd,
    name: &[u8],
    buffer: &mut Vec<u8>,
) -> rustix::io::Result<(Known, Sha)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(rustix::io::Errno::STALE);
    }
    buffer.resize(BUFFER, 0);
    let mut sha = Sha256::new();
    let mut total = 0_u64;
    loop {
        let count = rustix::io::read(file.as_fd(), &mut buffer[..])?;
        sha.update(&buffer[..count]);
        total += count as u64;
        if total > u64::try_from(stat.st_size).unwrap_or(0) + GROWTH {
            // It grows faster than it is read, or has no end at all.
            return Err(rustix::io::Errno::FBIG);
        }
        // A file of the size it had is at its end; asking again would double the calls.
        let whole = u64::try_from(stat.st_size) == Ok(total);
        if count == 0 || (whole && count < BUFFER) {
            break;
        }
    }
    Ok((Known::of(&stat), sha.finalize().into()))
}

impl Known {
    fn of(stat: &Stat) -> Self {
        let nanos =
            |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            mode: stat.st_mode,
            modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}
