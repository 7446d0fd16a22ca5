//! Checks git and the directories that runs write.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use provost_host::git::{Git, Version};
use provost_host::keys::Keys;
use rustix::fs::{Access, FsWord};

use super::Row;
use crate::places::{self, Places};
use crate::stores::remote_file_system;

/// The row of a directory that is in no repository.
pub(super) const NO_REPOSITORY: &str = "no repository";

/// A file system in user space; whether its locks hold is not known.
const FUSE: FsWord = 0x6573_5546;

/// The programs that runs need.
pub(super) fn programs() -> Vec<Row> {
    let install = "install git, on Debian with `apt-get install git`";
    let row = match Git::find(&[]) {
        Err(error) => Row::missing("git", error.to_string()).remedy(install),
        Ok(git) => match git.version() {
            Err(error) => Row::missing("git", error.to_string()).remedy(install),
            Ok(version) => {
                let at = git.program().display();
                let found = format!("{}.{} at {at}", version.major, version.minor);
                if version < Version::LEAST {
                    Row::missing("git", found).remedy("2.40 or newer is needed")
                } else {
                    Row::ok("git", found)
                }
            }
        },
    };
    vec![row]
}

/// The directories that runs write; `fix` creates them or narrows their permissions first.
pub(super) fn directories(fix: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    match Places::around(Path::new(".")) {
        Ok(place) => {
            let at = place.repo.top().unwrap_or_else(|| place.repo.common_dir());
            rows.push(Row::ok("repository", at.display().to_string()));
            // A directory that must not be used is not fixed either.
            rows.push(match Places::look() {
                Ok(known) if !known.is_foreign() => directory("runtime root", &place.root, fix),
                Ok(known) => {
                    let found = format!("{} was not made by you", known.root.display());
                    Row::missing("runtime root", found).remedy("provost explain ROOT_UNSAFE")
                }
                Err(failure) => {
                    let explain = format!("provost explain {}", failure.code);
                    let remedy = failure.hint.unwrap_or(explain);
                    Row::missing("runtime root", failure.reason).remedy(remedy)
                }
            });
            match place.cache() {
                Ok(cache) => rows.push(directory("cache", cache, fix)),
                Err(failure) => rows.push(Row::missing("cache", failure.reason)),
            }
        }
        Err(failure) => {
            // Not a defect of the machine: this command works anywhere.
            rows.push(Row::ok(NO_REPOSITORY, failure.reason));
            match places::cache_root() {
                Ok(cache) => rows.push(directory("cache", &cache, fix)),
                Err(error) => rows.push(Row::missing("cache", error.to_string())),
            }
        }
    }
    rows.push(scratch());
    rows.push(keys(fix));
    rows
}

/// Checks a directory that only this user may enter.
fn directory(name: &str, path: &Path, fix: bool) -> Row {
    let mut done = "";
    if fix && !path.exists() && make(path) {
        done = ", created just now";
    }
    let shown = path.display();
    let Ok(found) = fs::metadata(path) else {
        return absent(name, path);
    };
    if !found.is_dir() {
        return Row::missing(name, format!("{shown} is no directory"))
            .remedy("move it out of the way");
    }
    if let Some(row) = unusable(name, path) {
        return row;
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        let narrowed = fix && fs::set_permissions(path, Permissions::from_mode(0o700)).is_ok();
        if !narrowed {
            let found = format!("{shown} has mode {mode:03o}: other users may enter");
            return Row::not_enforced(name, found).remedy("provost doctor --fix");
        }
        done = ", closed to others just now";
    }
    file_system(name, path, &format!("{shown}{done}"))
}

fn make(path: &Path) -> bool {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .is_ok()
}

/// Checks the place where a directory will be created.
fn absent(name: &str, path: &Path) -> Row {
    let above: Option<PathBuf> = path
        .ancestors()
        .find(|above| above.is_dir())
        .map(Path::to_owned);
    let shown = path.display();
    match above {
        None => Row::missing(name, format!("{shown} cannot be created")),
        Some(above) => unusable(name, &above).unwrap_or_else(|| {
            file_system(name, &above, &format!("{shown}, created by the first run"))
        }),
    }
}

/// The row of a directory that this user cannot write.
fn unusable(name: &str, path: &Path) -> Option<Row> {
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let error = rustix::fs::access(path, rights).err()?;
    let error = std::io::Error::from(error);
    let found = format!("{} cannot be written: {error}", path.display());
    Some(Row::missing(name, found).remedy(format!("make {} your own", path.display())))
}

/// A row with `words` about a directory, unless its file system is unsuitable.
fn file_system(name: &str, path: &Path, words: &str) -> Row {
    let number = match rustix::fs::statfs(path) {
        Ok(found) => found.f_type,
        Err(error) => {
            let error = std::io::Error::from(error);
            return Row::missing(name, format!("{}: {error}", path.display()));
        }
    };
    let elsewhere = "set PROVOST_ROOT or XDG_CACHE_HOME to a directory on a local disk";
    let remote = u32::try_from(number & 0xffff_ffff).ok();
    if let Some(kind) = remote.and_then(remote_file_system) {
        let found = format!("{words}: on a network file system ({kind})");
        return Row::missing(name, found).remedy(elsewhere);
    }
    if number == FUSE {
        let found = format!("{words}: on a FUSE file system, whose locks may not hold");
        return Row::not_enforced(name, found).remedy(elsewhere);
    }
    Row::ok(name, words)
}

/// Where short-lived private files are created.
fn scratch() -> Row {
    let path = std::env::temp_dir();
    unusable("temporary files", &path)
        .unwrap_or_else(|| Row::ok("temporary files", path.display().to_string()))
}

/// Where the key that seals runs is kept.
fn keys(fix: bool) -> Row {
    const NAME: &str = "keys";
    let here = std::env::current_dir().unwrap_or_default();
    let keys = match Keys::find().and_then(|keys| keys.outside_repository_around(&here)) {
        Ok(keys) => keys,
        Err(error) => {
            return Row::missing(NAME, error.to_string())
                .remedy("set PROVOST_KEYS to a directory of yours outside every repository");
        }
    };
    let directory = keys.directory();
    if !directory.exists() && !fix {
        return absent(NAME, directory);
    }
    if fix {
        let secret = directory.join("signing.key");
        // A failure to create or narrow the directory is reported below.
        let _ = make(directory);
        let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
        let _ = fs::set_permissions(secret, Permissions::from_mode(0o600));
    }
    let shown = directory.display();
    match keys
        .load()
        .and_then(|key| keys.trusted().map(|trusted| (key, trusted)))
    {
        Ok((None, _)) => file_system(NAME, directory, &format!("{shown}, no key yet")),
        Ok((Some(_), trusted)) => {
            let found = format!("{shown}, trusted: {}", trusted.len());
            file_system(NAME, directory, &found)
        }
        Err(error) => Row::missing(NAME, error.to_string()).remedy("provost doctor --fix"),
    }
}
