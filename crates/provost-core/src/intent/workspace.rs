//! The state of a checkout: the tree of its commit and whatever differs from it.
//!
//! Two states of one checkout are compared path by path without reading a clean file: what git calls
//! clean is what the tree says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::json;
use crate::object::sha256;
use crate::path::RawPath;

/// What stands for nothing at a path.
pub const ABSENT: &str = "-";

/// One path that git calls dirty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyFile {
    /// The two letters of git: staged, and on disk.
    pub letters: String,
    /// What the commit has: mode and object, or [`ABSENT`].
    pub head: String,
    /// What is staged, likewise.
    pub staged: String,
    /// What is on disk, likewise; nothing if that cannot be read.
    pub disk: Option<String>,
}

impl DirtyFile {
    /// Whether git knows the path at all.
    pub fn is_tracked(&self) -> bool {
        self.letters != "??"
    }
}

/// A checkout at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The tree of its commit; nothing before the first commit.
    pub tree: Option<String>,
    /// Everything that differs from it, also what git does not know; never what is ignored.
    pub dirty: BTreeMap<RawPath, DirtyFile>,
}

/// The dirty files when an intent was declared (R34).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, in milliseconds since 1970.
    pub captured_at: i64,
    pub workspace: Workspace,
}

/// What differs between two trees: mode and object before and after, or [`ABSENT`].
pub type Moved = BTreeMap<RawPath, (String, String)>;

/// What became of a dirty path since an intent was declared (R35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartState {
    /// Nobody can tell.
    Unknown,
    /// It was clean.
    Absent,
    /// It was dirty as it is.
    PresentSame,
    /// It was dirty in another way.
    PresentChanged,
}

impl StartState {
    /// Its name in payloads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Absent => "absent",
            Self::PresentSame => "present_same",
            Self::PresentChanged => "present_changed",
        }
    }
}

impl Workspace {
    /// SHA-256 of the state.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }

    /// What the dirty `path` was in `start`.
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

    /// What stands at `path` on disk, as far as the two states and `moved` between them tell.
    fn content<'a>(
        &'a self,
        path: &RawPath,
        other: &'a Self,
        tree: Option<&'a str>,
    ) -> Option<&'a str> {
        match (self.dirty.get(path), tree) {
            (Some(dirt), _) => dirt.disk.as_deref(),
            (None, Some(tree)) => Some(tree),
            // Clean here, and the trees agree: it is what the other state has committed.
            (None, None) => other.dirty.get(path).map(|dirt| dirt.head.as_str()),
        }
    }

    /// What stood at the dirty `path` of `now` in this earlier state of its checkout, when `moved` is
    /// what differs between the trees; nothing if that could not be read.
    pub fn before<'a>(
        &'a self,
        path: &RawPath,
        now: &'a Self,
        moved: &'a Moved,
    ) -> Option<&'a str> {
        let then = moved.get(path).map(|(then, _)| then.as_str());
        self.content(path, now, then)
    }

    /// The paths whose content differs in `later`, when `moved` is what differs between the trees.
    ///
    /// What cannot be read differs.
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

    /// What differs from the older state `run` although git calls it clean: somebody else's commits.
    pub fn drifted(&self, run: &Self, moved: &Moved) -> BTreeSet<RawPath> {
        let mut paths = run.differences(self, moved);
        paths.retain(|path| !self.dirty.contains_key(path));
        paths
    }

    /// What differs on disk from another tree, as git tells: without files that git does not know
    /// (R68). `moved` is what differs between that tree and the tree of this checkout.
    pub fn since(&self, moved: &Moved) -> BTreeSet<RawPath> {
        let paths = self.dirty.keys().chain(moved.keys());
        let differs = |path: &&RawPath| match (self.dirty.get(*path), moved.get(*path)) {
            (Some(dirt), _) if !dirt.is_tracked() => false,
            (Some(dirt), Some((there, _))) => dirt.disk.as_ref() != Some(there),
            (Some(dirt), None) => dirt.disk.as_ref() != Some(&dirt.head),
            (None, _) => true,
        };
        paths.filter(differs).cloned().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn dirt(letters: &str, head: &str, disk: &str) -> DirtyFile {
        DirtyFile {
            letters: letters.into(),
            head: head.into(),
            staged: head.into(),
            disk: (disk != "?").then(|| disk.to_owned()),
        }
    }

    pub(crate) fn workspace(dirty: &[(&str, DirtyFile)]) -> Workspace {
        let dirty = dirty.iter();
        Workspace {
            tree: Some("tree".into()),
            dirty: dirty
                .map(|(path, dirt)| (RawPath::new(*path), dirt.clone()))
                .collect(),
        }
    }

    fn names(paths: &BTreeSet<RawPath>) -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn r35_a_dirty_path_is_compared_with_the_start() {
        let start = workspace(&[
            ("same", dirt(" M", "1", "2")),
            ("unread", dirt(" M", "1", "?")),
        ]);
        let now = workspace(&[
            ("same", dirt(" M", "1", "2")),
            ("new", dirt("??", ABSENT, "5")),
            ("unread", dirt(" M", "1", "2")),
        ]);
        let state = |path: &str| now.start_state(&RawPath::new(path), Some(&start));
        assert_eq!(state("same"), StartState::PresentSame);
        assert_eq!(state("new"), StartState::Absent);
        assert_eq!(state("unread"), StartState::Unknown);
        assert_eq!(
            now.start_state(&RawPath::new("same"), None),
            StartState::Unknown
        );
        let staged = workspace(&[("same", dirt("M ", "1", "2"))]);
        let state = staged.start_state(&RawPath::new("same"), Some(&start));
        assert_eq!(state, StartState::PresentChanged);
    }

    #[test]
    fn only_what_git_calls_clean_can_drift() {
        let run = workspace(&[("mine", dirt(" M", "1", "2"))]);
        let nothing = Moved::new();
        // Dirt that came, changed or stayed is seen as dirt.
        let now = workspace(&[
            ("mine", dirt(" M", "1", "3")),
            ("new", dirt("??", ABSENT, "4")),
        ]);
        assert_eq!(names(&run.differences(&now, &nothing)), ["mine", "new"]);
        assert!(now.drifted(&run, &nothing).is_empty());
        // Dirt that was taken back is gone without a trace.
        let clean = workspace(&[]);
        assert_eq!(names(&clean.drifted(&run, &nothing)), ["mine"]);
        // What was analysed and then committed is what was analysed.
        let moved = Moved::from([(RawPath::new("mine"), ("1".into(), "2".into()))]);
        assert!(clean.drifted(&run, &moved).is_empty());
        // What was committed without being analysed is not.
        let moved = Moved::from([(RawPath::new("other"), ("7".into(), "8".into()))]);
        assert_eq!(names(&run.drifted(&run, &moved)), ["other"]);
    }

    #[test]
    fn r68_a_difference_from_a_commit_leaves_unknown_files_out() {
        let now = workspace(&[
            ("edited", dirt(" M", "1", "2")),
            ("new", dirt("??", ABSENT, "3")),
            ("back", dirt(" M", "1", "0")),
        ]);
        let moved = Moved::from([
            (RawPath::new("back"), ("0".into(), "1".into())),
            (RawPath::new("done"), ("5".into(), "6".into())),
        ]);
        assert_eq!(names(&now.since(&moved)), ["done", "edited"]);
    }
}
