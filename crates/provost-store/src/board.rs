//! Keeps boards (docs/board.md): one directory each, with the records and a lock.
//!
//! # Invariants
//!
//! - One process at a time reads a board, decides and writes; it holds the lock meanwhile.
//! - A published directory exists under its name whole, or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::lease::Owner;
use provost_core::record::{Head, Record};
use provost_fs::atomic;

use crate::error::StoreError;
use crate::lock::DriverLock;
use crate::{file, ledger};

pub const RECORDS: &str = "events.jsonl";

const LOCK: &str = "board.lock";

/// How long a command waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for the lock of the board in `directory`, which is made if missing.
pub fn enter(directory: &Path, owner: &Owner) -> Result<DriverLock, StoreError> {
    file::make_directories(directory)?;
    file::refuse_network(&directory.join(LOCK))?;
    DriverLock::acquire(&directory.join(LOCK), owner, PATIENCE)
}

/// The current records of the board in `directory`; none if no board was begun.
///
/// Takes no lock and repairs nothing: an unfinished line does not count.
pub fn records(directory: &Path) -> Result<Vec<Record>, StoreError> {
    let path = directory.join(RECORDS);
    match ledger::read(&path, Head::genesis()) {
        Ok(chain) => Ok(chain.records),
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The path beside `target` where a directory is made before it gets its name. What a crash left
/// there is removed. The caller must hold the lock of the board.
pub fn unfinished(target: &Path) -> Result<PathBuf, StoreError> {
    let beside = atomic::beside(target, "");
    match fs::remove_dir_all(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", &beside)(error))
        }
        _ => {
            file::make_directories(&beside)?;
            Ok(beside)
        }
    }
}

/// Renames the directory `beside`, in which every file is on disk, to its final name.
pub fn publish(beside: &Path, target: &Path) -> Result<(), StoreError> {
    fs::rename(beside, target).map_err(StoreError::io("rename", beside))?;
    file::sync_directory(target)
}
