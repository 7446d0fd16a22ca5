//! Reads regular files within a limit, and nothing else.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum RegularFileError {
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
}

/// The content of the regular file at `path`; `None` if there is none. No link is followed at its
/// last component.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegularFileError> {
    // Opening a fifo must not block until a writer appears.
    let flags = OFlags::NOFOLLOW
        .union(OFlags::NONBLOCK)
        .bits()
        .cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a regular file").into());
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(RegularFileError::TooLarge { limit });
    }
    Ok(Some(bytes))
}
