//! Walks the workspace and says what stands where, without reading files.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use provost_core::alias::is_git;
use provost_core::change::{Finding, FindingKind, Ignored, Node};
use provost_core::object::Mode;
use provost_core::path::{LONGEST, RawPath, RepoPath};
use rayon::prelude::*;
use rustix::fs::{AtFlags, Dir, FileType, Stat};

use super::rules::Rules;
use super::twins::has_below;
use super::{Limits, finding};
use crate::beneath::Beneath;

/// Something that goes into the tree.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) path: RawPath,
    pub(super) what: What,
    pub(super) size: u64,
    /// Device and inode.
    pub(super) file: (u64, u64),
    /// How many names the file has.
    pub(super) names: u64,
}

/// What it is.
#[derive(Debug)]
pub(super) enum What {
    File { executable: bool },
    Link { target: Vec<u8> },
    Gitlink,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Sorted by path.
    pub(super) seen: Vec<Seen>,
    pub(super) findings: Vec<Finding>,
    pub(super) ignored: Ignored,
}

/// A directory to be listed.
#[derive(Debug)]
struct Directory {
    path: RawPath,
    /// Whether everything below is ignored that the base does not have.
    ignored: bool,
    /// Whether the base has nothing below, so that all of it is only counted.
    counted: bool,
}

/// What all threads share.
struct Survey<'a> {
    root: &'a Beneath,
    base: &'a BTreeMap<RawPath, Node>,
    rules: &'a Rules,
    limits: &'a Limits,
    captured: AtomicU64,
    counted: AtomicU64,
}

/// Walks one depth after the other, each on all cores.
pub(super) fn walk(
    root: &Beneath,
    base: &BTreeMap<RawPath, Node>,
    rules: &Rules,
    limits: &Limits,
) -> Walk {
    let survey = Survey {
        root,
        base,
        rules,
        limits,
        captured: AtomicU64::new(0),
        counted: AtomicU64::new(0),
    };
    let mut walk = Walk::default();
    let mut level = vec![Directory {
        path: RawPath::new(""),
        ignored: false,
        counted: false,
    }];
    let mut depth = 0;
    while !level.is_empty() {
        let listings: Vec<Listing> = level.par_iter().map(|one| survey.list(one)).collect();
        let mut below = Vec::new();
        for listing in listings {
            walk.seen.extend(listing.seen);
            walk.findings.extend(listing.findings);
            walk.ignored.files += listing.ignored.files;
            walk.ignored.bytes = walk.ignored.bytes.saturating_add(listing.ignored.bytes);
            below.extend(listing.directories);
        }
        depth += 1;
        if depth > limits.depth {
            let deep = below.iter().filter(|directory| !directory.counted);
            let note = format!("more than {} levels", limits.depth);
            let findings = deep.map(|one| finding(&one.path, FindingKind::TooDeep, note.as_str()));
            walk.findings.extend(findings);
            break;
        }
        level = below;
    }
    walk.seen
        .par_sort_by(|one, other| one.path.cmp(&other.path));
    walk
}

/// What one directory holds.
#[derive(Debug, Default)]
struct Listing {
    seen: Vec<Seen>,
    directories: Vec<Directory>,
    findings: Vec<Finding>,
    ignored: Ignored,
}

impl Survey<'_> {
    fn list(&self, directory: &Directory) -> Listing {
        let mut listing = Listing::default();
        let path = &directory.path;
        let opened = self.root.directory(path.as_bytes());
        let entries = opened.and_then(|fd| Ok((Dir::read_from(&fd)?, fd)));
        let (entries, fd) = match entries {
            Ok(pair) => pair,
            Err(error) => {
                if !directory.counted {
                    let note = format!("directory: {error}");
                    listing
                        .findings
                        .push(finding(path, FindingKind::Unreadable, note));
                }
                return listing;
            }
        };
        let mut empty = true;
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let note = format!("directory: {error}");
                    listing
                        .findings
                        .push(finding(path, FindingKind::Unreadable, note));
                    break;
                }
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            empty = false;
            if self.is_full(directory.counted) {
                let note = "more entries than the limit";
                listing
                    .findings
                    .push(finding(path, FindingKind::TooMany, note));
                break;
            }
            self.entry(directory, &fd, name, &mut listing);
        }
        if empty
            && self
                .base
                .get(path)
                .is_some_and(|side| side.mode == Mode::Gitlink)
        {
            listing.seen.push(Seen {
                path: path.clone(),
                what: What::Gitlink,
                size: 0,
                file: (0, 0),
                names: 1,
            });
        }
        listing
    }

    /// Counts one more entry.
    fn is_full(&self, counted: bool) -> bool {
        let (so_far, most) = if counted {
            (&self.counted, self.limits.ignored_count)
        } else {
            (&self.captured, self.limits.count)
        };
        so_far.fetch_add(1, Ordering::Relaxed) >= most
    }

    fn entry(&self, directory: &Directory, fd: &OwnedFd, name: &[u8], listing: &mut Listing) {
        let path = directory.path.join(name);
        let top = directory.path.as_bytes().is_empty();
        let stat = match rustix::fs::statat(fd.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => {
                if !directory.counted {
                    let note = error.to_string();
                    listing
                        .findings
                        .push(finding(&path, FindingKind::Unreadable, note));
                }
                return;
            }
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_directory = kind == FileType::Directory;
        if directory.counted {
            return listing.count(path, is_directory, &stat);
        }
        if is_git(name) {
            if !(top && name == b".git") {
                let holder = if top { &path } else { &directory.path };
                let note = String::from_utf8_lossy(name).into_owned();
                listing
                    .findings
                    .push(finding(holder, FindingKind::NestedRepository, note));
            }
            return;
        }
        let tracked = self.base.contains_key(&path) || is_directory && has_below(self.base, &path);
        let ignored = directory.ignored || self.rules.ignore(&path, is_directory);
        if ignored && !tracked {
            return listing.count(path, is_directory, &stat);
        }
        if path.as_bytes().len() > LONGEST {
            let cut = RawPath::new(&path.as_bytes()[..LONGEST]);
            let note = format!("path longer than {LONGEST} bytes");
            listing
                .findings
                .push(finding(&cut, FindingKind::TooDeep, note));
            return;
        }
        if !tracked && let Err(error) = RepoPath::try_from(&RawPath::new(name)) {
            let note = format!("the name {error}");
            listing
                .findings
                .push(finding(&path, FindingKind::BadName, note));
        }
        match kind {
            FileType::Directory => listing.directories.push(Directory {
                path,
                ignored,
                counted: false,
            }),
            FileType::RegularFile => listing.file(path, &stat),
            FileType::Symlink => listing.link(path, fd, name, &stat),
            other => {
                let note = format!("{other:?}").to_lowercase();
                listing
                    .findings
                    .push(finding(&path, FindingKind::SpecialFile, note));
            }
        }
    }
}

impl Listing {
    /// Takes note of something ignored.
    fn count(&mut self, path: RawPath, is_directory: bool, stat: &Stat) {
        if is_directory {
            self.directories.push(Directory {
                path,
                ignored: true,
                counted: true,
            });
        } else {
            self.ignored.files += 1;
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            self.ignored.bytes = self.ignored.bytes.saturating_add(size);
        }
    }

    fn file(&mut self, path: RawPath, stat: &Stat) {
        if stat.st_mode & 0o6000 != 0 {
            let note = format!("mode {:o}", stat.st_mode & 0o7777);
            self.findings.push(finding(&path, FindingKind::SetId, note));
        }
        let executable = stat.st_mode & 0o100 != 0;
        self.push(path, What::File { executable }, stat);
    }

    fn link(&mut self, path: RawPath, fd: &OwnedFd, name: &[u8], stat: &Stat) {
        match rustix::fs::readlinkat(fd.as_fd(), name, Vec::new()) {
            Ok(target) => {
                let target = target.into_bytes();
                self.push(path, What::Link { target }, stat);
            }
            Err(error) => {
                let note = error.to_string();
                self.findings
                    .push(finding(&path, FindingKind::Unreadable, note));
            }
        }
    }

    fn push(&mut self, path: RawPath, what: What, stat: &Stat) {
        self.seen.push(Seen {
            path,
            what,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            file: (stat.st_dev, stat.st_ino),
            names: stat.st_nlink,
        });
    }
}
