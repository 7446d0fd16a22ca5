//! Attributes the dirty files of a checkout to intents.

pub(crate) mod answer;

use std::collections::BTreeSet;

use crate::conflict::Peer;
use crate::intent::{Ownership, State};
use crate::scope::{ChangeScope, Relation, covers};
use provost_core::checkout::{CheckoutState, DirtyFile, Moved, Snapshot, StartState};
use provost_core::path::RawPath;
use provost_core::words;

/// A dirty file that another live agent has declared as well.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    pub path: RawPath,
    /// The intent of the other agent.
    pub intent_id: String,
    pub state: State,
    pub ownership: Ownership,
    /// What that agent calls itself.
    pub agent_label: String,
}

/// The uncommitted changes that matter when an intent is declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AtStart {
    /// In the files to be touched.
    pub in_scope: Vec<RawPath>,
    /// In the files that may be touched in passing.
    pub related: Vec<RawPath>,
    /// Those that other agents have declared, too.
    pub overlaps: Vec<Overlap>,
}

impl AtStart {
    pub fn look(scope: &ChangeScope, now: &CheckoutState, peers: &[Peer]) -> Self {
        let mut found = Self {
            overlaps: overlaps(scope, now, peers),
            ..Self::default()
        };
        for path in now.dirty.keys() {
            match scope.relation(path) {
                Relation::OwnAllowed => found.in_scope.push(path.clone()),
                Relation::OwnRelated => found.related.push(path.clone()),
                Relation::Outside => {}
            }
        }
        found
    }

    /// Whether uncommitted changes lie in the files to be touched.
    pub fn blocks_edit(&self) -> bool {
        !self.in_scope.is_empty()
    }
}

words! {
    /// How a dirty path relates to a change that ends.
    #[derive(PartialOrd, Ord)]
    pub enum Class {
        /// In scope, but not among the paths that the agent says it touched.
        MissingEvidence = "missing_evidence",
        /// In scope, and among the paths that the agent says it touched.
        DeclaredScopeDirty = "declared_scope_dirty",
        /// Declared by another live agent.
        ForeignAttributed = "foreign_attributed_outside_scope",
        /// It was dirty with the same content when the intent was declared.
        Preexisting = "preexisting_unscoped_dirty",
        /// It became dirty since, and no agent declared it.
        New = "new_unattributed_unscoped_dirty",
        /// It changed since, and no agent declared it.
        Modified = "modified_unattributed_unscoped_dirty",
        /// Its state at the start is unknown.
        Unknown = "unknown_unattributed_unscoped_dirty",
    }
}

impl Class {
    /// Whether it is out of scope and no agent declared it.
    pub fn is_unattributed(self) -> bool {
        matches!(self, Self::New | Self::Modified | Self::Unknown)
    }
}

/// One dirty path, and how it relates to the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    pub path: RawPath,
    pub relation: Relation,
    /// Whether the agent says that it touched the path.
    pub in_evidence: bool,
    /// Its state when the intent was declared.
    pub start: StartState,
    /// The intent of another agent that covers it.
    pub intent_id: Option<String>,
    pub class: Class,
}

words! {
    /// Why a change cannot end yet.
    pub enum Block {
        /// A dirty file in scope that is missing from the agent's evidence.
        MissingEvidence = "missing_evidence",
        /// A dirty file in scope that another agent has declared, too.
        ForeignDirtyOverlap = "foreign_dirty_overlap",
        /// A dirty file out of scope that no agent declared, with [`HygieneStrictness::Strict`].
        OwnUnscopedDirty = "own_unscoped_dirty",
        /// A file of the change whose staged content is neither that of the commit nor that on disk:
        /// a commit would take what was not judged.
        StagedNotJudged = "staged_not_judged",
    }
}

/// Whether dirty files that no agent declared keep a change from ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HygieneStrictness {
    /// They are reported.
    Lenient,
    /// They block.
    Strict,
}

/// The uncommitted changes that matter when a change ends.
#[derive(Debug, Clone, PartialEq)]
pub struct AtFinish {
    /// Every dirty path.
    pub dirty: Vec<Attribution>,
    /// Those that other agents have declared, too.
    pub overlaps: Vec<Overlap>,
    /// Paths that the agent says it touched and that did not change: reported, never blocking.
    pub not_changed: Vec<RawPath>,
    /// Paths that were committed since and not declared: reported, and not blocking, because
    /// another agent that finished commits as well.
    pub committed: Vec<RawPath>,
    /// Paths of the change whose staged content was not judged.
    pub staged: Vec<RawPath>,
    pub block: Option<Block>,
}

#[derive(Clone, Copy)]
pub struct Finishing<'a> {
    pub scope: &'a ChangeScope,
    /// The paths that the agent says it touched.
    pub evidence: &'a BTreeSet<RawPath>,
    /// The checkout when the change ends.
    pub now: &'a CheckoutState,
    pub start: Option<&'a Snapshot>,
    /// What differs between the trees of the start and of the end.
    pub moved: &'a Moved,
    /// All other live agents.
    pub peers: &'a [Peer],
    pub strictness: HygieneStrictness,
}

impl AtFinish {
    pub fn look(at: &Finishing<'_>) -> Self {
        let dirty: Vec<Attribution> = at
            .now
            .dirty
            .keys()
            .map(|path| attribute(at, path))
            .collect();
        let overlaps = overlaps(at.scope, at.now, at.peers);
        let staged: Vec<RawPath> = dirty
            .iter()
            .filter(|one| one.in_evidence || one.relation != Relation::Outside)
            .filter(|one| {
                at.now
                    .dirty
                    .get(&one.path)
                    .is_some_and(DirtyFile::is_staged_apart)
            })
            .map(|one| one.path.clone())
            .collect();
        let strict = at.strictness == HygieneStrictness::Strict;
        let some = |is: fn(Class) -> bool| dirty.iter().any(|one| is(one.class));
        let block = if some(|class| class == Class::MissingEvidence) {
            Some(Block::MissingEvidence)
        } else if !overlaps.is_empty() {
            Some(Block::ForeignDirtyOverlap)
        } else if strict && some(Class::is_unattributed) {
            Some(Block::OwnUnscopedDirty)
        } else if !staged.is_empty() {
            Some(Block::StagedNotJudged)
        } else {
            None
        };
        let changed = at
            .start
            .map(|start| start.workspace.differences(at.now, at.moved))
            .unwrap_or_default();
        let untouched =
            |path: &&RawPath| !at.now.dirty.contains_key(*path) && !changed.contains(*path);
        let committed = |path: &&RawPath| {
            let gone = !at.now.dirty.contains_key(*path) && changed.contains(*path);
            gone && at.scope.relation(path) == Relation::Outside
        };
        Self {
            dirty,
            overlaps,
            not_changed: at.evidence.iter().filter(untouched).cloned().collect(),
            committed: at.moved.keys().filter(committed).cloned().collect(),
            staged,
            block,
        }
    }

    pub fn of(&self, is: impl Fn(Class) -> bool) -> Vec<&RawPath> {
        let found = self.dirty.iter().filter(|one| is(one.class));
        found.map(|one| &one.path).collect()
    }

    /// All paths that do not belong to the change: dirty or committed since, and not in scope.
    pub fn external(&self) -> Vec<&RawPath> {
        self.outside().into_iter().chain(&self.committed).collect()
    }

    /// All dirty paths that are not in scope.
    pub fn outside(&self) -> Vec<&RawPath> {
        let found = self.dirty.iter();
        found
            .filter(|one| one.relation == Relation::Outside)
            .map(|one| &one.path)
            .collect()
    }
}

fn attribute(at: &Finishing<'_>, path: &RawPath) -> Attribution {
    let relation = at.scope.relation(path);
    let in_evidence = at.evidence.contains(path);
    let start = at
        .now
        .start_state(path, at.start.map(|start| &start.workspace));
    let foreign = at
        .peers
        .iter()
        .find(|peer| peer.shares_checkout && covers(&peer.scope.allowed_files, path));
    let class = if relation != Relation::Outside {
        if in_evidence {
            Class::DeclaredScopeDirty
        } else {
            Class::MissingEvidence
        }
    } else if foreign.is_some() {
        Class::ForeignAttributed
    } else {
        match start {
            StartState::PresentSame => Class::Preexisting,
            StartState::Absent => Class::New,
            StartState::PresentChanged => Class::Modified,
            StartState::Unknown => Class::Unknown,
        }
    };
    Attribution {
        path: path.clone(),
        relation,
        in_evidence,
        start,
        intent_id: foreign.map(|peer| peer.intent_id.clone()),
        class,
    }
}

fn overlaps(scope: &ChangeScope, now: &CheckoutState, peers: &[Peer]) -> Vec<Overlap> {
    let mut found = Vec::new();
    let mine = |path: &&RawPath| scope.relation(path) == Relation::OwnAllowed;
    for path in now.dirty.keys().filter(mine) {
        let theirs = |peer: &&Peer| peer.shares_checkout && covers(&peer.scope.allowed_files, path);
        found.extend(peers.iter().filter(theirs).map(|peer| Overlap {
            path: path.clone(),
            intent_id: peer.intent_id.clone(),
            state: peer.state,
            ownership: peer.ownership,
            agent_label: peer.agent_label.clone(),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conflict::peers;
    use crate::intent::Viewer;
    use crate::intent::tests::{alive, intent, owner};
    use crate::sample::{checkout, dirty_file};
    use provost_core::checkout::ABSENT;

    fn others(intents: &[(&str, u32, &[&str])]) -> Vec<Peer> {
        let intents: Vec<_> = intents
            .iter()
            .map(|(id, pid, allowed)| intent(id, *pid, allowed))
            .collect();
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 0,
            alive: &alive,
        };
        peers(&intents, &[], &viewer)
    }

    #[test]
    fn uncommitted_changes_in_the_files_to_be_touched_block_editing() {
        let scope = ChangeScope::parse(&["docs/book", "a"], &["rel"], &[], "").unwrap();
        let now = checkout(&[
            ("docs/book/x", dirty_file(" M", "1", "2")),
            ("docs/bo", dirty_file("??", ABSENT, "2")),
            ("rel/y", dirty_file(" M", "1", "2")),
        ]);
        let found = AtStart::look(&scope, &now, &others(&[("b", 2, &["docs"])]));
        assert!(found.blocks_edit());
        assert_eq!(found.in_scope, [RawPath::new("docs/book/x")]);
        assert_eq!(found.related, [RawPath::new("rel/y")]);
        assert_eq!(found.overlaps.len(), 1);
        let found = AtStart::look(&scope, &checkout(&[("z", dirty_file(" M", "1", "2"))]), &[]);
        assert_eq!(found, AtStart::default());
    }

    fn finish(evidence: &[&str], strictness: HygieneStrictness, peers: &[Peer]) -> AtFinish {
        let scope = ChangeScope::parse(&["a", "b"], &["rel"], &[], "").unwrap();
        let start = Snapshot {
            captured_at: 0,
            workspace: checkout(&[
                ("old", dirty_file(" M", "1", "2")),
                ("mod", dirty_file(" M", "1", "2")),
                ("unread", dirty_file(" M", "1", "?")),
            ]),
        };
        let now = checkout(&[
            ("a", dirty_file(" M", "1", "2")),
            ("old", dirty_file(" M", "1", "2")),
            ("mod", dirty_file(" M", "1", "3")),
            ("new", dirty_file("??", ABSENT, "3")),
            ("unread", dirty_file(" M", "1", "3")),
            ("theirs/x", dirty_file(" M", "1", "3")),
            ("dead/x", dirty_file(" M", "1", "3")),
        ]);
        AtFinish::look(&Finishing {
            scope: &scope,
            evidence: &evidence.iter().map(|path| RawPath::new(*path)).collect(),
            now: &now,
            start: Some(&start),
            moved: &Moved::new(),
            peers,
            strictness,
        })
    }

    #[test]
    fn every_dirty_path_has_one_class() {
        let peers = others(&[("p", 2, &["theirs"]), ("d", 9, &["dead"])]);
        let found = finish(&["a", "b"], HygieneStrictness::Lenient, &peers);
        let classes: Vec<(String, &str)> = found
            .dirty
            .iter()
            .map(|one| (one.path.to_string(), one.class.name()))
            .collect();
        let want = [
            ("a", "declared_scope_dirty"),
            ("dead/x", "new_unattributed_unscoped_dirty"),
            ("mod", "modified_unattributed_unscoped_dirty"),
            ("new", "new_unattributed_unscoped_dirty"),
            ("old", "preexisting_unscoped_dirty"),
            ("theirs/x", "foreign_attributed_outside_scope"),
            ("unread", "unknown_unattributed_unscoped_dirty"),
        ];
        assert_eq!(classes, want.map(|(path, class)| (path.to_owned(), class)));
        assert_eq!(found.block, None);
        assert_eq!(found.not_changed, [RawPath::new("b")]);
        assert_eq!(found.outside().len(), 6);
    }

    #[test]
    fn what_was_committed_and_not_declared_is_reported() {
        let scope = ChangeScope::parse(&["a"], &[], &[], "").unwrap();
        let pair = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        let start = Snapshot {
            captured_at: 0,
            workspace: checkout(&[("old", dirty_file(" M", "1", "2"))]),
        };
        let now = checkout(&[("both", dirty_file(" M", "2", "3"))]);
        let moved = Moved::from([
            (RawPath::new("a"), pair("1", "2")),
            (RawPath::new("b"), pair("1", "2")),
            (RawPath::new("both"), pair("1", "2")),
            (RawPath::new("new"), pair(ABSENT, "2")),
            // It had that content before, uncommitted.
            (RawPath::new("old"), pair("1", "2")),
        ]);
        let found = AtFinish::look(&Finishing {
            scope: &scope,
            evidence: &BTreeSet::from([RawPath::new("a")]),
            now: &now,
            start: Some(&start),
            moved: &moved,
            peers: &[],
            strictness: HygieneStrictness::Lenient,
        });
        assert_eq!(found.committed, ["b", "new"].map(RawPath::new));
        let external: Vec<String> = found.external().iter().map(ToString::to_string).collect();
        assert_eq!(external, ["both", "b", "new"]);
        assert_eq!(found.not_changed, []);
    }

    #[test]
    fn the_first_reason_to_block_is_reported() {
        let none = [];
        let overlapping = others(&[("p", 2, &["a"])]);
        let cases = [
            (
                "missing",
                &[][..],
                HygieneStrictness::Strict,
                &overlapping[..],
                Some(Block::MissingEvidence),
            ),
            (
                "overlap",
                &["a"],
                HygieneStrictness::Strict,
                &overlapping,
                Some(Block::ForeignDirtyOverlap),
            ),
            (
                "strict",
                &["a"],
                HygieneStrictness::Strict,
                &none,
                Some(Block::OwnUnscopedDirty),
            ),
            ("lenient", &["a"], HygieneStrictness::Lenient, &none, None),
        ];
        for (name, evidence, strictness, peers, want) in cases {
            let found = finish(evidence, strictness, peers);
            assert_eq!(found.block, want, "{name}");
            assert_eq!(found.overlaps.len(), peers.len(), "{name}");
        }
    }
}
