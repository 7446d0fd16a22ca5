//! The state of a checkout: the tree of its commit, and every path that differs from it.
//!
//! Two states of one checkout are compared path by path without reading a clean file: a path that
//! git calls clean has the content of the tree.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::json;
use crate::object::sha256;
use crate::path::RawPath;
use crate::words;

/// Stands for a path that does not exist.
pub const ABSENT: &str = "-";

/// One path that git calls dirty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyFile {
    /// The two status letters of git: staged, and on disk.
    pub letters: String,
    /// Mode and object in the commit, or [`ABSENT`].
    pub head: String,
    /// Mode and object in the index, likewise.
    pub staged: String,
    /// Mode and object on disk, likewise; `None` if it cannot be read.
    pub disk: Option<String>,
}

impl DirtyFile {
    pub fn is_tracked(&self) -> bool {
        self.letters != "??"
    }

    /// Whether a commit of the index would take content that is not on disk.
    pub fn is_staged_apart(&self) -> bool {
        self.staged != self.head && self.disk.as_ref() != Some(&self.staged)
    }
}

/// A checkout at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutState {
    /// The tree of its commit; `None` before the first commit.
    pub tree: Option<String>,
    /// Every path that differs from it, untracked ones included; never ignored ones.
    pub dirty: BTreeMap<RawPath, DirtyFile>,
}

/// The dirty files when an intent was declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// In milliseconds since 1970.
    pub captured_at: i64,
    pub workspace: CheckoutState,
}

/// What differs between two trees: mode and object before and after, or [`ABSENT`].
pub type Moved = BTreeMap<RawPath, (String, String)>;

words! {
    /// The state of a dirty path when an intent was declared, compared with its present state.
    pub enum StartState {
        /// There is no snapshot, or the content could not be read.
        Unknown = "unknown",
        /// It was clean.
        Absent = "absent",
        /// It was dirty with the same content.
        PresentSame = "present_same",
        /// It was dirty with other content.
        PresentChanged = "present_changed",
    }
}

impl CheckoutState {
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }

    /// The state of the dirty `path` in `start`.
    pub fn start_state(&self, path: &RawPath, start: Option<&Self>) -> StartState {
        let (Some(start), Some(now)) = (start, self.dirty.get(path)) else {
            return StartState::Unknown;
        };
        let Some(then) = start.dirty.get(path) else {
            return StartState::Absent;
        };
        match (&then.disk, &now.disk) {
            (None, _) | (_, None) => StartState::Unknown,
            (before, after) => {
                let same =
                    before == after && then.letters == now.letters && then.staged == now.staged;
                if same {
                    StartState::PresentSame
                } else {
                    StartState::PresentChanged
                }
            }
        }
    }

    /// The content on disk at `path`, as far as the two states and `moved` between them show it.
    fn content<'a>(
        &'a self,
        path: &RawPath,
        other: &'a Self,
        tree: Option<&'a str>,
    ) -> Option<&'a str> {
        match (self.dirty.get(path), tree) {
            (Some(file), _) => file.disk.as_deref(),
            (None, Some(tree)) => Some(tree),
            // Clean here, and the trees agree: it is what the other state has in its commit.
            (None, None) => other.dirty.get(path).map(|file| file.head.as_str()),
        }
    }

    /// The content of the dirty `path` of `now` in this earlier state of its checkout. `moved` is
    /// what differs between the trees. `None` if it could not be read.
    pub fn before<'a>(
        &'a self,
        path: &RawPath,
        now: &'a Self,
        moved: &'a Moved,
    ) -> Option<&'a str> {
        let then = moved.get(path).map(|(then, _)| then.as_str());
        self.content(path, now, then)
    }

    /// The paths whose content differs in `later`. `moved` is what differs between the trees.
    ///
    /// A path that cannot be read counts as different.
    pub fn differences(&self, later: &Self, moved: &Moved) -> BTreeSet<RawPath> {
        let paths = self
            .dirty
            .keys()
            .chain(later.dirty.keys())
            .chain(moved.keys());
        let differs = |path: &&RawPath| {
            let trees = moved.get(*path);
            let before = self.content(path, later, trees.map(|(before, _)| before.as_str()));
            let after = later.content(path, self, trees.map(|(_, after)| after.as_str()));
            before.is_none() || before != after
        };
        paths.filter(differs).cloned().collect()
    }

    /// Paths that differ from the older state `run` although git calls them clean: commits of
    /// others.
    pub fn drifted(&self, run: &Self, moved: &Moved) -> BTreeSet<RawPath> {
        let mut paths = run.differences(self, moved);
        paths.retain(|path| !self.dirty.contains_key(path));
        paths
    }

    /// The paths that differ on disk from another tree, as `git diff` shows them: without untracked
    /// files. `moved` is what differs between that tree and the tree of this checkout.
    pub fn since(&self, moved: &Moved) -> BTreeSet<RawPath> {
        let paths = self.dirty.keys().chain(moved.keys());
        let differs = |path: &&RawPath| match (self.dirty.get(*path), moved.get(*path)) {
            (Some(file), _) if !file.is_tracked() => false,
            (Some(file), Some((there, _))) => file.disk.as_ref() != Some(there),
            (Some(file), None) => file.disk.as_ref() != Some(&file.head),
            (None, _) => true,
        };
        paths.filter(differs).cloned().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn dirty_file(letters: &str, head: &str, disk: &str) -> DirtyFile {
        DirtyFile {
            letters: letters.into(),
            head: head.into(),
            staged: head.into(),
            disk: (disk != "?").then(|| disk.to_owned()),
        }
    }

    pub(crate) fn workspace(dirty: &[(&str, DirtyFile)]) -> CheckoutState {
        let dirty = dirty.iter();
        CheckoutState {
            tree: Some("tree".into()),
            dirty: dirty
                .map(|(path, file)| (RawPath::new(*path), file.clone()))
                .collect(),
        }
    }

    fn names(paths: &BTreeSet<RawPath>) -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dirty_path_is_compared_with_the_start() {
        let start = workspace(&[
            ("same", dirty_file(" M", "1", "2")),
            ("unread", dirty_file(" M", "1", "?")),
        ]);
        let now = workspace(&[
            ("same", dirty_file(" M", "1", "2")),
            ("new", dirty_file("??", ABSENT, "5")),
            ("unread", dirty_file(" M", "1", "2")),
        ]);
        let state = |path: &str| now.start_state(&RawPath::new(path), Some(&start));
        assert_eq!(state("same"), StartState::PresentSame);
        assert_eq!(state("new"), StartState::Absent);
        assert_eq!(state("unread"), StartState::Unknown);
        assert_eq!(
            now.start_state(&RawPath::new("same"), None),
            StartState::Unknown
        );
        let staged = workspace(&[("same", dirty_file("M ", "1", "2"))]);
        let state = staged.start_state(&RawPath::new("same"), Some(&start));
        assert_eq!(state, StartState::PresentChanged);
    }

    #[test]
    fn only_what_git_calls_clean_can_drift() {
        let run = workspace(&[("mine", dirty_file(" M", "1", "2"))]);
        let nothing = Moved::new();
        // A path that became dirty, changed or stayed dirty is not drift.
        let now = workspace(&[
            ("mine", dirty_file(" M", "1", "3")),
            ("new", dirty_file("??", ABSENT, "4")),
        ]);
        assert_eq!(names(&run.differences(&now, &nothing)), ["mine", "new"]);
        assert!(now.drifted(&run, &nothing).is_empty());
        // Changes that were undone leave no trace.
        let clean = workspace(&[]);
        assert_eq!(names(&clean.drifted(&run, &nothing)), ["mine"]);
        // Content that was analysed and then committed is not drift.
        let moved = Moved::from([(RawPath::new("mine"), ("1".into(), "2".into()))]);
        assert!(clean.drifted(&run, &moved).is_empty());
        // Content that was committed without an analysis is drift.
        let moved = Moved::from([(RawPath::new("other"), ("7".into(), "8".into()))]);
        assert_eq!(names(&run.drifted(&run, &moved)), ["other"]);
    }

    #[test]
    fn a_difference_from_a_commit_leaves_unknown_files_out() {
        let now = workspace(&[
            ("edited", dirty_file(" M", "1", "2")),
            ("new", dirty_file("??", ABSENT, "3")),
            ("back", dirty_file(" M", "1", "0")),
        ]);
        let moved = Moved::from([
            (RawPath::new("back"), ("0".into(), "1".into())),
            (RawPath::new("done"), ("5".into(), "6".into())),
        ]);
        assert_eq!(names(&now.since(&moved)), ["done", "edited"]);
    }
}
