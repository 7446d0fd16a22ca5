//! Walks the workspace and lists its entries, without reading files.
//!
//! Of an upper layer only its own entries are walked: a directory that is merged with one of the
//! base says nothing about names it lacks.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use provost_core::change::{Finding, FindingKind, Ignored};
use provost_core::file_system_names::is_git;
use provost_core::path::{LONGEST, RawPath, RepoPath};
use rayon::prelude::*;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::base::Base;
use super::layer::{self, Cover};
use super::masks::Masks;
use super::rules::Rules;
use super::{Limits, Source, finding};
use crate::git::{GitError, Repository};
use provost_fs::beneath::Beneath;

/// An entry for the tree.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) path: RawPath,
    pub(super) what: What,
    pub(super) size: u64,
    /// Device and inode.
    pub(super) file: (u64, u64),
    /// Number of hard links.
    pub(super) names: u64,
}

#[derive(Debug)]
pub(super) enum What {
    File { executable: bool },
    Link { target: Vec<u8> },
    Gitlink,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Sorted by path.
    pub(super) seen: Vec<Seen>,
    pub(super) findings: Vec<Finding>,
    pub(super) ignored: Ignored,
    /// Paths of the base that are gone, or that the walk found.
    pub(super) masks: Masks,
}

#[derive(Debug)]
struct Directory {
    path: RawPath,
    /// Whether everything below is ignored that the base does not have.
    ignored: bool,
    /// Whether the base has nothing below, so that all of it is only counted.
    counted: bool,
    /// Whether the base's content is visible here too, unless this directory hides it.
    merged: bool,
}

/// What all threads share.
struct Survey<'a> {
    root: &'a Beneath,
    base: &'a Base<'a>,
    rules: &'a Rules,
    limits: &'a Limits,
    layered: bool,
    captured: &'a AtomicU64,
    counted: &'a AtomicU64,
}

/// Walks one depth after the other, each on all cores, and opens the base along the way.
pub(super) fn walk(
    repo: &Repository,
    (root, source): (&Beneath, &Source),
    base: &mut Base<'_>,
    limits: &Limits,
) -> Result<Walk, GitError> {
    let layered = matches!(source, Source::Upper(_));
    let (captured, counted) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut rules = Rules::default();
    let mut walk = Walk::default();
    if !layered {
        walk.masks.add(RawPath::new(""));
    }
    let mut level = vec![Directory {
        path: RawPath::new(""),
        ignored: false,
        counted: false,
        merged: layered,
    }];
    let mut depth = 0;
    while !level.is_empty() {
        base.open(level.iter().map(|one| &one.path))?;
        rules.learn(repo, base.files(), level.iter().map(|one| &one.path))?;
        let survey = Survey {
            root,
            base,
            rules: &rules,
            limits,
            layered,
            captured: &captured,
            counted: &counted,
        };
        let listings: Vec<Listing> = level.par_iter().map(|one| survey.list(one)).collect();
        let mut below = Vec::new();
        for listing in listings {
            walk.seen.extend(listing.seen);
            walk.findings.extend(listing.findings);
            walk.masks.extend(listing.masks);
            walk.ignored.files += listing.ignored.files;
            walk.ignored.bytes = walk.ignored.bytes.saturating_add(listing.ignored.bytes);
            below.extend(listing.directories);
        }
        depth += 1;
        if depth > limits.depth {
            for one in below.iter().filter(|directory| !directory.counted) {
                let note = format!("more than {} levels", limits.depth);
                walk.findings
                    .push(finding(&one.path, FindingKind::TooDeep, note));
                walk.masks.add(one.path.clone());
            }
            break;
        }
        level = below;
    }
    walk.seen
        .par_sort_by(|one, other| one.path.cmp(&other.path));
    Ok(walk)
}

#[derive(Debug, Default)]
struct Listing {
    seen: Vec<Seen>,
    directories: Vec<Directory>,
    findings: Vec<Finding>,
    ignored: Ignored,
    masks: Masks,
}

impl Survey<'_> {
    fn list(&self, directory: &Directory) -> Listing {
        let mut listing = Listing::default();
        let path = &directory.path;
        let opened = self.open(directory);
        let entries = opened.and_then(|(fd, merged)| Ok((Dir::read_from(&fd)?, fd, merged)));
        let (entries, fd, merged) = match entries {
            Ok(opened) => opened,
            Err(error) => {
                if directory.merged {
                    listing.masks.add(path.clone());
                }
                if !directory.counted {
                    let note = format!("directory: {error}");
                    listing
                        .findings
                        .push(finding(path, FindingKind::Unreadable, note));
                }
                return listing;
            }
        };
        if directory.merged && !merged {
            listing.masks.add(path.clone());
        }
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
            let entry = Entry {
                directory,
                fd: &fd,
                name,
                merged,
            };
            let Some(stat) = self.look(&entry, &mut listing) else {
                continue;
            };
            empty = false;
            if self.is_full(directory.counted) {
                let note = "more entries than the limit";
                listing
                    .findings
                    .push(finding(path, FindingKind::TooMany, note));
                break;
            }
            self.entry(&entry, &stat, &mut listing);
        }
        if empty && self.base.has_gitlink(path) {
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

    /// Counts one more entry; returns whether the limit is exceeded.
    fn is_full(&self, counted: bool) -> bool {
        let (so_far, most) = if counted {
            (&self.counted, self.limits.ignored_count)
        } else {
            (&self.captured, self.limits.count)
        };
        so_far.fetch_add(1, Ordering::Relaxed) >= most
    }

    /// Opens a directory and returns whether it is merged with that of the base.
    fn open(&self, directory: &Directory) -> rustix::io::Result<(OwnedFd, bool)> {
        let fd = self.root.directory(directory.path.as_bytes())?;
        let merged = directory.merged && layer::cover(&fd)? == Cover::Merged;
        Ok((fd, merged))
    }

    /// Stats an entry; `None` if it only marks a removal.
    fn look(&self, entry: &Entry<'_>, listing: &mut Listing) -> Option<Stat> {
        let looked = self.stat(entry);
        let is_merged = |stat: &Stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && self.base.has_directory(&entry.path())
        };
        if entry.merged && !matches!(&looked, Ok(Some(stat)) if is_merged(stat)) {
            listing.masks.add(entry.path());
        }
        match looked {
            Ok(stat) => stat,
            Err(error) => {
                if !entry.directory.counted {
                    let note = error.to_string();
                    listing
                        .findings
                        .push(finding(&entry.path(), FindingKind::Unreadable, note));
                }
                None
            }
        }
    }

    fn stat(&self, entry: &Entry<'_>) -> rustix::io::Result<Option<Stat>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(entry.fd.as_fd(), entry.name, flags)?;
        if !self.layered {
            return Ok(Some(stat));
        }
        let is_empty_file =
            stat.st_size == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let gone = layer::is_whiteout(&stat) || is_empty_file && self.is_marked(entry)?;
        Ok((!gone).then_some(stat))
    }

    /// Whether an empty file marks a removal; a file that cannot be opened does not.
    fn is_marked(&self, entry: &Entry<'_>) -> rustix::io::Result<bool> {
        let path = entry.path();
        match self
            .root
            .open(path.as_bytes(), OFlags::RDONLY, Mode::empty())
        {
            Ok(file) => layer::is_marked_whiteout(file),
            Err(_) => Ok(false),
        }
    }

    fn entry(&self, entry: &Entry<'_>, stat: &Stat, listing: &mut Listing) {
        let Entry {
            directory,
            fd,
            name,
            merged,
        } = *entry;
        let path = entry.path();
        let top = directory.path.as_bytes().is_empty();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_directory = kind == FileType::Directory;
        if directory.counted {
            return listing.count(path, is_directory, stat);
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
        let on_base = is_directory && self.base.has_directory(&path);
        let tracked = self.base.files().contains_key(&path) || on_base;
        let ignored = directory.ignored || self.rules.ignore(&path, is_directory);
        if ignored && !tracked {
            return listing.count(path, is_directory, stat);
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
                merged: merged && on_base,
            }),
            FileType::RegularFile => listing.file(path, stat),
            FileType::Symlink => listing.link(path, fd, name, stat),
            other => {
                let note = format!("{other:?}").to_lowercase();
                listing
                    .findings
                    .push(finding(&path, FindingKind::SpecialFile, note));
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    directory: &'a Directory,
    fd: &'a OwnedFd,
    name: &'a [u8],
    /// Whether the directory is merged with that of the base.
    merged: bool,
}

impl Entry<'_> {
    fn path(&self) -> RawPath {
        self.directory.path.join(self.name)
    }
}

impl Listing {
    /// Counts an ignored entry.
    fn count(&mut self, path: RawPath, is_directory: bool, stat: &Stat) {
        if is_directory {
            self.directories.push(Directory {
                path,
                ignored: true,
                counted: true,
                merged: false,
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
