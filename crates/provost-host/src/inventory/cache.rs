//! Remembers the digests of files together with what the kernel says of them.
//!
//! The file is ours alone: it lies where no agent writes. One that is damaged, or of another
//! version, is as good as none.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::{Row, Sha};

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

const RECORD: usize = 8 + 8 + 8 + 4 + 16 + 16 + 32 + 4;

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

    /// Writes the cache, if there is anything new in it.
    pub fn save(&self) -> io::Result<()> {
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
        let file = [MAGIC.as_slice(), digest.as_slice(), &self.bytes].concat();
        fs::write(&beside, file)?;
        fs::rename(&beside, &self.path)
    }

    /// What is remembered, by path.
    pub(super) fn known(&self) -> HashMap<&[u8], (Known, Sha)> {
        let mut known = HashMap::new();
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
            bytes.extend(row.stat.device.to_le_bytes());
            bytes.extend(row.stat.inode.to_le_bytes());
            bytes.extend(row.stat.size.to_le_bytes());
            bytes.extend(row.stat.mode.to_le_bytes());
            bytes.extend(row.stat.modified.to_le_bytes());
            bytes.extend(row.stat.changed.to_le_bytes());
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

type Record<'a> = (&'a [u8], (Known, Sha), &'a [u8]);

/// The first record of `bytes`, and what follows.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (device, rest) = bytes.split_first_chunk()?;
    let (inode, rest) = rest.split_first_chunk()?;
    let (size, rest) = rest.split_first_chunk()?;
    let (mode, rest) = rest.split_first_chunk()?;
    let (modified, rest) = rest.split_first_chunk()?;
    let (changed, rest) = rest.split_first_chunk()?;
    let (sha, rest) = rest.split_first_chunk::<32>()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (path, rest) = rest.split_at_checked(length)?;
    let known = Known {
        device: u64::from_le_bytes(*device),
        inode: u64::from_le_bytes(*inode),
        size: i64::from_le_bytes(*size),
        mode: u32::from_le_bytes(*mode),
        modified: i128::from_le_bytes(*modified),
        changed: i128::from_le_bytes(*changed),
    };
    Some((path, (known, *sha), rest))
}

/// Now, by the clock that files are stamped with.
pub(super) fn now() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(_) => 0,
    }
}
