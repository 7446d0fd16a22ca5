//! The ledger of a run that can still grow: only what was added since is read.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use provost_core::record::{self, Head, Record};
use provost_core::run::State;
use provost_fs::stamp::Stamp;

/// The largest ledger that is written, in bytes.
const MOST: u64 = 256 * 1024 * 1024;

/// A ledger as far as it was read.
#[derive(Debug)]
pub(crate) struct OpenLedger {
    path: PathBuf,
    /// The file that was read, as device and inode.
    file: (u64, u64),
    read: u64,
    head: Head,
    pub(crate) state: State,
    pub(crate) last: Record,
}

impl OpenLedger {
    /// The ledger at `path`; `None` if it is not that of a run.
    pub(crate) fn read(path: PathBuf) -> Option<Self> {
        let (file, bytes) = added(&path, 0)?;
        let chain = record::read(&bytes, Head::genesis()).ok()?;
        let state = State::fold(&chain.records).ok()?;
        Some(Self {
            path,
            file,
            read: chain.whole as u64,
            head: chain.head,
            state,
            last: chain.records.last()?.clone(),
        })
    }

    /// The same ledger with what was added since; `None` if it does not continue what was read.
    pub(crate) fn grown(mut self, stamp: &Stamp) -> Option<Self> {
        if (stamp.device, stamp.inode) != self.file || stamp.size < self.read {
            return None;
        }
        let (file, bytes) = added(&self.path, self.read)?;
        if file != self.file {
            return None;
        }
        let chain = record::read(&bytes, self.head.clone()).ok()?;
        for record in &chain.records {
            self.state.follow(record).ok()?;
        }
        self.read += chain.whole as u64;
        self.head = chain.head;
        self.last = chain.records.into_iter().last().unwrap_or(self.last);
        Some(self)
    }
}

/// The bytes of a regular file from `from` on, and which file it is.
fn added(path: &std::path::Path, from: u64) -> Option<((u64, u64), Vec<u8>)> {
    use rustix::fs::{FileType, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let stat = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(((stat.st_dev, stat.st_ino), bytes))
}
