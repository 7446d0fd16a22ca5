//! What `--allow` and `--read` grant.
//!
//! # Invariants
//!
//! - The deepest named path decides, whatever the order of the flags.
//! - `.git` and `.provost` in a directory are read-only unless they were named themselves.

use std::io;
use std::path::{Component, Path, PathBuf};

use provost_core::code::Code;
use provost_core::tier::Tier;
use provost_host::sandbox::Mount;

use crate::answer::Failure;

/// Directories and files that control git and Provost.
const STEERING: [&str; 2] = [".git", ".provost"];

/// The mounts for the flags, outermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grants {
    pub(super) mounts: Vec<Mount>,
    /// What controls git or Provost and can be written, because the tier cannot protect it.
    pub(super) open: Vec<PathBuf>,
}

/// The grants of `allow` and `read`, which are resolved, in a sandbox of `tier`.
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
        let reason =
            format!("tier landlock cannot make `{path}` read-only, which lies in `{around}`");
        return Err(Failure::new(Code::UsageError, reason)
            .hint("allow only the paths that may be written, or use --tier namespaces"));
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

/// The resolved place that a command may write.
pub(super) fn writable(path: &Path) -> Result<PathBuf, Failure> {
    let found = readable(path)?;
    let shared = found.starts_with("/dev/shm");
    if found.starts_with("/sys") || found.starts_with("/dev") && !shared {
        let reason = format!(
            "`{}`: devices and kernel settings cannot be granted",
            path.display()
        );
        return Err(Failure::new(Code::UsageError, reason).hint("name a directory of files"));
    }
    Ok(found)
}

/// The place that `path` names, which must not lead through a symbolic link: another user could
/// have put the link there, and it would grant a place that the user did not name.
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
