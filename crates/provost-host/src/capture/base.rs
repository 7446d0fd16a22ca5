//! The base tree, as far as the capture has opened it.
//!
//! A directory that was not opened is closed: only its tree id is known. So what an agent did not
//! touch costs nothing. Closed directories are listed only for questions about the whole base, and
//! only by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use provost_core::change::Node;
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;

use crate::git::{GitError, Repository, TreeRead};

/// The base, partly opened.
pub(super) struct Base<'a> {
    repo: &'a Repository,
    tree: &'a Oid,
    /// The files and trees of all open directories.
    pub(super) open: TreeRead,
    /// Directories that were not opened; everything around them is open.
    pub(super) closed: BTreeMap<RawPath, Oid>,
    /// All of it, once it was needed.
    all: Option<Arc<TreeRead>>,
}

impl<'a> Base<'a> {
    /// The base `tree`, all closed.
    pub(super) fn new(repo: &'a Repository, tree: &'a Oid) -> Self {
        Self {
            repo,
            tree,
            open: TreeRead::default(),
            closed: BTreeMap::from([(RawPath::new(""), tree.clone())]),
            all: None,
        }
    }

    /// The files of all open directories.
    pub(super) fn files(&self) -> &BTreeMap<RawPath, Node> {
        &self.open.files
    }

    /// Opens those of `directories` that are closed, but not their subdirectories.
    pub(super) fn open<'p>(
        &mut self,
        directories: impl IntoIterator<Item = &'p RawPath>,
    ) -> Result<(), GitError> {
        let closed = &mut self.closed;
        let level: Vec<(RawPath, Oid)> = directories
            .into_iter()
            .filter_map(|path| closed.remove_entry(path))
            .collect();
        self.read(level)
    }

    /// Opens all closed directories that are `wanted`, and their subdirectories that are.
    pub(super) fn open_all(&mut self, wanted: impl Fn(&RawPath) -> bool) -> Result<(), GitError> {
        loop {
            let paths: Vec<RawPath> = self
                .closed
                .keys()
                .filter(|it| wanted(it))
                .cloned()
                .collect();
            if paths.is_empty() {
                return Ok(());
            }
            self.open(&paths)?;
        }
    }

    /// Lists the content of closed directories too.
    pub(super) fn list_all(&mut self) -> Result<(), GitError> {
        if !self.closed.is_empty() && self.all.is_none() {
            self.all = Some(self.repo.read_tree(self.tree)?);
        }
        Ok(())
    }

    /// The files in closed directories, if they are listed.
    pub(super) fn closed_files(&self) -> impl Iterator<Item = (&RawPath, &Node)> {
        let all = self.all.as_ref().map(|all| &all.files);
        self.closed.keys().flat_map(move |directory| {
            let mut prefix = directory.as_bytes().to_vec();
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            let first = RawPath::new(prefix.as_slice());
            let below = all
                .into_iter()
                .flat_map(move |all| all.range(first.clone()..));
            below.take_while(move |(path, _)| path.as_bytes().starts_with(&prefix))
        })
    }

    /// The files of all directories that are open or listed.
    pub(super) fn known_files(&self) -> impl Iterator<Item = (&RawPath, &Node)> {
        self.open.files.iter().chain(self.closed_files())
    }

    pub(super) fn is_closed(&self, path: &RawPath) -> bool {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut directories = slashes.map(|(at, _)| &bytes[..at]).chain([&bytes[..0]]);
        directories.any(|directory| self.closed.contains_key(&RawPath::new(directory)))
    }

    pub(super) fn has(&self, path: &RawPath) -> bool {
        self.open.files.contains_key(path) || self.has_directory(path)
    }

    fn read(&mut self, level: Vec<(RawPath, Oid)>) -> Result<(), GitError> {
        if !level.is_empty() {
            let mut batch = self.repo.batch()?;
            let below = self.repo.read_level(&mut batch, &mut self.open, level)?;
            self.closed.extend(below);
        }
        Ok(())
    }

    /// Whether the base has a directory at `path`, whose parent is open.
    pub(super) fn has_directory(&self, path: &RawPath) -> bool {
        self.closed.contains_key(path)
            || has_below(&self.open.files, path)
            || has_below(&self.closed, path)
    }

    pub(super) fn has_gitlink(&self, path: &RawPath) -> bool {
        let node = self.open.files.get(path);
        node.is_some_and(|node| node.mode == Mode::Gitlink)
    }
}

pub(crate) fn has_below<V>(map: &BTreeMap<RawPath, V>, path: &RawPath) -> bool {
    let mut prefix = path.as_bytes().to_vec();
    prefix.push(b'/');
    map.range(RawPath::new(prefix.as_slice())..)
        .next()
        .is_some_and(|(next, _)| next.as_bytes().starts_with(&prefix))
}
