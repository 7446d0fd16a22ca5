//! Finds where the content of new paths came from.

use std::collections::{BTreeMap, HashMap};

use provost_core::change::{Change, EXACT, Movement, Node, Origin};
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;

use super::base::Base;
use crate::git::{GitError, Repository};

/// Smaller files are equal by chance: an empty `__init__.py` is no copy of another.
const LEAST_BYTES: u64 = 32;

/// The most pairs of a new file and one of the base that are compared beyond exact equality.
///
/// Git reads every file of the base for that: one new file in 50 000 would dominate the capture.
const MOST_PAIRS: usize = 5_000;

/// The most new files whose origin is searched beyond exact equality.
const MOST_TARGETS: usize = 1000;

pub(super) struct Origins<'a> {
    pub(super) base: &'a Base<'a>,
    /// The files of the candidate, outside the closed directories of the base.
    pub(super) files: &'a BTreeMap<RawPath, Node>,
    /// Size of each captured file.
    pub(super) sizes: &'a HashMap<&'a RawPath, u64>,
}

impl Origins<'_> {
    /// Sets the origin of new files among `changes`, which lead from the tree `before` to `after`.
    pub(super) fn set(
        &self,
        repo: &Repository,
        changes: &mut [Change],
        (before, after): (&Oid, &Oid),
    ) -> Result<(), GitError> {
        self.exact(changes);
        let open = |change: &&mut Change| self.is_wanted(change) && change.origin.is_none();
        let targets = changes.iter_mut().filter(open).count();
        if targets == 0 || targets > MOST_TARGETS {
            return Ok(());
        }
        // Searching every file of a large base costs too much; beyond the limit only changed and
        // removed files are searched.
        let harder = self.base.known_files().count() * targets <= MOST_PAIRS;
        let pairs = repo.similar(before, after, harder)?;
        for change in changes.iter_mut().filter(open) {
            if let Some((source, likeness)) = pairs
                .get(&change.path)
                .filter(|(path, _)| self.base.has(path) || self.base.is_closed(path))
            {
                change.origin = Some(self.origin(source, *likeness));
            }
        }
        Ok(())
    }

    /// Sets the origin of new files whose content equals that of a file of the base.
    fn exact(&self, changes: &mut [Change]) {
        let wanted = changes.iter().filter(|change| self.is_wanted(change));
        let contents = wanted.filter_map(|change| change.after.as_ref());
        let mut sources: HashMap<Oid, Vec<&RawPath>> = contents
            .map(|after| (after.oid.clone(), Vec::new()))
            .collect();
        if sources.is_empty() {
            return;
        }
        for (path, side) in self.base.known_files().filter(|(_, side)| is_file(side)) {
            if let Some(paths) = sources.get_mut(&side.oid) {
                paths.push(path);
            }
        }
        for change in changes.iter_mut().filter(|change| self.is_wanted(change)) {
            let after = change.after.as_ref();
            let paths = after.and_then(|after| sources.get(&after.oid));
            // A removed file was probably moved; prefer one of the same name.
            let name = name_of(&change.path);
            let best = paths
                .into_iter()
                .flatten()
                .min_by_key(|path| (self.is_there(path), name_of(path) != name));
            change.origin = best.map(|path| self.origin(path, EXACT));
        }
    }

    fn origin(&self, source: &RawPath, likeness: u8) -> Origin {
        let how = if self.is_there(source) {
            Movement::Copy
        } else {
            Movement::Rename
        };
        Origin {
            path: source.clone(),
            how,
            likeness,
        }
    }

    fn is_there(&self, path: &RawPath) -> bool {
        self.files.contains_key(path) || self.base.is_closed(path)
    }

    /// Whether a new file is too large to equal another by chance.
    fn is_wanted(&self, change: &Change) -> bool {
        let size = self.sizes.get(&change.path);
        is_new(change) && size.is_some_and(|size| *size >= LEAST_BYTES)
    }
}

/// Whether a file is where the base has nothing.
fn is_new(change: &Change) -> bool {
    change.before.is_none() && change.after.as_ref().is_some_and(is_file)
}

fn is_file(side: &Node) -> bool {
    matches!(side.mode, Mode::File | Mode::Executable)
}

fn name_of(path: &RawPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes)
}
