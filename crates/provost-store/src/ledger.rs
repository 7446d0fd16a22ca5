//! Keeps a ledger in an append-only file, one record per line.
//!
//! # Invariants
//!
//! - A record is on disk before [`FileLedger::append`] returns it: each is synced by itself.
//! - One process appends; it holds the [`DriverLock`](crate::lock::DriverLock) of the run. Only it
//!   removes a line that a crash left unfinished; readers leave the file as it is.
//! - After a failed write or sync the state on disk is unknown, so the ledger accepts no more.
//! - Every written line can be read again: size, nesting and spelling are checked before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use provost_core::json;
use provost_core::record::{self, Chain, ChainError, Event, Head, Record};
use provost_core::user_secret::Secret;
use rustix::fs::{OFlags, Stat};

use crate::error::StoreError;
use crate::file;

/// The largest ledger that is read or written, in bytes.
pub const LARGEST: u64 = 256 * 1024 * 1024;

#[derive(Debug)]
pub struct FileLedger {
    path: PathBuf,
    file: File,
    stat: Stat,
    length: u64,
    head: Head,
    /// Marks every record as this user's own, if present.
    secret: Option<Secret>,
    poisoned: bool,
    disk: Disk,
}

/// The calls that reach the disk; tests replace them by failing ones.
#[derive(Debug, Clone, Copy)]
struct Disk {
    write: fn(&File, &[u8]) -> io::Result<usize>,
    sync: fn(&File) -> io::Result<()>,
}

const DISK: Disk = Disk {
    write: |mut file, bytes| file.write(bytes),
    sync: File::sync_data,
};

impl FileLedger {
    /// Makes a new, empty ledger whose first record continues `head`.
    pub fn create(path: &Path, head: Head) -> Result<Self, StoreError> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let (file, stat) = file::open(path, flags)?;
        file.sync_all().map_err(StoreError::io("sync", path))?;
        file::sync_directory(path)?;
        Ok(Self::new(path, file, stat, 0, head))
    }

    /// Opens a ledger that begins after `head`, and returns its records.
    ///
    /// An unfinished line left by a crash is cut off. All records are on disk when this returns,
    /// also those that were never confirmed, so the caller may act on them.
    pub fn open_for_append(path: &Path, head: Head) -> Result<(Self, Vec<Record>), StoreError> {
        let (file, stat) = file::open(path, OFlags::RDWR | OFlags::APPEND)?;
        let bytes = read_all(path, &file)?;
        let chain = verify(path, &bytes, head)?;
        let whole = chain.whole as u64;
        if chain.whole < bytes.len() {
            file.set_len(whole).map_err(StoreError::io("cut", path))?;
        }
        file.sync_all().map_err(StoreError::io("sync", path))?;
        file::sync_directory(path)?;
        Ok((
            Self::new(path, file, stat, whole, chain.head),
            chain.records,
        ))
    }

    fn new(path: &Path, file: File, stat: Stat, length: u64, head: Head) -> Self {
        Self {
            path: path.to_owned(),
            file,
            stat,
            length,
            head,
            secret: None,
            poisoned: false,
            disk: DISK,
        }
    }

    /// Marks every later record with `secret`.
    pub fn mark_with(&mut self, secret: Secret) {
        self.secret = Some(secret);
    }

    /// What the next record continues.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Appends `event` as the next record, which is on disk when this returns.
    pub fn append(&mut self, event: Event) -> Result<Record, StoreError> {
        self.require_sound()?;
        let mut head = self.head.clone();
        let record = head.append_marked(event, self.secret.as_ref());
        let mut line = record.line();
        require_readable(&line).map_err(StoreError::Event)?;
        line.push('\n');
        let length = self.length + line.len() as u64;
        if length > LARGEST {
            return Err(StoreError::TooLarge {
                path: self.path.clone(),
                limit: LARGEST,
            });
        }
        // Cleared only by a write that reached the disk.
        self.poisoned = true;
        self.require_length(self.length)?;
        self.write_line(line.as_bytes())?;
        self.require_length(length)?;
        self.length = length;
        self.head = head;
        (self.disk.sync)(&self.file).map_err(StoreError::io("sync", &self.path))?;
        self.poisoned = false;
        Ok(record)
    }

    /// Fails after a failed write or sync.
    fn require_sound(&self) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Writes one line at the end, in one call: a reader sees it whole or without its end.
    fn write_line(&self, line: &[u8]) -> Result<(), StoreError> {
        let written =
            (self.disk.write)(&self.file, line).map_err(StoreError::io("write", &self.path))?;
        if written < line.len() {
            let short = io::Error::from(io::ErrorKind::WriteZero);
            return Err(StoreError::io("write a whole line to", &self.path)(short));
        }
        Ok(())
    }

    /// Fails if the file is not the opened one, or has another length than after the last append.
    fn require_length(&self, length: u64) -> Result<(), StoreError> {
        let moved = |what| {
            Err(StoreError::Moved {
                path: self.path.clone(),
                what,
            })
        };
        // One call for both checks: calls after a wait for the disk are slow.
        match rustix::fs::lstat(&self.path) {
            Ok(now) if !file::same(&now, &self.stat) => moved("it was replaced"),
            Ok(now) if u64::try_from(now.st_size) != Ok(length) => {
                moved("its length differs from the last append")
            }
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::NOENT) => moved("it was removed"),
            Err(error) => Err(StoreError::io("look at", &self.path)(error)),
        }
    }
}

/// Refuses a line that a reader would refuse: too large, too deep, or with a number that changes
/// when it is read.
fn require_readable(line: &str) -> Result<(), ChainError> {
    let value =
        json::parse(line.as_bytes()).map_err(|source| ChainError::Line { line: 1, source })?;
    if json::canonical(&value) == line {
        Ok(())
    } else {
        Err(ChainError::Spelling { line: 1 })
    }
}

/// Reads a ledger that begins after `head`, without modifying it.
///
/// The chain may end before the file does: with a line that is being written, or that a crash left
/// unfinished.
pub fn read(path: &Path, head: Head) -> Result<Chain, StoreError> {
    let (file, _) = file::open(path, OFlags::RDONLY)?;
    verify(path, &read_all(path, &file)?, head)
}

fn read_all(path: &Path, file: &File) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(StoreError::io("read", path))?;
    if bytes.len() as u64 > LARGEST {
        return Err(StoreError::TooLarge {
            path: path.to_owned(),
            limit: LARGEST,
        });
    }
    Ok(bytes)
}

fn verify(path: &Path, bytes: &[u8], head: Head) -> Result<Chain, StoreError> {
    let first = head.next;
    record::read(bytes, head).map_err(|source| StoreError::Chain {
        path: path.to_owned(),
        line: match &source {
            ChainError::Line { line, .. } | ChainError::Spelling { line } => *line as u64,
            ChainError::Broken(broken) => broken.seq - first + 1,
        },
        source,
    })
}

#[cfg(test)]
mod tests;
