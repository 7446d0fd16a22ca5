//! Reads the files of a tree, and only those that are not known.
//!
//! Stat data of a file (size, times, inode) are kept with the digest of its bytes. A file with the
//! same stat data is not read again, unless it changed so recently that a further change might not
//! show.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::structure::Parse;
use provost_core::path::{RawPath, RepoPath};
use provost_fs::stamp::{self, Stamp, StampBytes};
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, IntoParallelRefMutIterator as _,
    ParallelIterator as _,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::cache::Cache;
use crate::facts::{Facts, Quick};
use crate::language;
use crate::parse;

pub(crate) type Sha = [u8; 32];

/// The largest file held in memory, in bytes; of larger ones only the digest is known.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The largest file of no language that is searched for names, in bytes.
const LARGEST_TEXT: u64 = 256 * 1024;

/// Suffixes of files that may name functions although they are no source code.
const TEXTS: &[&str] = &[
    "toml", "cfg", "ini", "json", "yml", "yaml", "xml", "html", "htm", "vue", "svelte", "sh", "in",
];

/// Bytes read at a time.
const PIECE: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) path: RawPath,
    /// `f`, `x` for an executable, `l` for a link, `d` for a directory, `?` if it cannot be read.
    pub(crate) kind: u8,
    pub(crate) sha: Sha,
    /// Stat data, if old enough to be trusted at the next analysis.
    pub(crate) known: Option<StampBytes>,
    /// The facts, if it is source code or may name some.
    pub(crate) said: Option<Said<'a>>,
}

/// Language and facts of a file.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    /// Index of its language; `None` for a file that only names things.
    pub(crate) language: Option<usize>,
    pub(crate) facts: Facts<'a>,
    /// Whether the facts were computed and not cached.
    pub(crate) fresh: bool,
}

/// Stat data and digests of known files, by path.
pub(crate) type KnownFiles<'a> = HashMap<&'a [u8], (&'a StampBytes, &'a Sha), Quick>;

/// Everything needed to read a tree.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    root: &'a OwnedFd,
    known: &'a KnownFiles<'a>,
    cache: &'a Cache,
    /// The language of headers that C and C++ share.
    headers: Option<usize>,
    began: i128,
}

/// Opens the root directory of a tree.
pub(crate) fn open(root: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(root, flags, Mode::empty())
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        root: &'a OwnedFd,
        known: &'a KnownFiles<'a>,
        cache: &'a Cache,
        headers: Option<usize>,
    ) -> Self {
        Self {
            root,
            known,
            cache,
            headers,
            began: stamp::now(),
        }
    }

    /// All of `paths` that exist, in their order, on all cores.
    ///
    /// Both `paths` and `early` are sorted; what is in `early` is not read again.
    pub(crate) fn all(&self, paths: &[RawPath], early: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
        let mut early = early.into_iter().peekable();
        let met = |path: &RawPath| {
            while early.next_if(|entry| entry.path < *path).is_some() {}
            early.next_if(|entry| entry.path == *path)
        };
        let mut found: Vec<Option<Entry<'a>>> = paths.iter().map(met).collect();
        let todo = paths.par_iter().zip(found.par_iter_mut());
        todo.filter(|(_, entry)| entry.is_none())
            .for_each(|(path, entry)| *entry = self.one(path));
        found.into_iter().flatten().collect()
    }

    fn one(&self, path: &RawPath) -> Option<Entry<'a>> {
        let entry = |kind: u8, sha: Sha, known: Option<StampBytes>, said: Option<Said<'a>>| Entry {
            path: path.clone(),
            kind,
            sha,
            known,
            said,
        };
        let stat = rustix::fs::statat(self.root, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let stat = match stat {
            Ok(stat) => stat,
            // Deleted, and not committed yet.
            Err(Errno::NOENT | Errno::NOTDIR) => return None,
            Err(_) => return Some(entry(b'?', [0; 32], None, None)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(self.root, path.as_bytes(), Vec::new());
                let target = target
                    .map(std::ffi::CString::into_bytes)
                    .unwrap_or_default();
                return Some(entry(b'l', Sha256::digest(target).into(), None, None));
            }
            // A nested repository, which is not analysed.
            FileType::Directory => return Some(entry(b'd', [0; 32], None, None)),
            _ => return Some(entry(b'?', [0; 32], None, None)),
        }
        let kind = if stat.st_mode & 0o111 == 0 {
            b'f'
        } else {
            b'x'
        };
        let stamp = Stamp::of(&stat);
        let bytes = stamp.bytes();
        let place = self.language(path);
        let settled = stamp.is_settled(self.began);
        if let Some((_, sha)) = self
            .known
            .get(path.as_bytes())
            .filter(|(known, _)| **known == bytes)
        {
            let unread = size(&stat) > LARGEST;
            let wanted = place.is_some() || is_text(path, &stat);
            let facts = wanted.then(|| self.cache.get(place, sha)).flatten();
            if !wanted || unread || facts.is_some() {
                let said = facts.map(|facts| Said {
                    language: place,
                    facts,
                    fresh: false,
                });
                let said = said.or_else(|| unread.then(|| unread_said(place)).flatten());
                return Some(entry(kind, **sha, settled.then_some(bytes), said));
            }
        }
        let Ok((bytes, sha, content)) = self.read(path) else {
            return Some(entry(b'?', [0; 32], None, unread_said(place)));
        };
        let said = match content {
            Some(content) if place.is_some() || is_text(path, &stat) => {
                Some(self.said(place, &sha, &content))
            }
            Some(_) => None,
            None => unread_said(place),
        };
        Some(entry(kind, sha, settled.then_some(bytes), said))
    }

    /// The facts of a file's bytes, from the cache if possible.
    fn said(&self, place: Option<usize>, sha: &Sha, content: &[u8]) -> Said<'a> {
        if let Some(facts) = self.cache.get(place, sha) {
            return Said {
                language: place,
                facts,
                fresh: false,
            };
        }
        let facts = match place {
            Some(place) => parse::facts(place, content),
            None => Facts::mentions_only(content),
        };
        Said {
            language: place,
            facts,
            fresh: true,
        }
    }

    fn language(&self, path: &RawPath) -> Option<usize> {
        let path = RepoPath::try_from(path).ok()?;
        if path.as_str().strip_suffix(".h").is_some() {
            return self.headers;
        }
        language::of(path.as_str())
    }

    /// Reads one file once: stat data, digest, and its bytes if they fit.
    fn read(&self, path: &RawPath) -> rustix::io::Result<(StampBytes, Sha, Option<Vec<u8>>)> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let name = path.as_bytes();
        let file = match rustix::fs::openat2(self.root, name, flags, Mode::empty(), resolve) {
            // Old kernels lack the call, and some containers refuse unknown calls.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(name, flags),
            result => result,
        }?;
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::STALE);
        }
        let (mut sha, mut content) = (Sha256::new(), Some(Vec::new()));
        let mut piece = vec![0; PIECE];
        let mut total = 0_u64;
        loop {
            let count = rustix::io::read(&file, &mut piece[..])?;
            if count == 0 {
                return Ok((Stamp::of(&stat).bytes(), sha.finalize().into(), content));
            }
            total += count as u64;
            if total > size(&stat).saturating_add(LARGEST) {
                // The file grows faster than it is read.
                return Err(Errno::FBIG);
            }
            sha.update(&piece[..count]);
            if total > LARGEST {
                content = None;
            } else if let Some(content) = &mut content {
                content.extend_from_slice(&piece[..count]);
            }
        }
    }

    /// Opens a file by one lookup for each component, none of which may be a link.
    fn step_by_step(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        let mut directory = self.root.try_clone().map_err(|_| Errno::MFILE)?;
        while let Some(part) = parts.next() {
            if matches!(part, b"" | b"." | b"..") {
                return Err(Errno::XDEV);
            }
            if parts.peek().is_none() {
                return rustix::fs::openat(&directory, part, flags, Mode::empty());
            }
            let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            directory = rustix::fs::openat(&directory, part, through, Mode::empty())?;
        }
        Err(Errno::NOENT)
    }
}

/// Facts of source code that was not read.
fn unread_said(place: Option<usize>) -> Option<Said<'static>> {
    place.map(|place| Said {
        language: Some(place),
        facts: Facts::names_only(b"", Parse::Unread),
        fresh: false,
    })
}

fn is_text(path: &RawPath, stat: &Stat) -> bool {
    let name = path.as_bytes();
    let ending = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let known = TEXTS.iter().any(|text| text.as_bytes() == ending);
    known && size(stat) <= LARGEST_TEXT
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(u64::MAX)
}
