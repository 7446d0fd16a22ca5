//! Cache of pristine checkouts, one per tree, that many overlays lie on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::change::Node;
use provost_core::object::{ObjectFormat, Oid, sha256};
use provost_core::path::RawPath;

use super::checkout::{self, Dates};
use super::directory_cache::{self, Collected, DirectoryCache, HeldDirectory, Wanted};
use super::{WorkspaceError, make_private, system};
use crate::cache;
use crate::git::Repository;
use crate::git::index::{self, Entry};
use provost_fs::regular_file::read as read_file;

/// The index, beside the files.
const INDEX: &str = "index";

#[derive(Debug, Clone)]
pub struct Lowers {
    directories: DirectoryCache,
}

/// A pristine checkout that stays unchanged while this value lives.
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

    pub fn tree(&self) -> &Oid {
        &self.tree
    }

    /// The git index of its files.
    pub(super) fn index(&self) -> &[u8] {
        &self.index
    }

    /// The file at each path, from the index and without git.
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
    /// The checkouts below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            directories: DirectoryCache::new(cache.join(cache::CHECKOUTS)),
        }
    }

    /// Whether a checkout of `tree` was made before; it may be damaged.
    pub fn know(&self, tree: &Oid) -> bool {
        self.directories.know(tree.as_str())
    }

    /// The checkout of `tree`, made if it is missing or was modified.
    pub fn hold(&self, repo: &Repository, tree: &Oid) -> Result<Lower, WorkspaceError> {
        let mut fill = |begun: &Path| fill(repo, tree, begun);
        for _ in 0..2 {
            let held = self.directories.hold(tree.as_str(), &mut fill)?;
            if let Some(index) = index_of(&held) {
                let tree = tree.clone();
                return Ok(Lower { tree, held, index });
            }
            // Its files are pristine, but the index beside them was replaced.
            drop(held);
            self.directories.discard(tree.as_str())?;
        }
        let path = self.directories.place(tree.as_str());
        Err(WorkspaceError::Unsteady { path })
    }

    /// Removes checkouts without a holder: those not `wanted`, then the least recently used ones
    /// until the rest fits into `room` bytes. Unfinished and discarded ones are removed too.
    pub fn collect(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collect(room, wanted)
    }

    /// What [`Self::collect`] would remove.
    pub fn collectable(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collectable(room, wanted)
    }
}

/// The index that was made with the files, if it is unmodified.
fn index_of(held: &HeldDirectory) -> Option<Vec<u8>> {
    // Reading neither blocks nor exceeds the limit, whatever is there.
    let limit = u64::try_from(index::LARGEST).unwrap_or(u64::MAX);
    let index = read_file(&held.place.join(INDEX), limit).ok()??;
    (sha256(&index) == held.manifest.note).then_some(index)
}

fn fill(repo: &Repository, tree: &Oid, begun: &Path) -> Result<(), WorkspaceError> {
    let root = begun.join(directory_cache::FILES);
    make_private(&root)?;
    let read = repo.read_tree(tree)?;
    let files = &read.files;
    let written = checkout::write(repo, files, &root, &Dates::default())?;
    let path = begun.join(INDEX);
    let index = super::index::render(repo.format(), files, &written);
    fs::write(&path, &index).map_err(system("write", &path))?;
    directory_cache::finish(begun, (tree.as_str(), &sha256(&index)), files.keys())
}
