//! Removes a directory, whatever its content.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::Beneath;

/// Why a directory was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// A system call failed.
    #[error("cannot {what} `{}`", path.display())]
    System {
        /// What was tried, after "cannot".
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A directory outside the root, which must not be removed.
    #[error("`{}` does not lie below `{}`", path.display(), root.display())]
    Outside {
        path: PathBuf,
        /// The directory it must lie below.
        root: PathBuf,
    },
}

fn system(what: &'static str, path: &Path) -> impl FnOnce(Errno) -> RemoveError {
    move |error| RemoveError::System {
        what,
        path: path.to_owned(),
        source: error.into(),
    }
}

/// How many levels are entered with a directory held open at each.
const DEEPEST: usize = 64;

/// Removes the directory `dir`, which must lie below `root`; a missing one is no error.
///
/// Links are removed, never followed. Directories without permission to enter get it first.
pub fn remove(root: &Path, dir: &Path) -> Result<(), RemoveError> {
    let outside = || RemoveError::Outside {
        path: dir.to_owned(),
        root: root.to_owned(),
    };
    let root_path = root.canonicalize().map_err(|source| RemoveError::System {
        what: "find",
        path: root.to_owned(),
        source,
    })?;
    let below = dir
        .strip_prefix(root)
        .or_else(|_| dir.strip_prefix(&root_path))
        .map_err(|_| outside())?;
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    if below.as_os_str().is_empty() || !below.components().all(plain) {
        return Err(outside());
    }
    let beneath = Beneath::new(&root_path).map_err(system("open", root))?;
    let parent = below.parent().unwrap_or(Path::new(""));
    let (Some(name), holder) = (
        below.file_name(),
        beneath.directory(parent.as_os_str().as_bytes()),
    ) else {
        return Err(outside());
    };
    let holder = match holder {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(system("open", dir))?,
    };
    match clear(&holder, name.as_bytes()) {
        Err(Errno::NOENT) => Ok(()),
        other => other.map_err(system("remove", dir)),
    }
}

fn clear(holder: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    let Some(top) = enter(holder.as_fd(), name)? else {
        return rustix::fs::unlinkat(holder, name, AtFlags::empty());
    };
    let mut moved = 0;
    // Each round removes everything but what lies too deep, which it moves to the top.
    while empty(&top, &top, 0, &mut moved)? {}
    rustix::fs::unlinkat(holder, name, AtFlags::REMOVEDIR)
}

/// Opens a directory for emptying, after taking permission to; `None` if it is no directory.
fn enter(holder: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&holder, name, flags, Mode::empty()) {
        Ok(fd) => {
            let all = Mode::RWXU;
            let stat = rustix::fs::fstat(&fd)?;
            if !Mode::from_raw_mode(stat.st_mode).contains(all) {
                rustix::fs::fchmod(&fd, all)?;
            }
            Ok(Some(fd))
        }
        // A fifo too: opening with the directory flag does not wait for a writer.
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(Errno::ACCESS) => {
            // Owned by us, but without permission. No other process works here, so the name still
            // means the same.
            let stat = rustix::fs::statat(&holder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Ok(None);
            }
            rustix::fs::chmodat(&holder, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(&holder, name, flags, Mode::empty()).map(Some)
        }
        Err(error) => Err(error),
    }
}

/// Empties `directory`; returns whether something was moved to `top` and must still be removed.
fn empty(
    top: &OwnedFd,
    directory: &OwnedFd,
    depth: usize,
    moved: &mut u64,
) -> rustix::io::Result<bool> {
    let mut lifted = false;
    // All names first: removing while listing may skip some.
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        names.push((entry.file_name().to_owned(), entry.file_type()));
    }
    for (name, kind) in &names {
        let name = name.to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let inner = match kind {
            FileType::Directory | FileType::Unknown => enter(directory, name)?,
            _ => None,
        };
        match inner {
            None => rustix::fs::unlinkat(directory, name, AtFlags::empty())?,
            Some(_) if depth >= DEEPEST => {
                lift(top, directory, name, moved)?;
                lifted = true;
            }
            Some(inner) => {
                lifted |= empty(top, &inner, depth + 1, moved)?;
                rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
            }
        }
    }
    Ok(lifted)
}

/// Moves a directory to `top` under an unused name.
fn lift(top: &OwnedFd, from: &OwnedFd, name: &[u8], moved: &mut u64) -> rustix::io::Result<()> {
    loop {
        *moved += 1;
        let free = format!(".provost-removed-{moved}");
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(from, name, top, free.as_str(), flags) {
            Err(Errno::EXIST) => {}
            result => return result,
        }
    }
}
