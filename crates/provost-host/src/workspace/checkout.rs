//! Writes the files of a tree to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use provost_core::change::Node;
use provost_core::object::{Kind, Mode, Oid};
use provost_core::path::RawPath;
use provost_fs::stamp::Stamp;
use rayon::prelude::*;
use rustix::fs::{AtFlags, Mode as Permissions, OFlags, Timespec, Timestamps};

use super::manifest::stamp_of;
use super::{WorkspaceError, system};
use crate::git::{GitError, Repository};
use provost_fs::beneath::Beneath;

/// How far back the files are dated.
///
/// Git reads every file again that is as young as its index; these are older.
const AGE: Duration = Duration::from_secs(2);

/// The fewest files worth another git process.
const LEAST_CHUNK: usize = 256;

/// Stat data of each file that was written.
pub(super) type Written = BTreeMap<RawPath, Stamp>;

/// Writes `files` into the empty directory `target`.
///
/// A gitlink becomes an empty directory.
pub(super) fn write(
    repo: &Repository,
    files: &BTreeMap<RawPath, Node>,
    target: &Path,
) -> Result<Written, WorkspaceError> {
    let root = Beneath::new(target).map_err(system("open", target))?;
    let gitlinks = files.iter().filter(|(_, side)| side.mode == Mode::Gitlink);
    let mut directories: BTreeSet<&[u8]> = gitlinks.map(|(path, _)| path.as_bytes()).collect();
    for path in files.keys() {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        directories.extend(slashes.map(|(at, _)| &bytes[..at]));
    }
    // Sorted, so that a directory comes before its subdirectories.
    for directory in directories {
        make_directory(&root, directory).map_err(system("make a directory in", target))?;
    }
    let blobs: Vec<(&RawPath, &Node)> = files
        .iter()
        .filter(|(_, side)| side.mode != Mode::Gitlink)
        .collect();
    let share = blobs
        .len()
        .div_ceil(rayon::current_num_threads())
        .max(LEAST_CHUNK);
    let clock = Clock::past();
    let parts: Vec<Written> = blobs
        .par_chunks(share)
        .map(|chunk| write_chunk(repo, &root, chunk, &clock, target))
        .collect::<Result<_, _>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Writes some files, read by a git process of their own.
fn write_chunk(
    repo: &Repository,
    root: &Beneath,
    chunk: &[(&RawPath, &Node)],
    clock: &Clock,
    target: &Path,
) -> Result<Written, WorkspaceError> {
    let mut places: BTreeMap<&Oid, Vec<(&RawPath, Mode)>> = BTreeMap::new();
    for (path, side) in chunk {
        places.entry(&side.oid).or_default().push((path, side.mode));
    }
    // In the order of the paths, so that files of one directory are written together.
    let mut asked = BTreeSet::new();
    let order: Vec<&Oid> = chunk
        .iter()
        .map(|(_, side)| &side.oid)
        .filter(|oid| asked.insert(*oid))
        .collect();
    let mut written = Written::new();
    repo.batch()?.each(order, |oid, kind, bytes| {
        if kind != Kind::Blob {
            let oid = oid.clone();
            return Err(GitError::WrongKind {
                oid,
                wanted: Kind::Blob,
            }
            .into());
        }
        for (path, mode) in places.get(oid).into_iter().flatten() {
            let facts = write_file(root, path.as_bytes(), *mode, &bytes, clock)
                .map_err(system("write a file in", target))?;
            written.insert((*path).clone(), facts);
        }
        Ok::<(), WorkspaceError>(())
    })?;
    Ok(written)
}

/// The time in the past to which files are dated.
struct Clock(Timestamps);

impl Clock {
    fn past() -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let then = now.saturating_sub(AGE);
        let time = Timespec {
            tv_sec: i64::try_from(then.as_secs()).unwrap_or(0),
            tv_nsec: 0,
        };
        Self(Timestamps {
            last_access: time,
            last_modification: time,
        })
    }
}

/// Makes a directory with the mode that git's checkout uses.
pub(super) fn make_directory(root: &Beneath, path: &[u8]) -> rustix::io::Result<()> {
    let (parent, name) = parent_of(root, path)?;
    rustix::fs::mkdirat(&parent, name, Permissions::from_raw_mode(0o755))
}

/// Opens the parent directory of `path` and returns the name in it.
pub(super) fn parent_of<'a>(
    root: &Beneath,
    path: &'a [u8],
) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => Ok((root.directory(&path[..at])?, &path[at + 1..])),
        None => Ok((root.directory(b"")?, path)),
    }
}

/// Writes one new file or link and returns its stat data.
fn write_file(
    root: &Beneath,
    path: &[u8],
    mode: Mode,
    bytes: &[u8],
    clock: &Clock,
) -> std::io::Result<Stamp> {
    if mode == Mode::Symlink {
        let (parent, name) = parent_of(root, path)?;
        rustix::fs::symlinkat(bytes, parent.as_fd(), name)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(parent.as_fd(), name, &clock.0, flags)?;
        let stat = rustix::fs::statat(parent.as_fd(), name, flags)?;
        return Ok(stamp_of(&stat));
    }
    let permissions = if mode == Mode::Executable {
        0o755
    } else {
        0o644
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = root.open(path, flags, Permissions::from_raw_mode(permissions))?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    rustix::fs::futimens(&file, &clock.0)?;
    Ok(stamp_of(&rustix::fs::fstat(&file)?))
}
