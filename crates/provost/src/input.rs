//! Reads the files a person names, within bounds.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use provost_core::code::Code;
use provost_core::contract::document::Document;
use provost_core::{contract, json};
use provost_dialects::document::{self, Format};
use rustix::fs::OFlags;

use crate::answer::Failure;

/// Reads `path`, or stdin when it is `-`, up to `limit` bytes.
///
/// Anything but a regular file is refused: a directory has no bytes, and a fifo or a device may
/// never end.
pub(crate) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return bounded(io::stdin().lock(), path, limit);
    }
    let unreadable = |error: &io::Error| Failure::of(Code::InputUnreadable, error).about(path);
    // Without O_NONBLOCK, opening a fifo waits for a writer that may never come.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| unreadable(&error))?;
    let kind = file
        .metadata()
        .map_err(|error| unreadable(&error))?
        .file_type();
    if !kind.is_file() {
        return Err(Failure::new(Code::InputUnreadable, "is not a regular file")
            .about(path)
            .hint("give a file, or `-` to read from stdin"));
    }
    bounded(file, path, limit)
}

/// Reads a contract that is written as the end of its file's name says; else as JSON.
pub(crate) fn contract(file: &Path) -> Result<Document, Failure> {
    let bytes = read(file, json::LARGEST)?;
    let wrong = |error: &dyn std::error::Error| {
        Failure::of(Code::InputInvalid, error)
            .about(file)
            .hint("`provost explain contract` shows every field and an example")
    };
    let format = Format::of_name(&file.to_string_lossy()).unwrap_or(Format::Json);
    let value = document::parse(format, &bytes).map_err(|error| wrong(&error))?;
    contract::from_value(value).map_err(|error| wrong(&error))
}

fn bounded(source: impl Read, path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source
        .take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::of(Code::InputUnreadable, &error).about(path))?;
    if bytes.len() > limit {
        let reason = format!("is larger than the {limit} bytes that are read");
        return Err(Failure::new(Code::InputTooLarge, reason).about(path));
    }
    Ok(bytes)
}

impl Failure {
    /// The same failure, said of the file `path`.
    pub(crate) fn about(mut self, path: &Path) -> Self {
        let name = if path == Path::new("-") {
            "stdin".to_owned()
        } else {
            format!("`{}`", path.display())
        };
        self.reason = format!("{name}: {}", self.reason);
        self
    }
}
