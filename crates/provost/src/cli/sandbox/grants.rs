//! What `--allow` and `--read` open.
//!
//! # Invariants
//!
//! - The deepest path that was named decides, whatever the order of the flags.
//! - What steers git and Provost in a directory is read-only unless it was named itself.

use std::io;
use std::path::{Component, Path, PathBuf};

use provost_core::code::Code;
use provost_core::tier::Tier;
use provost_host::sandbox::Mount;

use crate::answer::Failure;

/// Directories and files that steer git and Provost.
const STEERING: [&str; 2] = [".git", ".provost"];

/// What is mounted for the flags, outermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grants {
    pub(super) mounts: Vec<Mount>,
    /// What steers git or Provost and can be written, because the tier cannot hold it.
    pub(super) open: Vec<PathBuf>,
}

/// What `allow` and `read`, which are places, mean in a sandbox of `tier`.
pub(super) fn grants(allow: &[PathBuf], read: &[PathBuf], tier: Tier) -> Result<Grants, Failure> {
    if let Some(path) = allow.iter().find(|path| read.contains(path)) {
        let reason = format!("`{}` is both in --allow and in --read", path.display());
        return Err(Failure::new(Code::UsageError, reason).hint("name it once"));
    }
    let inside = |path: &Path| allow.iter().find(|around| path.starts_with(around));
    let steering = allow.iter().flat_map(|directory| {
        let paths = STEERING.map(|name| directory.join(name));
        paths.into_iter().filter(|path| {
            path.symlink_metadata().is_ok() && !allow.contains(path) && !read.contains(path)
        })
    });
    let mut steering: Vec<PathBuf> = steering.collect();
    steering.sort();
    steering.dedup();
    if tier == Tier::Landlock
        && let Some((path, around)) = read.iter().find_map(|path| Some((path, inside(path)?)))
    {
        let (path, around) = (path.display(), around.display());
        let reason = format!(
            "tier landlock cannot keep `{path}` from being written, which lies in `{around}`"
        );
        return Err(Failure::new(Code::UsageError, reason)
            .hint("name only what may be written, or take tier namespaces"));
    }
    let writable = allow.iter().map(|path| Mount::Writable {
        source: path.clone(),
        target: path.clone(),
    });
    let read_only = read.iter().map(|path| {
        let target = path.clone();
        if inside(path).is_some() {
            return Mount::Protect { target };
        }
        Mount::ReadOnly {
            source: path.clone(),
            target,
        }
    });
    let mut mounts: Vec<Mount> = writable.chain(read_only).collect();
    let mut open = Vec::new();
    match tier {
        Tier::Namespaces => {
            let protect = |target| Mount::Protect { target };
            mounts.extend(steering.into_iter().map(protect));
        }
        Tier::Landlock => open = steering,
    }
    mounts.sort_by_key(|mount| mount.target().components().count());
    Ok(Grants { mounts, open })
}

/// The place that a command may write.
pub(super) fn writable(path: &Path) -> Result<PathBuf, Failure> {
    let found = readable(path)?;
    let shared = found.starts_with("/dev/shm");
    if found.starts_with("/sys") || found.starts_with("/dev") && !shared {
        let reason = format!("`{}`: the machine itself is no sandbox's", path.display());
        return Err(Failure::new(Code::UsageError, reason).hint("name a directory of files"));
    }
    Ok(found)
}

/// The place that `path` names, which has no symbolic link on the way: a link may have been put
/// there by whoever could write beside it, and would open what nobody named.
pub(super) fn readable(path: &Path) -> Result<PathBuf, Failure> {
    let unreadable = |error: io::Error| {
        let reason = format!("`{}`: {error}", path.display());
        Failure::new(Code::InputUnreadable, reason)
    };
    let found = path.canonicalize().map_err(unreadable)?;
    let named = without_dots(&std::path::absolute(path).map_err(unreadable)?);
    if found != named {
        let (named, real) = (path.display(), found.display());
        let reason = format!("`{named}` leads through a symbolic link, to `{real}`");
        return Err(Failure::new(Code::UsageError, reason).hint("name that place itself"));
    }
    if found.starts_with("/proc") {
        let reason = format!("`{}`: a sandbox has a `/proc` of its own", path.display());
        return Err(Failure::new(Code::UsageError, reason));
    }
    if found == Path::new("/") {
        let reason = format!("`{}`: a sandbox has a root of its own", path.display());
        return Err(Failure::new(Code::UsageError, reason).hint("name directories in it"));
    }
    Ok(found)
}

/// An absolute path without `.` and `..`, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
