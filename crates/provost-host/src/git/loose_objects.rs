//! Writes objects as loose files, as git does, without starting git.
//!
//! # Invariants
//!
//! - An object exists whole or not at all: it is written beside its place, synced, then renamed.
//! - When [`write()`] returns, the objects and their names are on disk.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use provost_core::object::hex;
use provost_core::pack::{self, Objects};

use super::{GitError, system};

/// Set-group-id, and write permission for the group and for all: how git marks a shared store.
const SHARED: u32 = 0o2022;

/// Whether no other user may write into this object store.
pub(super) fn is_ours_alone(objects: &Path) -> bool {
    objects.metadata().is_ok_and(|data| {
        data.uid() == rustix::process::geteuid().as_raw() && data.mode() & SHARED == 0
    })
}

pub(super) fn write(place: &Path, objects: &Objects) -> Result<(), GitError> {
    let what = || format!("write objects into `{}`", place.display());
    let mut unfinished = Unfinished::default();
    put(place, objects, &mut unfinished).map_err(system(what()))
}

/// Files that were written, and their final paths. Dropping this removes those not yet renamed.
#[derive(Default)]
struct Unfinished(Vec<(File, PathBuf, PathBuf)>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        for (_, beside, _) in &self.0 {
            let _ = fs::remove_file(beside);
        }
    }
}

fn put(place: &Path, objects: &Objects, unfinished: &mut Unfinished) -> io::Result<()> {
    let mut directories = BTreeSet::new();
    for (oid, (kind, bytes)) in objects {
        let (directory, name) = oid.as_str().split_at(2);
        let directory = place.join(directory);
        let path = directory.join(name);
        match fs::create_dir(&directory) {
            Ok(()) => {
                directories.insert(place.to_owned());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // An object that exists is synced again with its directory: its writer may not have done
        // so.
        if path.try_exists()? {
            File::open(&path)?.sync_all()?;
        } else {
            let beside = directory.join(unused_name()?);
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o444)
                .open(&beside)?;
            unfinished.0.push((file.try_clone()?, beside, path));
            file.write_all(&pack::loose(*kind, bytes))?;
        }
        directories.insert(directory);
    }
    // All are written before any is synced, so that the file system has one transaction to commit.
    for (file, ..) in &unfinished.0 {
        file.sync_all()?;
    }
    for (_, beside, path) in &unfinished.0 {
        fs::rename(beside, path)?;
    }
    directories
        .iter()
        .try_for_each(|directory| File::open(directory)?.sync_all())
}

/// A name that git takes for an unfinished object, and prunes when it is old.
fn unused_name() -> io::Result<String> {
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("tmp_obj_{}", hex(&number)))
}
