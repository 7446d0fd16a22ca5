//! Reads the files that the walk found, each once, and hashes their content.

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};

use provost_core::change::{Finding, FindingKind, Node};
use provost_core::object::{Kind, Mode as FileMode, ObjectFormat, Oid};
use provost_core::pack::Entry;
use provost_core::path::RawPath;
use rayon::prelude::*;
use rustix::fs::{FileType, Mode as Permissions, OFlags};

use super::walk::{Seen, What};
use super::{Limits, Mode, finding};
use provost_fs::beneath::Beneath;

/// The content at a captured path.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) side: Node,
    /// Whether the base has no such blob.
    pub(super) new: bool,
    /// The blob for the pack, if it must be written.
    pub(super) entry: Option<Entry>,
    /// Whether it differs from the base and is not text.
    pub(super) binary: bool,
    /// The target, if it is a link that differs from the base.
    pub(super) link: Option<RawPath>,
}

/// What all threads share.
pub(super) struct Reader<'a> {
    root: &'a Beneath,
    base: &'a BTreeMap<RawPath, Node>,
    known: HashSet<&'a Oid>,
    limits: &'a Limits,
    mode: Mode,
    format: ObjectFormat,
    new_bytes: AtomicU64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        root: &'a Beneath,
        base: &'a BTreeMap<RawPath, Node>,
        known: HashSet<&'a Oid>,
        limits: &'a Limits,
        mode: Mode,
        format: ObjectFormat,
    ) -> Self {
        Self {
            root,
            base,
            known,
            limits,
            mode,
            format,
            new_bytes: AtomicU64::new(0),
        }
    }

    /// Reads everything within the limits; what exceeds them is a finding.
    pub(super) fn read(
        &self,
        seen: &[Seen],
        findings: &mut Vec<Finding>,
    ) -> BTreeMap<RawPath, Content> {
        let mut total = 0_u64;
        let fits = |one: &&Seen| {
            let too_large = |note: String| finding(&one.path, FindingKind::TooLarge, note);
            if one.size > self.limits.file_bytes {
                findings.push(too_large(format!("{} bytes", one.size)));
                return false;
            }
            total = total.saturating_add(one.size);
            if total > self.limits.total_bytes {
                let note = format!("all files have more than {} bytes", self.limits.total_bytes);
                findings.push(too_large(note));
                return false;
            }
            true
        };
        let fitting: Vec<&Seen> = seen.iter().filter(fits).collect();
        let read = |buffer: &mut Vec<u8>, one: &&Seen| {
            buffer.clear();
            let content = self.one(one, buffer);
            // A large file should not hold its memory for the rest of the walk.
            buffer.shrink_to(1 << 20);
            content.map(|content| (one.path.clone(), content))
        };
        let results: Vec<Result<(RawPath, Content), Finding>> =
            fitting.par_iter().map_init(Vec::new, read).collect();
        let mut contents = BTreeMap::new();
        for result in results {
            match result {
                Ok((path, content)) => {
                    contents.insert(path, content);
                }
                Err(finding) => findings.push(finding),
            }
        }
        contents
    }

    fn one(&self, seen: &Seen, buffer: &mut Vec<u8>) -> Result<Content, Finding> {
        let (mode, bytes): (FileMode, &[u8]) = match &seen.what {
            What::Gitlink => return self.gitlink(seen),
            What::Link { target } => (FileMode::Symlink, target),
            What::File { executable } => {
                let unreadable = |note| finding(&seen.path, FindingKind::Unreadable, note);
                self.fill(seen, buffer).map_err(unreadable)?;
                let mode = if *executable {
                    FileMode::Executable
                } else {
                    FileMode::File
                };
                (mode, buffer)
            }
        };
        let oid = self.format.oid(Kind::Blob, bytes).map_err(|collision| {
            finding(&seen.path, FindingKind::Collision, collision.to_string())
        })?;
        let side = Node { mode, oid };
        let differs = self.base.get(&seen.path) != Some(&side);
        let new = !self.known.contains(&side.oid);
        let link = (differs && mode == FileMode::Symlink).then(|| RawPath::new(bytes));
        let entry = if new && self.mode == Mode::Record {
            self.take_room(seen)?;
            Some(Entry::named(side.oid.clone(), Kind::Blob, bytes))
        } else {
            None
        };
        Ok(Content {
            side,
            new,
            entry,
            binary: differs && bytes.contains(&0),
            link,
        })
    }

    /// An empty directory where the base has a gitlink.
    fn gitlink(&self, seen: &Seen) -> Result<Content, Finding> {
        let missing = || {
            finding(
                &seen.path,
                FindingKind::Unreadable,
                "no gitlink in the base",
            )
        };
        let side = self.base.get(&seen.path).cloned().ok_or_else(missing)?;
        Ok(Content {
            side,
            new: false,
            entry: None,
            binary: false,
            link: None,
        })
    }

    /// Reads the file into `buffer`, if it is still the file that the walk found.
    fn fill(&self, seen: &Seen, buffer: &mut Vec<u8>) -> Result<(), String> {
        let words = |error: rustix::io::Errno| error.to_string();
        let changed = || "changed while it was read".to_owned();
        let file = self
            .root
            .open(seen.path.as_bytes(), OFlags::RDONLY, Permissions::empty())
            .map_err(words)?;
        let stat = rustix::fs::fstat(&file).map_err(words)?;
        let same = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && (stat.st_dev, stat.st_ino) == seen.file
            && u64::try_from(stat.st_size) == Ok(seen.size);
        if !same {
            return Err(changed());
        }
        let size = usize::try_from(seen.size).map_err(|_| changed())?;
        buffer.reserve(size + 1);
        std::fs::File::from(file)
            .take(seen.size + 1)
            .read_to_end(buffer)
            .map_err(|error| error.to_string())?;
        if buffer.len() == size {
            Ok(())
        } else {
            Err(changed())
        }
    }

    /// Subtracts the size of a new blob from the limit.
    fn take_room(&self, seen: &Seen) -> Result<(), Finding> {
        let before = self.new_bytes.fetch_add(seen.size, Ordering::Relaxed);
        if before.saturating_add(seen.size) <= self.limits.new_bytes {
            return Ok(());
        }
        let note = format!("new files have more than {} bytes", self.limits.new_bytes);
        Err(finding(&seen.path, FindingKind::TooLarge, note))
    }
}
