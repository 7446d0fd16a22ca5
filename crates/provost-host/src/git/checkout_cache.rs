//! Remembers what git said of a checkout, and asks it again only about what may differ.
//!
//! What git says follows from the commit, from its own files and rules, from the names in the
//! directories, and from each tracked file by itself. If only files changed, git is asked about
//! these; if anything else did, it is asked about everything.
//!
//! # Invariants
//!
//! - A file is believed to be as it was only by a stamp that was old enough when it was taken, which
//!   is before git looked. Every other one is asked about again.
//! - With submodules, or with files of git's own that cannot be watched, nothing is remembered.
//! - Nothing outlives the process, so nobody else can have a say in it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use provost_core::index::Entry;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use rayon::prelude::*;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Repository;
use super::attributes::Attributes;
use super::file_list_cache::{self, Watch};
use super::run::Place;
use super::stamp::{self, Stamp};
use super::status::Lines;
use super::submodules;

/// Where Provost keeps its own things, which are not watched.
const RUNTIME: &[u8] = b".provost/";

/// The most files that git is asked about one by one.
const MOST_DOUBTED: usize = 400;

/// How many files one core looks at together.
const TOGETHER: usize = 256;

/// What git's answer follows from beside the files of the checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ground {
    /// The commit that is checked out.
    pub(super) head: Option<Oid>,
    /// Attributes from outside the tree.
    pub(super) attributes: Attributes,
    /// Rules about what is ignored from outside the tree.
    pub(super) ignored: Vec<u8>,
}

/// What was seen of a checkout.
#[derive(Debug)]
pub(super) struct Seen {
    /// What git said.
    pub(super) lines: Lines,
    /// Entries of the index that git was told not to look at, and submodules.
    pub(super) aside: Vec<Entry>,
    /// What stands on disk at dirty paths.
    pub(super) disks: Disks,
    /// What the lines follow from, if that can be watched.
    pub(super) basis: Option<Basis>,
}

/// What stands on disk, by path, with the stamp that it was read at.
pub(super) type Disks = HashMap<RawPath, (Stamp, String)>;

/// What git's answer followed from.
#[derive(Debug)]
pub(super) struct Basis {
    ground: Ground,
    watch: Watch,
    /// Tracked files, with their stamps as far as these can be believed.
    files: Vec<(RawPath, Option<Stamp>)>,
}

impl Basis {
    /// What an answer follows from that git begins to find at `began`.
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
        let mut files: Vec<(RawPath, Option<Stamp>)> = entries
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

    /// The tracked files that may differ from what git saw, if nothing else may. What is seen of
    /// them now, before git is asked again, is remembered.
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
        let doubted = |(path, known): &mut (RawPath, Option<Stamp>)| {
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

/// What stands at a path now.
struct Look {
    stamp: Stamp,
    /// Whether every later change will show.
    settled: bool,
}

/// Looks at what stands at `path`; nothing if that cannot be said.
fn look(root: &OwnedFd, path: &RawPath, began: i128) -> Option<Look> {
    match rustix::fs::statat(root, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(Look {
            stamp: stamp::of(&stat),
            settled: stamp::is_settled(&stat, began),
        }),
        // If it comes, its directory changes, which is watched.
        Err(Errno::NOENT | Errno::NOTDIR) => Some(Look {
            stamp: [0; stamp::LENGTH],
            settled: true,
        }),
        Err(_) => None,
    }
}

/// Whether git was told not to look at the file of `entry`.
pub(super) fn is_hidden(entry: &Entry) -> bool {
    entry.skip_worktree || entry.assume_valid
}
