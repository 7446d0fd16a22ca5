//! Keeps bodies of one run by their digests, compressed, readable by their user alone.
//!
//! # Invariants
//!
//! - A body is read only if it has the length and the digest that its name says.
//! - A file is whole or not there. What does not fit within the limit is left out, and its line of
//!   the index says so.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::secret::Known;
use provost_fs::atomic::{self, Durability};

use crate::exchange::{Exchange, KeptBody, LeftOut};

/// How much the bodies of one run may take on disk, in bytes.
pub const MOST: u64 = 256 << 20;

/// The largest body that is kept, in bytes before it is compressed.
pub const LARGEST: u64 = 64 << 20;

/// The directory of the indexes, beside the bodies.
const INDEX: &str = "index";

/// The longest line of an index that is read.
const LONGEST_LINE: u64 = 1 << 20;

/// The directory of all bodies in the runtime root `root`.
pub fn root(root: &Path) -> PathBuf {
    root.join("bodies")
}

/// The directory with the bodies of the run `run_id`, in the runtime root `root`.
pub fn directory(runtime: &Path, run_id: &str) -> PathBuf {
    root(runtime).join(run_id)
}

/// Keeps the bodies of one agent of a run.
#[derive(Debug)]
pub struct BodyStore {
    directory: PathBuf,
    most: u64,
    state: Mutex<StoreState>,
}

#[derive(Debug)]
struct StoreState {
    /// Bytes on disk, of all agents of the run.
    used: u64,
    index: File,
    next: u64,
}

/// A body that is compressed while it passes.
#[derive(Debug)]
pub struct BodyCapture {
    compressed: GzEncoder<Vec<u8>>,
    bytes: u64,
}

impl Default for BodyCapture {
    fn default() -> Self {
        Self {
            compressed: GzEncoder::new(Vec::new(), Compression::fast()),
            bytes: 0,
        }
    }
}

impl BodyCapture {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes <= LARGEST {
            // Writing to memory does not fail.
            let _ = self.compressed.write_all(bytes);
        }
    }
}

impl BodyStore {
    /// A store in `directory`, with the index `name`, for bodies of `most` bytes on disk in all.
    pub fn open(directory: &Path, name: &str, most: u64) -> io::Result<Self> {
        let path = directory.join(INDEX).join(name);
        private_directory(path.parent().unwrap_or(directory))?;
        let index = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        let state = StoreState {
            used: taken(directory)?,
            index,
            next: 1,
        };
        Ok(Self {
            directory: directory.to_owned(),
            most,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next exchange.
    pub fn number(&self) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        number
    }

    /// Keeps what was captured, whose digest is `sha256` and from which `removed` secrets were
    /// removed.
    pub fn keep(&self, body: BodyCapture, sha256: String, removed: u64) -> KeptBody {
        let BodyCapture { compressed, bytes } = body;
        let left_out = if bytes > LARGEST {
            Some(LeftOut::Large)
        } else {
            compressed
                .finish()
                .map_or(Some(LeftOut::Unwritten), |packed| {
                    self.write(&sha256, &packed)
                })
        };
        KeptBody {
            bytes,
            sha256,
            removed,
            left_out,
        }
    }

    fn write(&self, sha256: &str, packed: &[u8]) -> Option<LeftOut> {
        let mut state = self.state();
        let path = file(&self.directory, sha256);
        if path.symlink_metadata().is_ok() {
            return None;
        }
        let length = packed.len() as u64;
        if state.used.saturating_add(length) > self.most {
            return Some(LeftOut::Limit);
        }
        if atomic::replace(&path, packed, 0o600, Durability::Cache).is_err() {
            return Some(LeftOut::Unwritten);
        }
        state.used += length;
        None
    }

    /// Adds a line to the index. What is missing there is noticed when the run is replayed.
    pub fn add(&self, exchange: &Exchange) {
        let Ok(mut line) = serde_json::to_vec(exchange) else {
            return;
        };
        line.push(b'\n');
        let _ = self.state().index.write_all(&line);
    }
}

fn file(directory: &Path, sha256: &str) -> PathBuf {
    directory.join(format!("{sha256}.gz"))
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// How many bytes the bodies in `directory` take.
fn taken(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let found = entry?.metadata()?;
        if found.is_file() {
            bytes += found.len();
        }
    }
    Ok(bytes)
}

/// Why the record of a run cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    #[error("the bodies of the run were not recorded, or were removed")]
    Absent,
    #[error("the index of the recorded bodies cannot be read: {0}")]
    Index(String),
    #[error("the body {0} is missing")]
    Missing(String),
    #[error("the body {0} is not what its digest says")]
    Changed(String),
    #[error("the body {0} was not kept: {1}")]
    LeftOut(String, &'static str),
}

/// The exchanges in the index `name` of `directory`, in their order.
pub fn exchanges(directory: &Path, name: &str) -> Result<Vec<Exchange>, RecordProblem> {
    let problem = |error: &dyn std::fmt::Display| RecordProblem::Index(error.to_string());
    let file = match File::open(directory.join(INDEX).join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RecordProblem::Absent),
        file => file.map_err(|error| problem(&error))?,
    };
    let mut reader = BufReader::new(file);
    let mut all: Vec<Exchange> = Vec::new();
    loop {
        let mut line = Vec::new();
        let mut limited = reader.by_ref().take(LONGEST_LINE);
        let read = limited.read_until(b'\n', &mut line);
        if read.map_err(|error| problem(&error))? == 0 {
            break;
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(problem(&"a line has no end"));
        };
        all.push(json::parse_as(line).map_err(|error| problem(&error))?);
    }
    all.sort_by_key(|exchange| exchange.number);
    Ok(all)
}

/// Reads a body that is kept in `directory`.
pub fn read(directory: &Path, body: &KeptBody) -> Result<Vec<u8>, RecordProblem> {
    let short = body.sha256.chars().take(12).collect::<String>();
    if let Some(why) = body.left_out {
        return Err(RecordProblem::LeftOut(short, why.words()));
    }
    let is_digest = body.sha256.len() == 64 && body.sha256.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_digest || body.bytes > LARGEST {
        return Err(RecordProblem::Changed(short));
    }
    let Ok(packed) = File::open(file(directory, &body.sha256)) else {
        return Err(RecordProblem::Missing(short));
    };
    let mut bytes = Vec::new();
    let mut plain = GzDecoder::new(packed).take(body.bytes + 1);
    let read = plain.read_to_end(&mut bytes);
    if read.is_err() || sha256(&bytes) != body.sha256 {
        return Err(RecordProblem::Changed(short));
    }
    Ok(bytes)
}

/// Removes the bodies in `directory` that hold a secret of `known`.
pub fn forget(directory: &Path, known: &Known) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if !path.is_file() {
            continue;
        }
        let mut bytes = Vec::new();
        let read = GzDecoder::new(File::open(&path)?).take(LARGEST + 1);
        // What cannot be read cannot be searched either.
        let read = { read }.read_to_end(&mut bytes);
        if read.is_err() || known.is_in(&bytes) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// What is kept of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub files: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether the limit was reached, so that bodies were left out.
    pub is_full: bool,
}

/// What is kept in `directory`; `None` if nothing ever was.
pub fn kept(directory: &Path) -> Option<Kept> {
    let mut kept = Kept::default();
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let Ok(found) = entry.metadata() else {
            continue;
        };
        if found.is_file() {
            kept.files += 1;
            kept.bytes += found.len();
        }
    }
    kept.is_full = index_files(&directory.join(INDEX)).iter().any(|name| {
        let all = exchanges(directory, name).unwrap_or_default();
        let bodies = all.iter().flat_map(|it| [&it.request, &it.answer.body]);
        bodies
            .into_iter()
            .any(|body| body.left_out == Some(LeftOut::Limit))
    });
    Some(kept)
}

/// The names of all indexes below `root`.
fn index_files(root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                Ok(kind) if kind.is_file() => {
                    let name = path.strip_prefix(root).ok().and_then(Path::to_str);
                    names.extend(name.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    names
}

#[cfg(test)]
mod tests;
