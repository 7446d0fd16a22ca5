//! Remembers the digests of files together with what the kernel says of them.
//!
//! The file is ours alone: it lies where no agent writes. One that is damaged, or of another
//! version, is as good as none.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::{Inventory, Row, Sha};

/// What a cache begins with; another version has another one.
const MAGIC: &[u8; 16] = b"provost-files-1\n";

/// A file whose times are this near to the reading may have changed afterwards without a trace;
/// some file systems count in whole seconds.
const RACY_NANOS: i128 = 2_000_000_000;

/// The largest cache that is read.
const LARGEST: u64 = 1 << 30;

/// What the kernel says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: i64,
    pub(super) mode: u32,
    pub(super) modified: i128,
    pub(super) changed: i128,
}

/// How long a [`Known`] is in the file.
const KNOWN: usize = 8 + 8 + 8 + 4 + 16 + 16;

/// How long a record is, without its path.
const RECORD: usize = KNOWN + size_of::<Sha>() + size_of::<u32>();

/// What is remembered, by path: a [`Known`] as it is in the file, and the digest.
pub(super) type Remembered<'a> = HashMap<&'a [u8], (&'a [u8; KNOWN], &'a Sha)>;

impl Known {
    /// Itself as it is in the file.
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

/// A cache for one directory.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    bytes: Vec<u8>,
    dirty: bool,
}

impl Cache {
    /// The cache kept in the file `path`, which need not be there.
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

    /// Remembers `inventory`, which was taken with this cache.
    pub fn keep(&mut self, inventory: &Inventory) -> io::Result<()> {
        if inventory.known {
            return Ok(());
        }
        self.replace(&inventory.rows, inventory.began);
        self.save()
    }

    /// Writes the cache, if there is anything new in it.
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
        // Paths are mostly longer than nothing, so this is room enough.
        let mut known = HashMap::with_capacity(self.bytes.len() / (RECORD + 8));
        let mut rest = self.bytes.as_slice();
        while let Some((path, row, tail)) = record(rest) {
            known.insert(path, row);
            rest = tail;
        }
        known
    }

    /// Remembers `rows`, whose reading began at `began`, except those that may have changed since.
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

/// The records of a cache file, if it is whole.
fn whole(file: &[u8]) -> Option<Vec<u8>> {
    let rest = file.strip_prefix(MAGIC.as_slice())?;
    let (digest, records) = rest.split_at_checked(32)?;
    (Sha256::digest(records).as_slice() == digest).then(|| records.to_vec())
}

type Record<'a> = (&'a [u8], (&'a [u8; KNOWN], &'a Sha), &'a [u8]);

/// The first record of `bytes`, and what follows.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (known, rest) = bytes.split_first_chunk()?;
    let (sha, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (path, rest) = rest.split_at_checked(length)?;
    Some((path, (known, sha), rest))
}

/// Now, by the clock that files are stamped with.
pub(super) fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}
