//! Remembers the digests of files together with their stat data.
//!
//! The cache file lies where no agent can write. A damaged one, or one of another version, counts
//! as none.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use provost_fs::atomic::{self, Durability};
use provost_fs::stamp::{self, StampBytes};
use sha2::{Digest as _, Sha256};

use super::{Inventory, Row, Sha};

/// First bytes of a cache file; every version has its own.
const MAGIC: &[u8; 16] = b"provost-files-1\n";

/// The largest cache file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Bytes of a record, without its path.
const RECORD: usize = stamp::LENGTH + size_of::<Sha>() + size_of::<u32>();

/// What is remembered, by path: the stamp and the digest.
pub(super) type Remembered<'a> = HashMap<&'a [u8], (&'a StampBytes, &'a Sha)>;

#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    bytes: Vec<u8>,
    dirty: bool,
}

impl Cache {
    /// The cache in the file `path`, which need not exist.
    pub fn open(path: &Path) -> Self {
        let fits = fs::metadata(path).is_ok_and(|facts| facts.len() <= LARGEST);
        let bytes = if fits { fs::read(path).ok() } else { None };
        let bytes = bytes.and_then(|bytes| whole(&bytes)).unwrap_or_default();
        Self {
            path: path.to_owned(),
            bytes,
            dirty: false,
        }
    }

    /// Remembers `inventory`, which must have been taken with this cache.
    pub fn keep(&mut self, inventory: &Inventory) -> io::Result<()> {
        if inventory.known {
            return Ok(());
        }
        self.replace(&inventory.rows, inventory.began);
        self.save()
    }

    /// Writes the cache, if it has anything new.
    pub(super) fn save(&self) -> io::Result<()> {
        if !self.dirty {
            return Ok(());
        }
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent)?;
        }
        let digest = Sha256::digest(&self.bytes);
        let file = [MAGIC.as_slice(), digest.as_slice(), &self.bytes].concat();
        atomic::replace(&self.path, &file, 0o600, Durability::Cache)
    }

    pub(super) fn known(&self) -> Remembered<'_> {
        // Paths are mostly longer than eight bytes, so this capacity suffices.
        let mut known = HashMap::with_capacity(self.bytes.len() / (RECORD + 8));
        let mut rest = self.bytes.as_slice();
        while let Some((path, row, tail)) = record(rest) {
            known.insert(path, row);
            rest = tail;
        }
        known
    }

    /// Remembers `rows`, read since `began`, except those that may have changed in between.
    pub(super) fn replace(&mut self, rows: &[Row], began: i128) {
        let mut bytes = Vec::with_capacity(rows.len() * (RECORD + 40));
        let settled = |row: &&Row| row.stat.is_settled(began);
        for row in rows.iter().filter(settled) {
            let path = row.path.as_str().as_bytes();
            let Ok(length) = u32::try_from(path.len()) else {
                continue;
            };
            bytes.extend(row.stat.bytes());
            bytes.extend(row.sha);
            bytes.extend(length.to_le_bytes());
            bytes.extend(path);
        }
        self.dirty = bytes != self.bytes;
        self.bytes = bytes;
    }
}

/// The records of a cache file, if it is complete.
fn whole(file: &[u8]) -> Option<Vec<u8>> {
    let rest = file.strip_prefix(MAGIC.as_slice())?;
    let (digest, records) = rest.split_at_checked(32)?;
    (Sha256::digest(records).as_slice() == digest).then(|| records.to_vec())
}

type Record<'a> = (&'a [u8], (&'a StampBytes, &'a Sha), &'a [u8]);

/// The first record of `bytes`, and the rest.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (known, rest) = bytes.split_first_chunk()?;
    let (sha, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (path, rest) = rest.split_at_checked(length)?;
    Some((path, (known, sha), rest))
}
