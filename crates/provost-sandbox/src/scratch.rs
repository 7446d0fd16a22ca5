//! A private directory on disk that is removed with its sandbox.
//!
//! Its owner holds a lock on it. The next sandbox recognises by the free lock what a killed owner
//! or a power failure left behind, and removes it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::object::hex;

use provost_fs::remove::remove;

/// How the names of such directories begin.
const PREFIX: &str = "provost-scratch-";
/// A younger directory is not removed.
const NEW: Duration = Duration::from_mins(1);

/// The directory; [`Scratch::remove`] removes it.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    path: PathBuf,
    /// Shared with every process that is forked from this one.
    _lock: File,
}

impl Scratch {
    /// Makes a directory below `root`, and removes those that dead owners left there.
    pub fn make(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        sweep(&root);
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let path = root.join(format!("{PREFIX}{}", hex(&random)));
        private(&path)?;
        let lock = File::open(&path)?;
        lock.try_lock()?;
        Ok(Self {
            root,
            path,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new directory in it, which is a part of the sandbox.
    pub(crate) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        private(&path)?;
        Ok(path)
    }

    /// Removes the directory. What cannot be removed, the next sandbox tries to remove.
    pub fn remove(&self) {
        let _ = remove(&self.root, &self.path);
    }
}

fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Removes the directories whose owners are dead. Nothing depends on it, so errors are ignored.
fn sweep(root: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let ours = |found: &fs::Metadata| {
            // A new directory may not be locked yet.
            let age = found.modified().map(|time| time.elapsed());
            let old = matches!(age, Ok(Ok(age)) if age > NEW);
            old && found.is_dir() && found.uid() == user
        };
        if !named || !entry.metadata().is_ok_and(|found| ours(&found)) {
            continue;
        }
        let free = File::open(entry.path()).map(|directory| directory.try_lock());
        match free {
            Ok(Ok(())) => drop(remove(root, &entry.path())),
            Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => {}
        }
    }
}
