//! Remembers the digests of files together with their stat data.
//!
//! The cache file lies where no agent can write. A damaged one, or one of another version, counts
//! as none.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::{Inventory, Row, Sha};

/// First bytes of a cache file; every version has its own.
const MAGIC: &[u8; 16] = b"provost-files-1\n";

/// A file whose times are this close to the reading may change later without a trace; some file
/// systems count in whole seconds.
const RACY_NANOS: i128 = 2_000_000_000;

/// The largest cache file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Stat data of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: i64,
    pub(super) mode: u32,
    pub(super) modified: i128,
    pub(super) changed: i128,
}

/// Bytes of an encoded [`Known`].
const KNOWN: usize = 8 + 8 + 8 + 4 + 16 + 16;

/// Bytes of a record, without its path.
const RECORD: usize = KNOWN + size_of::<Sha>() + size_of::<u32>();

/// What is remembered, by path: an encoded [`Known`] and the digest.
pub(super) type Remembered<'a> = HashMap<&'a [u8], (&'a [u8; KNOWN], &'a Sha)>;

impl Known {
    pub(super) fn bytes(&self) -> [u8; KNOWN] {
        let mut bytes = [0; KNOWN];
        let parts: [&[u8]; 6] = [
            &self.device.to_le_bytes(),
            &self.inode.to_le_bytes(),
            &self.size.to_le_bytes(),
            &self.mode.to_le_bytes(),
            &self.modified.to_le_bytes(),
            &self.changed.to_le_bytes(),
        ];
        let places = bytes.iter_mut();
        for (place, byte) in places.zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        bytes
    }
}

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
        let beside = self
            .path
            .with_extension(format!("{}.new", std::process::id()));
        let digest = Sha256::digest(&self.bytes);
        let mut file = fs::File::create(&beside)?;
        for part in [MAGIC.as_slice(), digest.as_slice(), &self.bytes] {
            file.write_all(part)?;
        }
        fs::rename(&beside, &self.path)
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
        let settled = |row: &&Row| {
            let latest = row.stat.modified.max(row.stat.changed);
            latest + RACY_NANOS < began
        };
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

type Record<'a> = (&'a [u8], (&'a [u8; KNOWN], &'a Sha), &'a [u8]);

/// The first record of `bytes`, and the rest.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (known, rest) = bytes.split_first_chunk()?;
    let (sha, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (path, rest) = rest.split_at_checked(length)?;
    Some((path, (known, sha), rest))
}

/// The current time, by the clock of file stamps.
pub(super) fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}
