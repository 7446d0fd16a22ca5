//! Finds the directory of keys, and checks whether other users have access to it.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::{KeysError, io_error};

/// The directory that the variables of `environment` name.
pub(super) fn directory(
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, KeysError> {
    // A relative path would differ for every working directory.
    let absolute = |name: &str| {
        let path = PathBuf::from(environment(name)?);
        path.is_absolute().then_some(path)
    };
    if let Some(set) = environment("PROVOST_KEYS").filter(|set| !set.is_empty()) {
        let path = PathBuf::from(set);
        return if path.is_absolute() {
            Ok(path)
        } else {
            Err(KeysError::NoPlace)
        };
    }
    let config = absolute("XDG_CONFIG_HOME");
    let home = || Some(absolute("HOME")?.join(".config"));
    let config = config.or_else(home).ok_or(KeysError::NoPlace)?;
    Ok(config.join("provost/keys"))
}

/// `path` with links resolved, as far as it exists; the rest stays as written.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        if let Ok(real) = there.canonicalize() {
            return missing
                .iter()
                .rev()
                .fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
            return path.to_owned();
        };
        missing.push(name);
        there = parent;
    }
}

/// The nearest directory at or above `start` that has a `.git`.
pub(super) fn repository_around(start: &Path) -> Option<&Path> {
    start
        .ancestors()
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
}

/// Makes the directory if it does not exist, with access for its owner only.
pub(super) fn make(directory: &Path) -> Result<(), KeysError> {
    let wrong = io_error(directory);
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(&wrong)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(wrong(error)),
        _ => check(directory).map(|_| ()),
    }
}

/// Whether the directory exists; an error if other users have access.
pub(super) fn check(directory: &Path) -> Result<bool, KeysError> {
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(io_error(directory)(error)),
    };
    if !metadata.is_dir() {
        let path = directory.to_owned();
        return Err(KeysError::NotRegular {
            path,
            wanted: "directory",
        });
    }
    owned(directory, &metadata)?;
    tight(directory, &metadata, 0o700)?;
    Ok(true)
}

/// Refuses a file of keys that is not regular, or that other users have access to.
pub(super) fn judge(path: &Path, metadata: &Metadata, wanted: u32) -> Result<(), KeysError> {
    if !metadata.is_file() {
        let path = path.to_owned();
        return Err(KeysError::NotRegular {
            path,
            wanted: "file",
        });
    }
    owned(path, metadata)?;
    tight(path, metadata, wanted)
}

/// The owner has to be this user or root.
fn owned(path: &Path, metadata: &Metadata) -> Result<(), KeysError> {
    let owner = metadata.uid();
    if owner == rustix::process::geteuid().as_raw() || owner == 0 {
        return Ok(());
    }
    Err(KeysError::Foreign {
        path: path.to_owned(),
        owner,
    })
}

fn tight(path: &Path, metadata: &Metadata, wanted: u32) -> Result<(), KeysError> {
    let mode = metadata.mode() & 0o777;
    // The owner's rights do not matter here; those of group and others beyond `wanted` do.
    let beyond = mode & 0o077 & !wanted;
    if beyond == 0 {
        return Ok(());
    }
    Err(KeysError::Loose {
        path: path.to_owned(),
        mode,
        wanted,
    })
}
