//! Compares what is committed and what is staged with the base, beside what is on disk.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::change::{Change, EXACT, Finding, Movement, Node, Origin};
use provost_core::gate::diff::Reason;
use provost_core::object::{Kind, Mode, Oid};
use provost_core::path::RawPath;
use provost_core::wording::counted;

use super::{Found, InspectError, chain};
use crate::capture;
use crate::git::index::Entry;
use crate::git::{GitError, Repository};
use crate::snapshot::{Layout, Presence, Snapshot, read_index};

/// Smaller files are equal by chance.
const LEAST_BYTES: usize = 32;

/// Runtime directory of Provost in a checkout, with runs and registry.
const RUNTIME: &[u8] = b".provost/";

/// The most missing objects before the search stops.
const MOST_MISSING: usize = 50;

/// What differs from the base, in each of the three trees.
pub(super) struct Layers<'a> {
    pub(super) repo: &'a Repository,
    pub(super) base_tree: Oid,
    /// The node at each path of the base.
    pub(super) base: BTreeMap<RawPath, Node>,
    pub(super) on_disk: BTreeMap<RawPath, Change>,
    /// What differs in a commit or in the index, and is not on disk.
    elsewhere: Vec<Change>,
    /// The index, if it could be read.
    pub(super) index: Vec<Entry>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(
        repo: &'a Repository,
        base_tree: &Oid,
        changes: Vec<Change>,
    ) -> Result<Self, InspectError> {
        let on_disk = changes
            .into_iter()
            .map(|change| (change.path.clone(), change))
            .collect();
        Ok(Self {
            base: repo.read_tree(base_tree)?.files.clone(),
            base_tree: base_tree.clone(),
            repo,
            on_disk,
            elsewhere: Vec::new(),
            index: Vec::new(),
        })
    }

    pub(super) fn add_committed(
        &mut self,
        tips: &[Oid],
        found: &mut Found,
    ) -> Result<(), InspectError> {
        for tip in tips {
            let changes = self
                .repo
                .commit_tree(tip)
                .and_then(|tree| self.repo.differences(&self.base_tree, &tree));
            match changes {
                Ok(changes) => self.add(changes, found)?,
                Err(error) => found.blind("HEAD", chain(&error)),
            }
        }
        Ok(())
    }

    pub(super) fn add_staged(
        &mut self,
        layout: &Layout,
        found: &mut Found,
    ) -> Result<(), InspectError> {
        match read_index(layout, self.repo.format()) {
            Ok(entries) => self.index = entries,
            Err(error) => {
                found.blind(".git/index", chain(&error));
                return Ok(());
            }
        }
        let mut changes = Vec::new();
        let mut seen = BTreeSet::new();
        for entry in &self.index {
            seen.insert(&entry.path);
            let before = self.base.get(&entry.path);
            let after = Node {
                mode: entry.mode,
                oid: entry.oid.clone(),
            };
            if before != Some(&after) {
                changes.push(change(&entry.path, before, Some(after)));
            }
        }
        for (path, side) in &self.base {
            if !seen.contains(path) {
                changes.push(change(path, Some(side), None));
            }
        }
        self.add(changes, found)
    }

    /// Leaves our own runtime directory out. The caller does so before it adds commits and index,
    /// because what git would pass on is no runtime directory.
    ///
    /// Without a snapshot, Provost cannot know whether it made that directory or an agent did. Then
    /// the directory is one sign, however many files it has.
    pub(super) fn leave_runtime_out(&mut self, before: Option<&Snapshot>, found: &mut Found) {
        if before.is_some_and(|before| !before.runtime) {
            return;
        }
        let all = self.on_disk.len();
        self.on_disk.retain(|path, change| {
            change.before.is_some() || !path.as_bytes().starts_with(RUNTIME)
        });
        let count = all - self.on_disk.len();
        if before.is_none() && count > 0 {
            let problem = format!(
                "holds {}, and only a snapshot from before the work (--before) can tell that they \
                 are Provost's own",
                counted(count, "file")
            );
            found.sign(&RawPath::new(".provost"), Reason::ProtectedPath, problem);
        }
    }

    /// Leaves out files that were already missing because the checkout is sparse.
    pub(super) fn leave_sparse_out(&mut self, before: Option<&Snapshot>) {
        let Some(before) = before else {
            return;
        };
        let watched: BTreeSet<&RawPath> = self
            .index
            .iter()
            .filter(|entry| !entry.skip_worktree)
            .map(|entry| &entry.path)
            .collect();
        self.on_disk.retain(|path, change| {
            change.after.is_some()
                || before.unwatched.get(path) != Some(&Presence::Absent)
                || watched.contains(path)
        });
    }

    /// All changes, those on disk first.
    pub(super) fn finish(self) -> Vec<Change> {
        self.on_disk.into_values().chain(self.elsewhere).collect()
    }

    fn add(&mut self, changes: Vec<Change>, found: &mut Found) -> Result<(), InspectError> {
        let same = |one: &Change, other: &Change| one.after == other.after;
        let mut fresh: Vec<Change> = changes
            .into_iter()
            .filter(|change| {
                let known = self.on_disk.get(&change.path);
                !known.is_some_and(|known| same(known, change)) && !self.elsewhere.contains(change)
            })
            .collect();
        found.findings.extend(self.twins(&fresh));
        let sizes = self.describe(&mut fresh, found)?;
        self.trace(&mut fresh, &sizes);
        self.elsewhere.extend(fresh);
        Ok(())
    }

    /// Names set by `changes` that some file system takes for another name.
    fn twins(&self, changes: &[Change]) -> Vec<Finding> {
        if changes.iter().all(|change| change.before.is_some()) {
            return Vec::new();
        }
        let mut files = self.base.clone();
        for change in changes {
            match &change.after {
                Some(after) => files.insert(change.path.clone(), after.clone()),
                None => files.remove(&change.path),
            };
        }
        let base = &self.base;
        let added = files.keys().filter(|path| !base.contains_key(*path));
        capture::name_twins(added, files.keys(), |place| {
            base.contains_key(place) || capture::has_below(base, place)
        })
    }

    /// Sets for each change whether it is text and its link target; returns the sizes of new files.
    fn describe(
        &self,
        changes: &mut [Change],
        found: &mut Found,
    ) -> Result<BTreeMap<Oid, usize>, InspectError> {
        let mut sizes = BTreeMap::new();
        let mut batch = self.repo.batch()?;
        let mut missing = 0;
        for change in changes {
            let both = [change.before.clone(), change.after.clone()];
            for side in both.into_iter().flatten() {
                if side.mode == Mode::Gitlink {
                    continue;
                }
                if missing >= MOST_MISSING {
                    found.blind(&change.path.to_string(), "is staged without its content");
                    continue;
                }
                match batch.one(&side.oid, Kind::Blob) {
                    Ok(bytes) => {
                        sizes.insert(side.oid.clone(), bytes.len());
                        change.binary |= bytes.contains(&0);
                        if side.mode == Mode::Symlink && change.after.as_ref() == Some(&side) {
                            change.link = Some(RawPath::new(bytes));
                        }
                    }
                    Err(
                        error @ (GitError::Missing { .. }
                        | GitError::WrongKind { .. }
                        | GitError::Forged { .. }
                        | GitError::TooLarge { .. }),
                    ) => {
                        missing += 1;
                        found.blind(&change.path.to_string(), chain(&error));
                        batch = self.repo.batch()?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(sizes)
    }

    /// Sets the origin of new files that equal a file of the base.
    fn trace(&self, changes: &mut [Change], sizes: &BTreeMap<Oid, usize>) {
        let mut sources: BTreeMap<&Oid, Vec<&RawPath>> = BTreeMap::new();
        for (path, side) in &self.base {
            if matches!(side.mode, Mode::File | Mode::Executable) {
                sources.entry(&side.oid).or_default().push(path);
            }
        }
        let gone: BTreeSet<RawPath> = changes
            .iter()
            .filter(|change| change.after.is_none())
            .map(|change| change.path.clone())
            .collect();
        for change in changes {
            let (None, Some(after)) = (&change.before, &change.after) else {
                continue;
            };
            let large = sizes
                .get(&after.oid)
                .is_some_and(|size| *size >= LEAST_BYTES);
            let Some(paths) = sources.get(&after.oid).filter(|_| large) else {
                continue;
            };
            let best = paths.iter().min_by_key(|path| !gone.contains(**path));
            change.origin = best.map(|path| Origin {
                path: (*path).clone(),
                how: if gone.contains(*path) {
                    Movement::Rename
                } else {
                    Movement::Copy
                },
                likeness: EXACT,
            });
        }
    }
}

fn change(path: &RawPath, before: Option<&Node>, after: Option<Node>) -> Change {
    Change {
        path: path.clone(),
        before: before.cloned(),
        after,
        binary: false,
        origin: None,
        link: None,
    }
}
