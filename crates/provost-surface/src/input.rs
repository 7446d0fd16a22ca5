//! Reads files that the user names, within bounds.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::check;
use provost_core::contract::document::Document;
use provost_core::document::{self, Format};
use provost_core::path::RepoPath;
use provost_engine::drive::Source;
#[cfg(feature = "formats")]
use provost_fs::beneath;
use rustix::fs::OFlags;
use serde_json::Value;

use crate::answer::Failure;

/// Reads `path`, or stdin when it is `-`, up to `limit` bytes.
///
/// Anything but a regular file is refused: a directory has no bytes, and a fifo or a device may
/// never end.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let (bytes, too_large) = read_front(path, limit)?;
    too_large.map_or(Ok(bytes), Err)
}

/// The same; for a larger file, its first `limit` bytes and the failure.
pub fn read_front(path: &Path, limit: usize) -> Result<(Vec<u8>, Option<Failure>), Failure> {
    if path == Path::new("-") {
        return bounded(io::stdin().lock(), path, limit);
    }
    let file = open(path).map_err(|error| match error {
        NoFile::Failed(error) => Failure::of(Code::InputUnreadable, &error).about(path),
        NoFile::Irregular => Failure::new(Code::InputUnreadable, "is not a regular file")
            .about(path)
            .hint("give a file, or `-` to read from stdin"),
    })?;
    bounded(file, path, limit)
}

/// The same for a file that a payload names: no symbolic link is followed, and a relative path does
/// not leave the current directory. `None` if there is no such file.
#[cfg(feature = "formats")]
pub fn read_named(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
    let file = match beneath::open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let hint = "name the file itself, below the current directory";
            let failure = Failure::of(Code::InputUnreadable, &error);
            return Err(failure.about(path).hint(hint));
        }
    };
    let (bytes, too_large) = bounded(file, path, limit)?;
    too_large.map_or(Ok(Some(bytes)), Err)
}

enum NoFile {
    Failed(io::Error),
    Irregular,
}

/// Opens a regular file; never blocks on a fifo.
fn open(path: &Path) -> Result<File, NoFile> {
    // Without O_NONBLOCK, opening a fifo waits for a writer that may never come.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path);
    let file = file.map_err(NoFile::Failed)?;
    match file.metadata() {
        Ok(entry) if entry.is_file() => Ok(file),
        Ok(_) => Err(NoFile::Irregular),
        Err(error) => Err(NoFile::Failed(error)),
    }
}

/// A contract from a file, with its source.
#[derive(Debug)]
pub struct Written {
    pub document: Document,
    /// Its bytes, as the bundle keeps them.
    pub source: Source,
}

/// Reads a contract in the format of its file name; else as JSON.
pub fn contract(file: &Path) -> Result<Written, Failure> {
    written(file, read(file, contract::LARGEST)?)
}

/// The contract in `bytes` of the file.
pub fn written(file: &Path, bytes: Vec<u8>) -> Result<Written, Failure> {
    let value = value(file, &bytes)?;
    let document = contract::from_value(&value).map_err(|error| no_contract(file, &error))?;
    let format = format(file);
    let path = format!("contract.source.{}", format.ending());
    let source = Source { path, bytes };
    Ok(Written { document, source })
}

/// The document in `bytes` of the file, whether or not it is a contract.
pub fn value(file: &Path, bytes: &[u8]) -> Result<Value, Failure> {
    document::parse(format(file), bytes).map_err(|error| no_contract(file, &error))
}

/// The hint for a file that is no contract.
pub const EXPLAINED: &str = "`provost explain contract` shows every field and an example";

fn no_contract(file: &Path, error: &dyn std::error::Error) -> Failure {
    let failure = Failure::of(Code::InputInvalid, error).about(file);
    failure.hint(EXPLAINED)
}

/// The format of a contract file, by its name.
pub fn format(file: &Path) -> Format {
    Format::of_name(&file.to_string_lossy()).unwrap_or(Format::Json)
}

/// Reads a file of the repository at `root` that a contract refers to.
pub fn reference(root: &Path, path: &RepoPath) -> Option<Vec<u8>> {
    let root = root.canonicalize().ok()?;
    let place = root.join(path.as_str()).canonicalize().ok()?;
    // A link out of the repository leads to none of its files.
    let file = open(place.starts_with(&root).then_some(&place)?).ok()?;
    // One byte more, so that a file over the limit is detected.
    let mut bytes = Vec::new();
    let most = check::LARGEST_REFERENCE as u64 + 1;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn bounded(
    source: impl Read,
    path: &Path,
    limit: usize,
) -> Result<(Vec<u8>, Option<Failure>), Failure> {
    let mut bytes = Vec::new();
    source
        .take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::of(Code::InputUnreadable, &error).about(path))?;
    let too_large = (bytes.len() > limit).then(|| {
        let reason = format!("is larger than the {limit} bytes that are read");
        Failure::new(Code::InputTooLarge, reason).about(path)
    });
    Ok((bytes, too_large))
}

impl Failure {
    /// The same failure, with the file `path` named.
    #[must_use]
    pub fn about(mut self, path: &Path) -> Self {
        let name = if path == Path::new("-") {
            "stdin".to_owned()
        } else {
            format!("`{}`", path.display())
        };
        self.reason = format!("{name}: {}", self.reason);
        self
    }
}
