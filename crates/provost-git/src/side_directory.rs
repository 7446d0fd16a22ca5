//! Makes the side git directory: a repository with our settings and nothing else.
//!
//! A directory that is on no commit never changes, so all processes of a user share it. A process
//! that dies leaves nothing behind. Before use, the directory must be writable by us alone and hold
//! exactly what we would write.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use provost_core::object::{ObjectFormat, Oid};

use super::{GitError, system};

/// The directories a git directory needs.
const DIRECTORIES: &[&str] = &["objects", "refs", "refs/heads"];

/// A `HEAD` on no commit.
const UNBORN: &str = "ref: refs/heads/none\n";

/// A git directory of our own without objects or refs.
#[derive(Debug)]
pub(super) struct SideGit {
    path: PathBuf,
    /// Whether only this process uses it, so that it is removed when dropped.
    alone: bool,
}

impl SideGit {
    /// Takes the shared one below `scratch`, or makes it.
    pub(super) fn shared(scratch: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        let user = rustix::process::geteuid().as_raw();
        let path = scratch.join(format!("provost-git-{user}-{}", format.width()));
        let taken = || Self {
            path: path.clone(),
            alone: false,
        };
        if is_sound(&path, format) {
            return Ok(taken());
        }
        let mut fresh = Self::create(scratch, format, UNBORN)?;
        if is_ours(&path) {
            // Files are missing, as after a clean-up; the rest is moved away in one step.
            let rest = fresh.path.with_extension("old");
            let _ = fs::rename(&path, &rest);
            let _ = fs::remove_dir_all(&rest);
        }
        if fs::rename(&fresh.path, &path).is_ok() {
            fresh.alone = false;
            fresh.path = path;
            return Ok(fresh);
        }
        // Another process was faster, or the name is taken by something else; then we keep our own.
        Ok(if is_sound(&path, format) {
            taken()
        } else {
            fresh
        })
    }

    /// Makes one below `scratch` with `commit` checked out, for this process alone.
    pub(super) fn at(scratch: &Path, format: ObjectFormat, commit: &Oid) -> Result<Self, GitError> {
        Self::create(scratch, format, &format!("{commit}\n"))
    }

    /// Makes one below `scratch` that is on no commit, for this process alone.
    pub(super) fn unborn(scratch: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        Self::create(scratch, format, UNBORN)
    }

    fn create(scratch: &Path, format: ObjectFormat, head: &str) -> Result<Self, GitError> {
        let what = || format!("make a private git directory in `{}`", scratch.display());
        let mut number = [0; 16];
        getrandom::fill(&mut number)
            .map_err(|error| system(what())(std::io::Error::other(error.to_string())))?;
        let name = format!("provost-git-{}", provost_core::object::hex(&number));
        let path = scratch.join(name);
        private(&path).map_err(system(what()))?;
        let side = Self { path, alone: true };
        side.fill(format, head).map_err(system(what()))?;
        Ok(side)
    }

    fn fill(&self, format: ObjectFormat, head: &str) -> std::io::Result<()> {
        for directory in DIRECTORIES {
            private(&self.path.join(directory))?;
        }
        fs::write(self.path.join("HEAD"), head)?;
        fs::write(self.path.join("config"), settings(format))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SideGit {
    fn drop(&mut self) {
        if self.alone {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether `path` is a directory that only we can write to.
fn is_ours(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| {
        let user = rustix::process::geteuid().as_raw();
        data.is_dir() && data.uid() == user && data.mode() & 0o777 == 0o700
    })
}

/// Whether `path` is an unmodified side git directory.
fn is_sound(path: &Path, format: ObjectFormat) -> bool {
    let holds = |name: &str, text: &str| {
        fs::read(path.join(name)).is_ok_and(|bytes| bytes == text.as_bytes())
    };
    let count = |name: &str| fs::read_dir(path.join(name)).map_or(0, Iterator::count);
    is_ours(path)
        && holds("HEAD", UNBORN)
        && holds("config", &settings(format))
        && DIRECTORIES.iter().all(|name| path.join(name).is_dir())
        && count("") == 4
        && count("refs") == 1
        && count("refs/heads") == 0
}

fn settings(format: ObjectFormat) -> String {
    config(format, "bare = true")
}

fn private(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// The smallest configuration of a git directory, with `line` added to its `core` section.
pub fn config(format: ObjectFormat, line: &str) -> String {
    let (version, extension) = match format {
        ObjectFormat::Sha1 => (0, ""),
        ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
    };
    format!("[core]\n\trepositoryFormatVersion = {version}\n\t{line}\n{extension}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const SHA1: ObjectFormat = ObjectFormat::Sha1;

    #[test]
    fn processes_share_one_and_leave_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3)
            .map(|_| {
                SideGit::shared(scratch.path(), SHA1)
                    .unwrap()
                    .path()
                    .to_owned()
            })
            .collect();
        assert!(paths[0] == paths[1] && paths[1] == paths[2]);
        assert!(is_sound(&paths[0], SHA1));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_modified_directory_is_not_used() {
        let touches: [fn(&Path); 6] = [
            |path| fs::write(path.join("config"), "[core]\n\tfsmonitor = evil\n").unwrap(),
            |path| fs::create_dir(path.join("info")).unwrap(),
            |path| fs::write(path.join("refs/heads/none"), "x").unwrap(),
            |path| fs::remove_file(path.join("HEAD")).unwrap(),
            |path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap(),
            |path| {
                let elsewhere = path.with_extension("elsewhere");
                fs::rename(path, &elsewhere).unwrap();
                symlink(&elsewhere, path).unwrap();
            },
        ];
        for (number, touch) in touches.into_iter().enumerate() {
            let scratch = tempfile::tempdir().unwrap();
            let first = SideGit::shared(scratch.path(), SHA1).unwrap();
            touch(first.path());
            assert!(!is_sound(first.path(), SHA1), "{number}");
            let second = SideGit::shared(scratch.path(), SHA1).unwrap();
            let good = second.alone || is_sound(second.path(), SHA1);
            assert!(good, "{number}");
            let head = fs::read_to_string(second.path().join("HEAD")).unwrap();
            assert_eq!(head, UNBORN, "{number}");
        }
    }
}
