//! Keeps what a payload prints: the beginning and the end, with a line between them if the middle
//! is missing, and without the secrets that the driver knows.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use provost_core::object::hex;
use provost_core::secret::{Known, Scrubber};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::SandboxError;

/// The most that is held in memory until the end is known.
const LONGEST_TAIL: u64 = 256 << 10;
/// What is read at once.
const CHUNK: usize = 64 << 10;

/// What is known about one stream of an ended sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFacts {
    /// The file that holds it.
    pub path: PathBuf,
    /// How much the payload wrote, without the secrets in it.
    pub total_bytes: u64,
    /// How much of that the file holds.
    pub kept_bytes: u64,
    /// How long the file is; longer than `kept_bytes` if it has a line about what is missing.
    pub file_bytes: u64,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Whether the middle is missing.
    pub truncated: bool,
    /// How many secrets were taken out.
    #[serde(default)]
    pub redacted: u64,
}

/// A stream being read.
#[derive(Debug)]
pub(crate) struct Stream {
    pipe: Option<OwnedFd>,
    path: PathBuf,
    kept: Kept<File>,
    chunk: Vec<u8>,
    /// Bytes read so far.
    total: u64,
    /// Removes what must not be kept.
    scrubber: Option<Scrubbed>,
}

/// A stream without secrets. Bytes that are not kept are not searched: a flood must be read
/// quickly.
#[derive(Debug)]
struct Scrubbed {
    known: Known,
    scrubber: Scrubber,
    /// The last bytes, once the beginning is full.
    late: VecDeque<u8>,
    /// Bytes between the two.
    skipped: u64,
}

/// How many more bytes of the end are searched than kept, so that no secret loses its beginning.
const MARGIN: usize = 128 << 10;

impl Scrubbed {
    fn new(known: Known) -> Self {
        Self {
            scrubber: Scrubber::new(known.clone()),
            known,
            late: VecDeque::new(),
            skipped: 0,
        }
    }

    fn push<W: io::Write>(&mut self, bytes: &[u8], kept: &mut Kept<W>) -> io::Result<()> {
        if kept.head_left > 0 {
            return kept.push(&self.scrubber.push(bytes));
        }
        self.late.extend(bytes);
        let surplus = self.late.len().saturating_sub(kept.tail_limit + MARGIN);
        self.late.drain(..surplus);
        self.skipped += surplus as u64;
        Ok(())
    }

    /// Gives the rest to `kept`; returns how many secrets were removed.
    fn finish<W: io::Write>(&mut self, kept: &mut Kept<W>) -> io::Result<u64> {
        let mut removed = 0;
        if self.skipped > 0 {
            kept.push(&self.scrubber.finish())?;
            kept.total += self.skipped;
            removed = self.scrubber.removed();
            self.scrubber = Scrubber::new(self.known.clone());
        }
        let late: Vec<u8> = std::mem::take(&mut self.late).into();
        kept.push(&self.scrubber.push(&late))?;
        kept.push(&self.scrubber.finish())?;
        Ok(removed + self.scrubber.removed())
    }
}

impl Stream {
    /// Truncates the file at `path`.
    pub(crate) fn create(pipe: OwnedFd, path: &Path, limit: u64) -> Result<Self, SandboxError> {
        let file = File::create(path).map_err(|source| SandboxError::Output {
            path: path.into(),
            source,
        })?;
        rustix::io::ioctl_fionbio(&pipe, true).map_err(SandboxError::machine("a pipe"))?;
        Ok(Self {
            pipe: Some(pipe),
            path: path.into(),
            kept: Kept::new(file, limit),
            chunk: vec![0; CHUNK],
            total: 0,
            scrubber: None,
        })
    }

    /// Keeps neither `known` values nor text that has the shape of a secret.
    pub(crate) fn scrub(&mut self, known: Known) {
        self.scrubber = Some(Scrubbed::new(known));
    }

    /// What to poll; `None` once the stream has ended.
    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Bytes read so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Reads what is there without waiting; returns whether there may be more.
    pub(crate) fn read(&mut self) -> Result<bool, SandboxError> {
        let Some(pipe) = &self.pipe else {
            return Ok(false);
        };
        match rustix::io::read(pipe, &mut self.chunk) {
            Ok(0) => {
                self.pipe = None;
                Ok(false)
            }
            Ok(length) => {
                self.total += length as u64;
                let chunk = &self.chunk[..length];
                let result = match &mut self.scrubber {
                    Some(scrubbed) => scrubbed.push(chunk, &mut self.kept),
                    None => self.kept.push(chunk),
                };
                result.map_err(|source| self.unwritable(source))?;
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(SandboxError::machine("a pipe")(errno)),
        }
    }

    /// Reads the rest; returns what the file holds. The writers must be dead.
    pub(crate) fn finish(&mut self) -> Result<StreamFacts, SandboxError> {
        while self.read()? {}
        let rest = match &mut self.scrubber {
            Some(scrubbed) => scrubbed.finish(&mut self.kept),
            None => Ok(0),
        };
        let result = rest.and_then(|redacted| {
            let facts = self.kept.finish(&self.path)?;
            Ok(StreamFacts { redacted, ..facts })
        });
        result.map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: io::Error) -> SandboxError {
        SandboxError::Output {
            path: self.path.clone(),
            source,
        }
    }
}

/// How many bytes of a stream, of which `limit` are kept, can be read while it grows.
pub fn head(limit: u64) -> u64 {
    limit - (limit / 2).min(LONGEST_TAIL)
}

/// Writes the beginning as it arrives, and the end once it is known.
#[derive(Debug)]
struct Kept<W> {
    file: W,
    hasher: Sha256,
    total: u64,
    head_left: u64,
    head: u64,
    tail: VecDeque<u8>,
    tail_limit: usize,
    written: u64,
}

impl<W: io::Write> Kept<W> {
    fn new(file: W, limit: u64) -> Self {
        let tail_limit = limit - head(limit);
        Self {
            file,
            hasher: Sha256::new(),
            total: 0,
            head_left: limit - tail_limit,
            head: 0,
            tail: VecDeque::new(),
            tail_limit: usize::try_from(tail_limit).unwrap_or(0),
            written: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.total += bytes.len() as u64;
        let room = usize::try_from(self.head_left).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        if !head.is_empty() {
            self.write(head)?;
            self.head += head.len() as u64;
            self.head_left -= head.len() as u64;
        }
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn finish(&mut self, path: &Path) -> io::Result<StreamFacts> {
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let kept = self.head + tail.len() as u64;
        let missing = self.total - kept;
        if missing > 0 {
            let line = format!("\n[provost: {missing} bytes are missing here]\n");
            self.write(line.as_bytes())?;
        }
        self.write(&tail)?;
        self.file.flush()?;
        Ok(StreamFacts {
            path: path.into(),
            total_bytes: self.total,
            kept_bytes: kept,
            file_bytes: self.written,
            sha256: hex(&self.hasher.finalize_reset()),
            truncated: missing > 0,
            redacted: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use provost_core::object::sha256;

    use super::*;

    fn keep(chunks: &[Vec<u8>], limit: u64) -> (Vec<u8>, StreamFacts) {
        let mut file = Vec::new();
        let mut kept = Kept::new(&mut file, limit);
        for chunk in chunks {
            kept.push(chunk).unwrap();
        }
        let facts = kept.finish(Path::new("out")).unwrap();
        (file, facts)
    }

    proptest! {
        #[test]
        fn a_known_value_is_not_kept_however_long_the_stream_is(
            chunks in prop::collection::vec(prop::sample::select(&[
                "q7Zp2Lx9", "Vb4Nw8Rt", "q7Zp2Lx9Vb4Nw8Rt", "line\n", "\n", "some words ",
                "and a line that is a little longer than the others are\n",
            ][..]), 0..60),
            limit in 0_u64..400,
        ) {
            const VALUE: &str = "q7Zp2Lx9Vb4Nw8Rt";
            let mut file = Vec::new();
            let mut kept = Kept::new(&mut file, limit);
            let mut scrubbed = Scrubbed::new(Known::new([("TOKEN", VALUE)]));
            for chunk in &chunks {
                scrubbed.push(chunk.as_bytes(), &mut kept).unwrap();
            }
            let redacted = scrubbed.finish(&mut kept).unwrap();
            let facts = kept.finish(Path::new("out")).unwrap();
            let text = String::from_utf8(file).unwrap();
            prop_assert!(!text.contains(VALUE), "{}", text);
            let all = chunks.concat();
            prop_assert_eq!(redacted > 0, all.contains(VALUE));
            prop_assert!(facts.total_bytes <= all.len() as u64);
        }

        #[test]
        fn beginning_and_end_are_kept_and_counted(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            limit in 0u64..120,
        ) {
            let all: Vec<u8> = chunks.concat();
            let (file, facts) = keep(&chunks, limit);
            prop_assert_eq!(facts.total_bytes, all.len() as u64);
            prop_assert_eq!(facts.file_bytes, file.len() as u64);
            prop_assert_eq!(facts.sha256, sha256(&file));
            prop_assert_eq!(facts.truncated, all.len() as u64 > limit);
            if facts.truncated {
                prop_assert_eq!(facts.kept_bytes, limit);
                let tail = usize::try_from(limit / 2).unwrap();
                let head = usize::try_from(limit).unwrap() - tail;
                prop_assert_eq!(&file[..head], &all[..head]);
                prop_assert_eq!(&file[file.len() - tail..], &all[all.len() - tail..]);
            } else {
                prop_assert_eq!(file, all);
            }
        }
    }
}
