//! Parses the bytes of a git index.
//!
//! Any program in the checkout can write the index, so it is untrusted input. It is read to see
//! what a commit would take, and which paths are hidden from git.
//!
//! # Invariants
//!
//! - Versions 2 to 4, both object formats. Anything else, also an extension that changes the
//!   meaning of the entries, is an error and never an empty index.
//! - Every path is relative, has no empty, `.`, `..` or `.git` component, and comes in git's order.

use provost_core::object::{Mode, ObjectFormat, Oid};
use provost_core::path::{LONGEST, RawPath};
use provost_core::tree::name_is_safe;

/// The most bytes an index may have.
pub const LARGEST: usize = 256 << 20;

/// One path of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    pub path: RawPath,
    pub mode: Mode,
    pub oid: Oid,
    /// Modification time of the file, in seconds and nanoseconds, as git saw it.
    pub modified: (u32, u32),
    /// The size of the file, truncated to 32 bits, as git saw it.
    pub size: u32,
    /// 0, or the side of a conflict from 1 to 3.
    pub stage: u8,
    /// The `assume-unchanged` flag: git does not look for changes of the file.
    pub assume_valid: bool,
    /// The `skip-worktree` flag: git does not expect the file on disk.
    pub skip_worktree: bool,
    /// The path was added with `git add --intent-to-add`, without content.
    pub intent_to_add: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("the index has more than {LARGEST} bytes")]
    TooLarge,
    #[error("the index does not begin as one")]
    NoIndex,
    #[error("the index has version {0}")]
    Version(u32),
    #[error("the index is damaged at byte {0}")]
    Damaged(usize),
    #[error("the checksum of the index is wrong")]
    Checksum,
    /// A path that cannot be in a tree.
    #[error("the index holds the path `{0}`")]
    Path(RawPath),
    /// Entries not in git's order, or a duplicate.
    #[error("the index is out of order at `{0}`")]
    Order(RawPath),
    /// An extension that changes the meaning of the entries.
    #[error("the index needs the extension `{0}`")]
    Extension(String),
}

pub fn parse(bytes: &[u8], format: ObjectFormat) -> Result<Vec<Entry>, IndexError> {
    if bytes.len() > LARGEST {
        return Err(IndexError::TooLarge);
    }
    let width = format.width();
    let Some((body, checksum)) = bytes
        .len()
        .checked_sub(width)
        .and_then(|at| bytes.split_at_checked(at))
        .filter(|(body, _)| body.starts_with(b"DIRC") && body.len() >= 12)
    else {
        return Err(IndexError::NoIndex);
    };
    let mut reader = Reader {
        bytes: body,
        at: 4,
        format,
    };
    let version = reader.u32()?;
    if !(2..=4).contains(&version) {
        return Err(IndexError::Version(version));
    }
    // Git may be configured to leave the checksum out.
    if checksum.iter().any(|byte| *byte != 0) && checksum != format.checksum(body) {
        return Err(IndexError::Checksum);
    }
    let count = reader.u32()?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let last = entries
            .last()
            .map_or(&[][..], |entry| entry.path.as_bytes());
        let entry = reader.entry(version, last)?;
        if !is_path(entry.path.as_bytes()) {
            return Err(IndexError::Path(entry.path));
        }
        let sorted = |last: &Entry| (&last.path, last.stage) < (&entry.path, entry.stage);
        if !entries.last().is_none_or(sorted) {
            return Err(IndexError::Order(entry.path));
        }
        entries.push(entry);
    }
    reader.extensions()?;
    Ok(entries)
}

/// Whether a tree could hold this path.
fn is_path(path: &[u8]) -> bool {
    path.len() <= LONGEST && path.split(|byte| *byte == b'/').all(name_is_safe)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    format: ObjectFormat,
}

impl<'a> Reader<'a> {
    fn damaged(&self) -> IndexError {
        IndexError::Damaged(self.at)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], IndexError> {
        let end = self.at.checked_add(count);
        let piece = end.and_then(|end| self.bytes.get(self.at..end));
        let piece = piece.ok_or_else(|| self.damaged())?;
        self.at += count;
        Ok(piece)
    }

    fn u16(&mut self) -> Result<u16, IndexError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, IndexError> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn entry(&mut self, version: u32, last: &[u8]) -> Result<Entry, IndexError> {
        let start = self.at;
        self.take(8)?;
        let modified = (self.u32()?, self.u32()?);
        self.take(8)?;
        let mode = self.u32()?;
        let mode = Mode::parse(format!("{mode:06o}").as_bytes())
            .filter(|mode| *mode != Mode::Tree)
            .ok_or_else(|| self.damaged())?;
        self.take(8)?;
        let size = self.u32()?;
        let oid = self.take(self.format.width())?;
        let oid = Oid::from_bytes(oid).ok_or_else(|| self.damaged())?;
        let flags = self.u16()?;
        let extended = match flags & 0x4000 {
            0 => 0,
            _ if version == 2 => return Err(self.damaged()),
            _ => self.u16()?,
        };
        let path = if version == 4 {
            self.path_after(last)?
        } else {
            self.padded_path(start)?
        };
        Ok(Entry {
            path: RawPath::new(path),
            mode,
            oid,
            modified,
            size,
            stage: u8::try_from(flags >> 12 & 3).unwrap_or_default(),
            assume_valid: flags & 0x8000 != 0,
            skip_worktree: extended & 0x4000 != 0,
            intent_to_add: extended & 0x2000 != 0,
        })
    }

    /// A path that ends with 1 to 8 NULs, so that the entry's length is a multiple of 8.
    fn padded_path(&mut self, start: usize) -> Result<Vec<u8>, IndexError> {
        let path = self.terminated()?;
        let padding = (8 - (self.at - start) % 8) % 8;
        self.take(padding)?;
        Ok(path)
    }

    /// A path encoded as how many bytes of the last one to drop, and what to add.
    fn path_after(&mut self, last: &[u8]) -> Result<Vec<u8>, IndexError> {
        let mut byte = self.take(1)?[0];
        let mut drop = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            if drop > LONGEST {
                return Err(self.damaged());
            }
            drop = ((drop + 1) << 7) + usize::from(byte & 0x7f);
        }
        let keep = last.len().checked_sub(drop).ok_or_else(|| self.damaged())?;
        Ok([&last[..keep], &self.terminated()?].concat())
    }

    fn terminated(&mut self) -> Result<Vec<u8>, IndexError> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().take(LONGEST + 1).position(|byte| *byte == 0);
        let path = self.take(end.ok_or_else(|| self.damaged())?)?.to_vec();
        self.take(1)?;
        Ok(path)
    }

    fn extensions(&mut self) -> Result<(), IndexError> {
        while self.at < self.bytes.len() {
            let name = self.take(4)?;
            if !name[0].is_ascii_uppercase() {
                let name = String::from_utf8_lossy(name).into_owned();
                return Err(IndexError::Extension(name));
            }
            let size = self.u32()?;
            self.take(usize::try_from(size).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "ce013625030ba8dba906f756967f9e9ca394464a";

    /// The entry of a path in version 2 or 3, with `flags` and the flags of version 3 after them.
    fn raw(path: &[u8], mode: u32, flags: u16, extended: Option<u16>) -> Vec<u8> {
        let mut entry = vec![0; 24];
        entry.extend(mode.to_be_bytes());
        entry.extend([0; 12]);
        entry.extend(Oid::try_from(A).unwrap().to_bytes());
        entry.extend(flags.to_be_bytes());
        entry.extend(extended.into_iter().flat_map(u16::to_be_bytes));
        entry.extend(path);
        entry.resize((entry.len() + 8) & !7, 0);
        entry
    }

    fn index(version: u32, entries: &[Vec<u8>], tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        bytes.extend(entries.concat());
        bytes.extend(tail);
        let checksum = ObjectFormat::Sha1.checksum(&bytes);
        bytes.extend(checksum);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Entry>, IndexError> {
        parse(bytes, ObjectFormat::Sha1)
    }

    #[test]
    fn flags_and_stages_are_read() {
        let entries = [
            raw(b"a", 0o100_644, 0x8000, None),
            raw(b"b", 0o100_755, 0x4000, Some(0x4000)),
            raw(b"c/d", 0o120_000, 0x4000, Some(0x2000)),
            raw(b"e", 0o160_000, 0x1000, None),
            raw(b"e", 0o100_644, 0x2000, None),
        ];
        let entries = read(&index(3, &entries, b"TREE\0\0\0\x02xx")).unwrap();
        let seen: Vec<_> = entries
            .iter()
            .map(|one| {
                let flags = (one.assume_valid, one.skip_worktree, one.intent_to_add);
                (one.path.to_string(), one.mode, one.stage, flags)
            })
            .collect();
        let want = [
            ("a", Mode::File, 0, (true, false, false)),
            ("b", Mode::Executable, 0, (false, true, false)),
            ("c/d", Mode::Symlink, 0, (false, false, true)),
            ("e", Mode::Gitlink, 1, (false, false, false)),
            ("e", Mode::File, 2, (false, false, false)),
        ];
        let want = want.map(|(path, mode, stage, flags)| (path.to_owned(), mode, stage, flags));
        assert_eq!(seen, want);
    }

    #[test]
    fn version_four_paths_build_on_each_other() {
        let short = |drop: &[u8], rest: &[u8]| {
            let mut entry = raw(b"", 0o100_644, 0, None)[..62].to_vec();
            entry.extend(drop);
            entry.extend(rest);
            entry.push(0);
            entry
        };
        let entries = [
            short(&[0], b"app/a"),
            short(&[1], b"b/c"),
            short(&[7], b"z"),
        ];
        let paths: Vec<_> = read(&index(4, &entries, b""))
            .unwrap()
            .iter()
            .map(|entry| entry.path.to_string())
            .collect();
        assert_eq!(paths, ["app/a", "app/b/c", "z"]);
        let too_far = index(4, &[short(&[0], b"a"), short(&[2], b"b")], b"");
        assert!(matches!(read(&too_far), Err(IndexError::Damaged(_))));
        let endless = index(4, &[short(&[0xff; 40], b"a")], b"");
        assert!(matches!(read(&endless), Err(IndexError::Damaged(_))));
    }

    #[test]
    fn an_index_that_is_not_plain_is_an_error() {
        let file = |path: &[u8]| raw(path, 0o100_644, 0, None);
        let good = index(2, &[file(b"a")], b"");
        assert!(read(&good).is_ok());
        let mut flipped = good.clone();
        flipped[20] ^= 1;
        let mut unsigned = good.clone();
        let end = unsigned.len();
        unsigned[end - 20..].fill(0);
        assert!(read(&unsigned).is_ok());
        let cases = [
            (b"".to_vec(), IndexError::NoIndex),
            (b"garbage".to_vec(), IndexError::NoIndex),
            (flipped, IndexError::Checksum),
            (index(5, &[], b""), IndexError::Version(5)),
            (
                index(2, &[file(b"b"), file(b"a")], b""),
                IndexError::Order(RawPath::new("a")),
            ),
            (
                index(2, &[file(b"a"), file(b"a")], b""),
                IndexError::Order(RawPath::new("a")),
            ),
            (
                index(2, &[file(b"a/../b")], b""),
                IndexError::Path(RawPath::new("a/../b")),
            ),
            (
                index(2, &[file(b".git/x")], b""),
                IndexError::Path(RawPath::new(".git/x")),
            ),
            (
                index(2, &[], b"link\0\0\0\0"),
                IndexError::Extension("link".into()),
            ),
            (
                index(2, &[], b"sdir\0\0\0\0"),
                IndexError::Extension("sdir".into()),
            ),
        ];
        for (bytes, want) in cases {
            assert_eq!(read(&bytes), Err(want));
        }
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_reader(bytes: Vec<u8>, version in 2_u32..5, count in 0_u32..4) {
            let _ = read(&bytes);
            let mut body = b"DIRC".to_vec();
            body.extend(version.to_be_bytes());
            body.extend(count.to_be_bytes());
            body.extend(bytes);
            body.extend([0; 20]);
            let _ = read(&body);
        }
    }
}
