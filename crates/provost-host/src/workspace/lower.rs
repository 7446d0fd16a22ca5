//! Keeps pristine checkouts, one a tree, for many overlays to stand on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::object::Oid;
use provost_core::path::RawPath;

use super::manifest::Facts;
use super::shelf::{self, Collected, Held, Shelf, Wanted};
use super::{WorkspaceError, checkout, index, make_private, system};
use crate::cache;
use crate::git::Repository;

/// The checkouts of one repository.
#[derive(Debug, Clone)]
pub struct Lowers {
    shelf: Shelf,
}

/// A pristine checkout that stays as it is while this value lives.
#[derive(Debug)]
pub struct Lower {
    tree: Oid,
    held: Held,
}

impl Lower {
    /// The files.
    pub fn files(&self) -> PathBuf {
        self.held.files()
    }

    /// The tree that was checked out.
    pub fn tree(&self) -> &Oid {
        &self.tree
    }

    /// A git index of them.
    pub(super) fn index(&self) -> PathBuf {
        self.held.place.join("index")
    }

    /// What the kernel says about each file.
    pub(super) fn facts(&self) -> BTreeMap<RawPath, Facts> {
        self.held.manifest.facts()
    }
}

impl Lowers {
    /// Those below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            shelf: Shelf::new(cache.join(cache::CHECKOUTS)),
        }
    }

    /// Whether a checkout of `tree` was made before; it may be damaged.
    pub fn know(&self, tree: &Oid) -> bool {
        self.shelf.know(tree.as_str())
    }

    /// The checkout of `tree`, made if it is missing or anybody touched it.
    pub fn hold(&self, repo: &Repository, tree: &Oid) -> Result<Lower, WorkspaceError> {
        let mut fill = |begun: &Path| fill(repo, tree, begun);
        Ok(Lower {
            tree: tree.clone(),
            held: self.shelf.hold(tree.as_str(), &mut fill)?,
        })
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

/// Writes everything a checkout has into the new directory `begun`.
fn fill(repo: &Repository, tree: &Oid, begun: &Path) -> Result<(), WorkspaceError> {
    let root = begun.join(shelf::FILES);
    make_private(&root)?;
    let read = repo.read_tree(tree)?;
    let files = &read.files;
    let written = checkout::write(repo, files, &root)?;
    let path = begun.join("index");
    let index = index::render(repo.format(), files, &written);
    fs::write(&path, index).map_err(system("write", &path))?;
    shelf::finish(begun, (tree.as_str(), ""), files.keys())
}
