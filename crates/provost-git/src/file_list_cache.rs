//! Decides whether git would still list the same files, without starting git.
//!
//! The list follows from git's own files, from the names in the directories that git reads, and
//! from the rule files in them. All of these are remembered by their stamps. As long as every stamp
//! is equal, so is the list.
//!
//! # Invariants
//!
//! - What cannot be watched completely is not watched at all. This holds for a nested repository,
//!   for too many directories, and for a file system that may stamp its directories late. It also
//!   holds for a directory that changed recently, is unreadable or lies on another file system.
//! - Git decides which directories are ignored. Watching one too many costs time, never
//!   correctness.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use provost_core::path::RawPath;
use provost_fs::stamp::{self, Stamp, StampBytes};
use rayon::prelude::*;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};

use super::run::Place;
use super::{Git, Repository};

const MOST: usize = 200_000;

/// How often git is asked which directories it ignores: once per level of directories without a
/// listed file.
const ROUNDS: usize = 16;

/// Bytes of the buffer for directory entries; a name has at most 255 bytes.
const LISTING: usize = 32 * 1024;

/// Prefix of a path that git takes literally.
pub(super) const HERE: &[u8] = b"./";

const RULES: [&[u8]; 2] = [b".gitignore", b".gitattributes"];

/// Directories at the top that git and Provost use themselves; they are not watched.
const SKIPPED: [&[u8]; 2] = [b".git", b".provost"];

/// File systems that stamp a directory as soon as a name in it changes: ext2 to ext4, XFS, Btrfs,
/// tmpfs, overlays, F2FS, ZFS, bcachefs. Others, such as network file systems, may be late.
const PROMPT: [u64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xca45_1a4e,
];

/// Everything that a list of files follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Watch {
    /// Directories and rule files, by their paths below the checkout.
    pub(super) places: Vec<(RawPath, StampBytes)>,
    /// Git's own files; `None` for those that do not exist.
    pub(super) own: Vec<Option<StampBytes>>,
}

impl Repository {
    /// Stamps of git's own files that decide what it lists; `None` if one changed recently.
    pub(super) fn own_stamps(&self, began: i128) -> Option<Vec<Option<StampBytes>>> {
        let mut files = vec![self.git_dir.join("index")];
        for directory in [&self.git_dir, &self.common_dir] {
            let names = ["config", "config.worktree", "info/exclude"];
            files.extend(names.map(|name| directory.join(name)));
            let names = ["info/attributes", "info/sparse-checkout"];
            files.extend(names.map(|name| directory.join(name)));
        }
        let look = |path: &PathBuf| match rustix::fs::stat(path) {
            Ok(stat) => Stamp::of(&stat)
                .is_settled(began)
                .then(|| Some(Stamp::of(&stat).bytes())),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Some(None),
            Err(_) => None,
        };
        files.iter().map(look).collect()
    }
}

impl Watch {
    /// Watches what a list of files follows from that was begun at `began`; `None` if a change
    /// could go unnoticed. `homes` are the directories of the listed files.
    pub(super) fn begin(
        repo: &Repository,
        place: &Place<'_>,
        homes: &HashSet<&[u8]>,
        began: i128,
    ) -> Option<Self> {
        let own = repo.own_stamps(began)?;
        let root = open(place.work_tree?)?;
        let kind = rustix::fs::fstatfs(&root).ok()?.f_type;
        if !u64::try_from(kind).is_ok_and(|kind| PROMPT.contains(&kind)) {
            return None;
        }
        let mut walk = Walk {
            device: rustix::fs::fstat(&root).ok()?.st_dev,
            root,
            began,
            homes,
            found: Vec::new(),
            unlisted: Vec::new(),
        };
        let mut open = vec![RawPath::new("")];
        for _ in 0..ROUNDS {
            while let Some(directory) = open.pop() {
                open.extend(walk.directory(directory)?);
            }
            let unlisted = std::mem::take(&mut walk.unlisted);
            if unlisted.is_empty() {
                let places = walk.found;
                return Some(Self { places, own });
            }
            open = not_ignored(repo.git(), place, unlisted)?;
        }
        None
    }

    pub(super) fn holds(&self, repo: &Repository, checkout: &Path) -> bool {
        // What equals a settled stamp is settled.
        repo.own_stamps(stamp::now()).as_ref() == Some(&self.own)
            && open(checkout).is_some_and(|root| {
                let same =
                    |(path, stamp): &(RawPath, StampBytes)| look(&root, path) == Some(*stamp);
                self.places.par_iter().with_min_len(64).all(same)
            })
    }
}

/// The directories above `paths`, the top included.
pub(super) fn homes<'a>(paths: impl Iterator<Item = &'a [u8]>) -> HashSet<&'a [u8]> {
    let mut homes = HashSet::from([&[][..]]);
    for path in paths {
        let mut rest = path;
        while let Some(at) = rest.iter().rposition(|byte| *byte == b'/') {
            rest = &rest[..at];
            if !homes.insert(rest) {
                break;
            }
        }
    }
    homes
}

/// The stamp of what is at `path`; links are not followed.
pub(super) fn look(root: &OwnedFd, path: &RawPath) -> Option<StampBytes> {
    let name = match path.as_bytes() {
        b"" => b".",
        name => name,
    };
    let stat = rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.ok().map(|stat| Stamp::of(&stat).bytes())
}

pub(super) fn open(checkout: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(checkout, flags, Mode::empty()).ok()
}

struct Walk<'a> {
    root: OwnedFd,
    /// The device of the checkout; another device may have another file system.
    device: u64,
    began: i128,
    homes: &'a HashSet<&'a [u8]>,
    found: Vec<(RawPath, StampBytes)>,
    /// Directories that contain no listed file.
    unlisted: Vec<RawPath>,
}

impl Walk<'_> {
    /// Watches one directory; returns its subdirectories that contain a listed file.
    fn directory(&mut self, path: RawPath) -> Option<Vec<RawPath>> {
        let top = path.as_bytes().is_empty();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = if top { b"." } else { path.as_bytes() };
        let handle = rustix::fs::openat(&self.root, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&handle).ok()?;
        let full = self.found.len() >= MOST;
        if full || stat.st_dev != self.device || !Stamp::of(&stat).is_settled(self.began) {
            return None;
        }
        let mut below = Vec::new();
        let mut space = Vec::with_capacity(LISTING);
        let mut listing = RawDir::new(&handle, space.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || (top && SKIPPED.contains(&name)) {
                continue;
            }
            if name == b".git" {
                // Its content decides what git takes this directory for.
                return None;
            }
            if RULES.contains(&name) {
                let rules = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                if !Stamp::of(&rules).is_settled(self.began) {
                    return None;
                }
                self.found
                    .push((path.join(name), Stamp::of(&rules).bytes()));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            if kind == FileType::Directory {
                let inner = path.join(name);
                if self.homes.contains(inner.as_bytes()) {
                    below.push(inner);
                } else {
                    self.unlisted.push(inner);
                }
            }
        }
        self.found.push((path, Stamp::of(&stat).bytes()));
        Some(below)
    }
}

/// Those of `directories` that git does not ignore.
fn not_ignored(
    git: &Git,
    place: &Place<'_>,
    mut directories: Vec<RawPath>,
) -> Option<Vec<RawPath>> {
    let mut input = Vec::new();
    for directory in &directories {
        // The command has no literal mode; this prefix makes it take the path literally.
        input.extend(HERE);
        input.extend(directory.as_bytes());
        input.push(0);
    }
    let words = [
        "--no-literal-pathspecs",
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
    ];
    let output = git.call(place, &words, input).ok()?;
    // 0: some are ignored; 1: none is.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return None;
    }
    let said = output.stdout.split(|byte| *byte == 0);
    let ignored: HashSet<&[u8]> = said.filter_map(|path| path.strip_prefix(HERE)).collect();
    directories.retain(|directory| !ignored.contains(directory.as_bytes()));
    Some(directories)
}
