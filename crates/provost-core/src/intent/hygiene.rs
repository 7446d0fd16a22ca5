//! Says whose the dirty files of a checkout are (R33 to R41).

use std::collections::BTreeSet;

use super::conflict::Peer;
use super::record::{Ownership, State};
use super::scope::{ChangeScope, Relation, covers};
use super::workspace::{Moved, Snapshot, StartState, Workspace};
use crate::path::RawPath;

/// Dirt that somebody else who is alive has declared as well (R40).
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    pub path: RawPath,
    /// The other intent.
    pub intent_id: String,
    pub state: State,
    pub ownership: Ownership,
    /// What its agent calls itself.
    pub agent_label: String,
}

/// The dirt that matters when an intent is declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AtStart {
    /// In what is to be touched.
    pub in_scope: Vec<RawPath>,
    /// In what may be touched.
    pub related: Vec<RawPath>,
    /// What others have declared, too.
    pub overlaps: Vec<Overlap>,
}

impl AtStart {
    /// Looks at the checkout as it is now.
    pub fn look(scope: &ChangeScope, now: &Workspace, peers: &[Peer]) -> Self {
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

    /// Whether somebody's work lies where the agent wants to work (R46).
    pub fn blocks_edit(&self) -> bool {
        !self.in_scope.is_empty()
    }
}

/// What a dirty path is to a change that ends (R37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// In scope, and not among what the agent says it touched.
    MissingEvidence,
    /// In scope, and told.
    DeclaredScopeDirty,
    /// Somebody else's who is alive.
    ForeignAttributed,
    /// It was so before.
    Preexisting,
    /// It came since, and nobody declared it.
    New,
    /// It changed since, and nobody declared it.
    Modified,
    /// Nobody can tell what it was before.
    Unknown,
}

impl Class {
    /// Its name in payloads.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingEvidence => "missing_evidence",
            Self::DeclaredScopeDirty => "declared_scope_dirty",
            Self::ForeignAttributed => "foreign_attributed_outside_scope",
            Self::Preexisting => "preexisting_unscoped_dirty",
            Self::New => "new_unattributed_unscoped_dirty",
            Self::Modified => "modified_unattributed_unscoped_dirty",
            Self::Unknown => "unknown_unattributed_unscoped_dirty",
        }
    }

    /// Whether it is out of scope and nobody's (R38).
    pub fn is_unattributed(self) -> bool {
        matches!(self, Self::New | Self::Modified | Self::Unknown)
    }
}

/// One dirty path, and what it is to the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    pub path: RawPath,
    /// Where that stands to the scope.
    pub relation: Relation,
    /// Whether the agent says it touched it.
    pub in_evidence: bool,
    /// What it was when the intent was declared.
    pub start: StartState,
    /// The intent of somebody else that covers it.
    pub intent_id: Option<String>,
    /// What follows.
    pub class: Class,
}

/// Why a change cannot end yet (R70).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Dirt in scope that the agent does not tell of.
    MissingEvidence,
    /// Dirt in scope that somebody else has declared, too.
    ForeignDirtyOverlap,
    /// Dirt out of scope that is nobody's, where that is strict.
    OwnUnscopedDirty,
}

impl Block {
    /// Its name in payloads.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingEvidence => "missing_evidence",
            Self::ForeignDirtyOverlap => "foreign_dirty_overlap",
            Self::OwnUnscopedDirty => "own_unscoped_dirty",
        }
    }
}

/// Whether dirt that is nobody's keeps a change from ending (R56, R75).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It is told.
    Lenient,
    /// It does.
    Strict,
}

/// The dirt that matters when a change ends.
#[derive(Debug, Clone, PartialEq)]
pub struct AtFinish {
    /// Every dirty path.
    pub dirt: Vec<Attribution>,
    /// What others have declared, too.
    pub overlaps: Vec<Overlap>,
    /// What the agent says it touched and did not: told, never in the way.
    pub not_changed: Vec<RawPath>,
    /// What was committed since, and was not declared: told, and not in the way either, because a
    /// neighbour who is done commits as well.
    pub committed: Vec<RawPath>,
    /// Why the change cannot end yet.
    pub block: Option<Block>,
}

/// What hygiene at the end of a change looks at.
#[derive(Clone, Copy)]
pub struct Finishing<'a> {
    /// What was declared.
    pub scope: &'a ChangeScope,
    /// What the agent says it touched.
    pub evidence: &'a BTreeSet<RawPath>,
    /// The checkout now.
    pub now: &'a Workspace,
    /// The checkout when the intent was declared.
    pub start: Option<&'a Snapshot>,
    /// What differs between the trees of then and now.
    pub moved: &'a Moved,
    /// Everybody else.
    pub peers: &'a [Peer],
    /// How strict to be.
    pub strictness: Strictness,
}

impl AtFinish {
    /// Looks at the checkout as it is now.
    pub fn look(at: &Finishing<'_>) -> Self {
        let dirt: Vec<Attribution> = at
            .now
            .dirty
            .keys()
            .map(|path| attribute(at, path))
            .collect();
        let overlaps = overlaps(at.scope, at.now, at.peers);
        let strict = at.strictness == Strictness::Strict;
        let some = |is: fn(Class) -> bool| dirt.iter().any(|one| is(one.class));
        let block = if some(|class| class == Class::MissingEvidence) {
            Some(Block::MissingEvidence)
        } else if !overlaps.is_empty() {
            Some(Block::ForeignDirtyOverlap)
        } else if strict && some(Class::is_unattributed) {
            Some(Block::OwnUnscopedDirty)
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
            dirt,
            overlaps,
            not_changed: at.evidence.iter().filter(untouched).cloned().collect(),
            committed: at.moved.keys().filter(committed).cloned().collect(),
            block,
        }
    }

    pub fn of(&self, is: impl Fn(Class) -> bool) -> Vec<&RawPath> {
        let found = self.dirt.iter().filter(|one| is(one.class));
        found.map(|one| &one.path).collect()
    }

    /// Everything that is not of the change: dirty or committed since, and not in scope.
    pub fn external(&self) -> Vec<&RawPath> {
        self.outside().into_iter().chain(&self.committed).collect()
    }

    /// Everything that is dirty and not in scope (R65).
    pub fn outside(&self) -> Vec<&RawPath> {
        let found = self.dirt.iter();
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

fn overlaps(scope: &ChangeScope, now: &Workspace, peers: &[Peer]) -> Vec<Overlap> {
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
    use super::super::conflict::peers;
    use super::super::record::Viewer;
    use super::super::record::tests::{alive, intent, owner};
    use super::super::workspace::ABSENT;
    use super::super::workspace::tests::{dirt, workspace};
    use super::*;

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
    fn r46_dirt_in_what_is_to_be_touched_blocks_editing() {
        let scope = ChangeScope::parse(&["docs/book", "a"], &["rel"], &[], "").unwrap();
        let now = workspace(&[
            ("docs/book/x", dirt(" M", "1", "2")),
            ("docs/bo", dirt("??", ABSENT, "2")),
            ("rel/y", dirt(" M", "1", "2")),
        ]);
        let found = AtStart::look(&scope, &now, &others(&[("b", 2, &["docs"])]));
        assert!(found.blocks_edit());
        assert_eq!(found.in_scope, [RawPath::new("docs/book/x")]);
        assert_eq!(found.related, [RawPath::new("rel/y")]);
        assert_eq!(found.overlaps.len(), 1);
        let found = AtStart::look(&scope, &workspace(&[("z", dirt(" M", "1", "2"))]), &[]);
        assert_eq!(found, AtStart::default());
    }

    fn finish(evidence: &[&str], strictness: Strictness, peers: &[Peer]) -> AtFinish {
        let scope = ChangeScope::parse(&["a", "b"], &["rel"], &[], "").unwrap();
        let start = Snapshot {
            captured_at: 0,
            workspace: workspace(&[
                ("old", dirt(" M", "1", "2")),
                ("mod", dirt(" M", "1", "2")),
                ("unread", dirt(" M", "1", "?")),
            ]),
        };
        let now = workspace(&[
            ("a", dirt(" M", "1", "2")),
            ("old", dirt(" M", "1", "2")),
            ("mod", dirt(" M", "1", "3")),
            ("new", dirt("??", ABSENT, "3")),
            ("unread", dirt(" M", "1", "3")),
            ("theirs/x", dirt(" M", "1", "3")),
            ("dead/x", dirt(" M", "1", "3")),
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
    fn r37_every_dirty_path_has_one_class() {
        let peers = others(&[("p", 2, &["theirs"]), ("d", 9, &["dead"])]);
        let found = finish(&["a", "b"], Strictness::Lenient, &peers);
        let classes: Vec<(String, &str)> = found
            .dirt
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
    fn what_was_committed_and_not_declared_is_told() {
        let scope = ChangeScope::parse(&["a"], &[], &[], "").unwrap();
        let pair = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        let start = Snapshot {
            captured_at: 0,
            workspace: workspace(&[("old", dirt(" M", "1", "2"))]),
        };
        let now = workspace(&[("both", dirt(" M", "2", "3"))]);
        let moved = Moved::from([
            (RawPath::new("a"), pair("1", "2")),
            (RawPath::new("b"), pair("1", "2")),
            (RawPath::new("both"), pair("1", "2")),
            (RawPath::new("new"), pair(ABSENT, "2")),
            // It was so before, and nobody had committed it.
            (RawPath::new("old"), pair("1", "2")),
        ]);
        let found = AtFinish::look(&Finishing {
            scope: &scope,
            evidence: &BTreeSet::from([RawPath::new("a")]),
            now: &now,
            start: Some(&start),
            moved: &moved,
            peers: &[],
            strictness: Strictness::Lenient,
        });
        assert_eq!(found.committed, ["b", "new"].map(RawPath::new));
        let external: Vec<String> = found.external().iter().map(ToString::to_string).collect();
        assert_eq!(external, ["both", "b", "new"]);
        assert_eq!(found.not_changed, []);
    }

    #[test]
    fn r70_the_first_reason_to_block_is_told() {
        let none = [];
        let overlapping = others(&[("p", 2, &["a"])]);
        let cases = [
            (
                "missing",
                &[][..],
                Strictness::Strict,
                &overlapping[..],
                Some(Block::MissingEvidence),
            ),
            (
                "overlap",
                &["a"],
                Strictness::Strict,
                &overlapping,
                Some(Block::ForeignDirtyOverlap),
            ),
            (
                "strict",
                &["a"],
                Strictness::Strict,
                &none,
                Some(Block::OwnUnscopedDirty),
            ),
            ("lenient", &["a"], Strictness::Lenient, &none, None),
        ];
        for (name, evidence, strictness, peers, want) in cases {
            let found = finish(evidence, strictness, peers);
            assert_eq!(found.block, want, "{name}");
            assert_eq!(found.overlaps.len(), peers.len(), "{name}");
        }
    }
}
