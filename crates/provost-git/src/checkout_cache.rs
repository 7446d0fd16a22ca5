//! Remembers git's status of a checkout, and asks git again only about what may differ.
//!
//! The status follows from the commit, git's own files and rules, the names in the directories, and
//! each tracked file by itself. If only files changed, git is asked about these. If anything else
//! changed, git is asked about everything.
//!
//! # Invariants
//!
//! - A file counts as unchanged only by a stamp that was taken before git looked and was old enough
//!   then. Git is asked about every other file.
//! - With submodules, or with files of git's own that cannot be watched, nothing is remembered.
//! - The memory ends with the process, so no other process can influence it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_fs::stamp::{self, Stamp, StampBytes};
use rayon::prelude::*;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Repository;
use super::attributes::Attributes;
use super::file_list_cache::{self, Watch};
use super::run::Place;
use super::status::Lines;
use super::submodules;
use crate::index::Entry;

/// Runtime directory of Provost, which is not watched.
const RUNTIME: &[u8] = b".provost/";

/// The most files that git is asked about one by one.
const MOST_DOUBTED: usize = 400;

/// How many files one core stats in one task.
const TOGETHER: usize = 256;

/// What git's answer depends on, apart from the files of the checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ground {
    /// The commit that is checked out.
    pub(super) head: Option<Oid>,
    /// Attributes from outside the tree.
    pub(super) attributes: Attributes,
    /// Ignore rules from outside the tree.
    pub(super) ignored: Vec<u8>,
}

/// What was read of a checkout.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) lines: Lines,
    /// Index entries that git skips (skip-worktree, assume-unchanged), and submodules.
    pub(super) aside: Vec<Entry>,
    /// What is on disk at dirty paths.
    pub(super) disks: Disks,
    /// What the lines follow from, if it can be watched.
    pub(super) basis: Option<Basis>,
}

/// What is on disk, by path, with the stamp at which it was read.
pub(super) type Disks = HashMap<RawPath, (StampBytes, String)>;

/// What git's answer followed from.
#[derive(Debug)]
pub(super) struct Basis {
    ground: Ground,
    watch: Watch,
    /// Tracked files; without a stamp if it was too recent to trust.
    files: Vec<(RawPath, Option<StampBytes>)>,
}

impl Basis {
    /// Records what an answer of git follows from that starts at `began`.
    pub(super) fn begin(
        repo: &Repository,
        place: &Place<'_>,
        ground: Ground,
        entries: &[Entry],
        began: i128,
    ) -> Option<Self> {
        let own = |entry: &Entry| entry.path.as_bytes().starts_with(RUNTIME);
        if entries
            .iter()
            .any(|entry| submodules::is_one(entry) || own(entry))
        {
            return None;
        }
        let homes = file_list_cache::homes(entries.iter().map(|entry| entry.path.as_bytes()));
        let watch = Watch::begin(repo, place, &homes, began)?;
        let root = file_list_cache::open(place.work_tree?)?;
        let stamped = |entry: &Entry| {
            let now = look(&root, &entry.path, began);
            (
                entry.path.clone(),
                now.filter(|now| now.settled).map(|now| now.stamp),
            )
        };
        let mut files: Vec<(RawPath, Option<StampBytes>)> = entries
            .par_iter()
            .with_min_len(TOGETHER)
            .filter(|entry| !is_hidden(entry))
            .map(stamped)
            .collect();
        // The sides of a conflict are one path.
        files.dedup_by(|one, other| one.0 == other.0);
        Some(Self {
            ground,
            watch,
            files,
        })
    }

    /// The tracked files that may differ from what git saw, if nothing else may. Their state is
    /// read and remembered before git is asked again.
    pub(super) fn doubted(
        &mut self,
        repo: &Repository,
        checkout: &Path,
        ground: &Ground,
    ) -> Option<Vec<RawPath>> {
        if self.ground != *ground || !self.watch.holds(repo, checkout) {
            return None;
        }
        let began = stamp::now();
        let root = file_list_cache::open(checkout)?;
        let doubted = |(path, known): &mut (RawPath, Option<StampBytes>)| {
            let now = look(&root, path, began);
            if known.is_some() && *known == now.as_ref().map(|now| now.stamp) {
                return None;
            }
            *known = now.filter(|now| now.settled).map(|now| now.stamp);
            Some(path.clone())
        };
        let files = self.files.par_iter_mut().with_min_len(TOGETHER);
        let doubted: Vec<RawPath> = files.filter_map(doubted).collect();
        (doubted.len() <= MOST_DOUBTED).then_some(doubted)
    }
}

/// What is at a path at the moment.
struct Look {
    stamp: StampBytes,
    /// Whether every later change will show.
    settled: bool,
}

/// Stats `path`; `None` if its state cannot be determined.
fn look(root: &OwnedFd, path: &RawPath, began: i128) -> Option<Look> {
    match rustix::fs::statat(root, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(Look {
            stamp: Stamp::of(&stat).bytes(),
            settled: Stamp::of(&stat).is_settled(began),
        }),
        // If it appears later, its directory changes, which is watched.
        Err(Errno::NOENT | Errno::NOTDIR) => Some(Look {
            stamp: [0; stamp::LENGTH],
            settled: true,
        }),
        Err(_) => None,
    }
}

/// Whether git skips the file of `entry` (skip-worktree or assume-unchanged).
pub(super) fn is_hidden(entry: &Entry) -> bool {
    entry.skip_worktree || entry.assume_valid
}
