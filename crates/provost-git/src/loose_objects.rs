//! Writes objects as loose files, as git does, without starting git.
//!
//! # Invariants
//!
//! - An object exists whole or not at all ([`provost_fs::atomic`]).
//! - When [`write()`] returns, the objects and their names are on disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use provost_core::pack::{self, Objects};
use provost_fs::atomic::{self, Draft, Durability};

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
    put(place, objects).map_err(system(what()))
}

fn put(place: &Path, objects: &Objects) -> io::Result<()> {
    let mut directories = BTreeSet::new();
    let mut drafts = Vec::new();
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
            directories.insert(directory);
        } else {
            // A name that git takes for an unfinished object, and prunes when it is old.
            let beside = directory.join(format!("tmp_obj_{}", atomic::unused_number()?));
            drafts.push(Draft::at(beside, &path, &pack::loose(*kind, bytes), 0o444)?);
        }
    }
    atomic::publish(drafts, Durability::Synced)?;
    directories
        .iter()
        .try_for_each(|directory| atomic::sync_directory(directory))
}
