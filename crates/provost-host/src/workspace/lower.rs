//! Keeps pristine checkouts, one a tree, for many overlays to stand on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::change::Node;
use provost_core::index::{self, Entry};
use provost_core::object::{ObjectFormat, Oid, sha256};
use provost_core::path::RawPath;

use super::directory_cache::{self, Collected, DirectoryCache, HeldDirectory, Wanted};
use super::{WorkspaceError, checkout, make_private, system};
use crate::cache;
use crate::git::Repository;
use crate::snapshot::read_file;

/// The index, beside the files.
const INDEX: &str = "index";

/// The checkouts of one repository.
#[derive(Debug, Clone)]
pub struct Lowers {
    shelf: DirectoryCache,
}

/// A pristine checkout that stays as it is while this value lives.
#[derive(Debug)]
pub struct Lower {
    tree: Oid,
    held: HeldDirectory,
    index: Vec<u8>,
}

impl Lower {
    pub fn files(&self) -> PathBuf {
        self.held.files()
    }

    /// The tree that was checked out.
    pub fn tree(&self) -> &Oid {
        &self.tree
    }

    /// A git index of them.
    pub(super) fn index(&self) -> &[u8] {
        &self.index
    }

    /// What stands at each path, without asking git.
    pub fn listing(&self, format: ObjectFormat) -> Result<BTreeMap<RawPath, Node>, WorkspaceError> {
        let entries = index::parse(&self.index, format);
        let entries = entries.map_err(|_| WorkspaceError::Unsteady { path: self.files() })?;
        let node = |entry: Entry| {
            let (mode, oid) = (entry.mode, entry.oid);
            (entry.path, Node { mode, oid })
        };
        Ok(entries.into_iter().map(node).collect())
    }
}

impl Lowers {
    /// Those below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            shelf: DirectoryCache::new(cache.join(cache::CHECKOUTS)),
        }
    }

    /// Whether a checkout of `tree` was made before; it may be damaged.
    pub fn know(&self, tree: &Oid) -> bool {
        self.shelf.know(tree.as_str())
    }

    /// The checkout of `tree`, made if it is missing or anybody touched it.
    pub fn hold(&self, repo: &Repository, tree: &Oid) -> Result<Lower, WorkspaceError> {
        let mut fill = |begun: &Path| fill(repo, tree, begun);
        for _ in 0..2 {
            let held = self.shelf.hold(tree.as_str(), &mut fill)?;
            if let Some(index) = index_of(&held) {
                let tree = tree.clone();
                return Ok(Lower { tree, held, index });
            }
            // Its files are pristine, but the index beside them is not the one made with them.
            drop(held);
            self.shelf.discard(tree.as_str())?;
        }
        let path = self.shelf.place(tree.as_str());
        Err(WorkspaceError::Unsteady { path })
    }

    /// Removes what nobody holds: what is not `wanted`, and of the rest the least recently used until
    /// it fits into `room` bytes; also what was set aside or never finished.
    pub fn collect(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.shelf.collect(room, wanted)
    }

    /// What such a collection would remove.
    pub fn collectable(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.shelf.collectable(room, wanted)
    }
}

/// The index that was made with the files, if it still is that one.
fn index_of(held: &HeldDirectory) -> Option<Vec<u8>> {
    // Never waited for, and never without end, whatever stands there.
    let limit = u64::try_from(index::LARGEST).unwrap_or(u64::MAX);
    let index = read_file(&held.place.join(INDEX), limit).ok()??;
    (sha256(&index) == held.manifest.note).then_some(index)
}

/// Writes everything a checkout has into the new directory `begun`.
fn fill(repo: &Repository, tree: &Oid, begun: &Path) -> Result<(), WorkspaceError> {
    let root = begun.join(directory_cache::FILES);
    make_private(&root)?;
    let read = repo.read_tree(tree)?;
    let files = &read.files;
    let written = checkout::write(repo, files, &root)?;
    let path = begun.join(INDEX);
    let index = super::index::render(repo.format(), files, &written);
    fs::write(&path, &index).map_err(system("write", &path))?;
    directory_cache::finish(begun, (tree.as_str(), &sha256(&index)), files.keys())
}
