//! Writes the files of a tree to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// When the files of every checkout were modified, in seconds since 1970.
///
/// Git reads every file again that is as young as its index; these are older. Build tools that
/// compare times find an unchanged file as old in a later checkout as it was in an earlier one.
const MODIFIED: i64 = 1_577_836_800;

/// The fewest files worth another git process.
const LEAST_CHUNK: usize = 256;

/// Stat data of each file that was written.
pub(super) type Written = BTreeMap<RawPath, Stamp>;

/// Files of a checkout that are dated later than the others.
#[derive(Debug, Clone, Default)]
pub struct Dates {
    pub newer: BTreeSet<RawPath>,
    /// The time of these files.
    pub at: Option<SystemTime>,
}

impl Dates {
    fn of(&self, path: &RawPath) -> Timestamps {
        let later = self.at.filter(|_| self.newer.contains(path));
        later.map_or_else(|| stamps(MODIFIED, 0), Self::at)
    }

    /// A directory is as new as the newest file directly in it.
    fn of_directory(&self, path: &[u8]) -> Timestamps {
        let inside = |file: &RawPath| {
            let slash = file.as_bytes().iter().rposition(|byte| *byte == b'/');
            slash.map_or(&[][..], |at| &file.as_bytes()[..at]) == path
        };
        let first = RawPath::new(path).join(b"");
        let below = self.newer.range(first.clone()..);
        let mut below = below.take_while(|file| file.as_bytes().starts_with(first.as_bytes()));
        let later = self.at.filter(|_| below.any(inside));
        later.map_or_else(|| stamps(MODIFIED, 0), Self::at)
    }

    fn at(time: SystemTime) -> Timestamps {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(MODIFIED);
        stamps(seconds, since.subsec_nanos().into())
    }
}

fn stamps(seconds: i64, nanoseconds: i64) -> Timestamps {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Writes `files` into the empty directory `target`.
///
/// A gitlink becomes an empty directory.
pub(super) fn write(
    repo: &Repository,
    files: &BTreeMap<RawPath, Node>,
    target: &Path,
    dates: &Dates,
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
    for directory in &directories {
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
    let parts: Vec<Written> = blobs
        .par_chunks(share)
        .map(|chunk| write_chunk(repo, &root, chunk, dates, target))
        .collect::<Result<_, _>>()?;
    for directory in &directories {
        date(&root, directory, &dates.of_directory(directory))
            .map_err(system("date a directory in", target))?;
    }
    Ok(parts.into_iter().flatten().collect())
}

/// Writes some files, read by a git process of their own.
fn write_chunk(
    repo: &Repository,
    root: &Beneath,
    chunk: &[(&RawPath, &Node)],
    dates: &Dates,
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
            let facts = write_file(root, path.as_bytes(), *mode, &bytes, &dates.of(path))
                .map_err(system("write a file in", target))?;
            written.insert((*path).clone(), facts);
        }
        Ok::<(), WorkspaceError>(())
    })?;
    Ok(written)
}

fn date(root: &Beneath, path: &[u8], stamps: &Timestamps) -> rustix::io::Result<()> {
    let (parent, name) = parent_of(root, path)?;
    rustix::fs::utimensat(&parent, name, stamps, AtFlags::SYMLINK_NOFOLLOW)
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
    stamps: &Timestamps,
) -> std::io::Result<Stamp> {
    if mode == Mode::Symlink {
        let (parent, name) = parent_of(root, path)?;
        rustix::fs::symlinkat(bytes, parent.as_fd(), name)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(parent.as_fd(), name, stamps, flags)?;
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
    rustix::fs::futimens(&file, stamps)?;
    Ok(stamp_of(&rustix::fs::fstat(&file)?))
}
