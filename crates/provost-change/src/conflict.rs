//! Finds intents, and runs of `provost run`, whose scopes overlap.

use std::collections::BTreeSet;

use crate::intent::{Intent, Ownership, State, Viewer};
use crate::scope::{ChangeScope, covers};
use provost_core::lease::Lease;
use provost_core::path::{RawPath, RepoPath};

/// An intent or a run whose scope overlaps.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The other side; a run of `provost run` is shown as an intent.
    pub peer: Peer,
    /// Paths that both will touch.
    pub hard: Vec<RepoPath>,
    /// Paths that one will touch and the other may touch.
    pub soft: Vec<RepoPath>,
}

/// Another agent or run that is active in this repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// The id of the intent or of the run.
    pub intent_id: String,
    pub agent_pid: u32,
    /// In seconds since 1970.
    pub agent_start_epoch: i64,
    /// What it calls itself.
    pub agent_label: String,
    /// What it will do, as text.
    pub intent: String,
    pub state: State,
    pub ownership: Ownership,
    pub declared_at: i64,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    pub scope: ChangeScope,
    /// Whether it works in this checkout; a run of `provost run` has its own workspace.
    pub shares_checkout: bool,
}

impl Peer {
    pub fn of(intent: &Intent, viewer: &Viewer<'_>) -> Self {
        Self {
            intent_id: intent.intent_id.clone(),
            agent_pid: intent.owner.pid,
            agent_start_epoch: intent.agent_start_epoch,
            agent_label: intent.agent_label.clone(),
            intent: intent.intent.clone(),
            state: intent.state,
            ownership: intent.ownership(viewer),
            declared_at: intent.declared_at,
            expires_at: intent.expires_at,
            scope: intent.scope.clone(),
            shares_checkout: true,
        }
    }

    pub fn of_run(lease: &Lease) -> Self {
        Self {
            intent_id: lease.run_id.clone(),
            agent_pid: lease.owner.pid,
            agent_start_epoch: 0,
            agent_label: "provost run".to_owned(),
            intent: "a launched run".to_owned(),
            state: State::Active,
            ownership: Ownership::ForeignActive,
            declared_at: lease.granted_at,
            expires_at: lease.expires_at,
            scope: ChangeScope {
                allowed_files: lease.scope.entries().to_vec(),
                ..ChangeScope::default()
            },
            shares_checkout: false,
        }
    }

    /// State of the other side, and the advice for the caller, as payloads name them.
    pub fn advice(&self) -> (&'static str, &'static str) {
        match self.ownership {
            Ownership::ForeignStale => ("stale", "coordinate_or_recover"),
            _ => ("active", "stop_and_coordinate"),
        }
    }
}

impl Conflict {
    pub fn kind(&self) -> &'static str {
        match (self.hard.is_empty(), self.soft.is_empty()) {
            (false, false) => "both",
            (false, true) => "hard",
            (true, _) => "soft",
        }
    }

    pub fn files(&self) -> Vec<RepoPath> {
        let all: BTreeSet<&RepoPath> = self.hard.iter().chain(&self.soft).collect();
        all.into_iter().cloned().collect()
    }
}

/// One scope forbids what the other will touch: reported, never blocking.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    /// The other side.
    pub intent_id: String,
    /// What it calls itself.
    pub agent_label: String,
    /// `foreign_excludes_target` or `target_excludes_foreign`.
    pub relation: &'static str,
    /// The paths that are forbidden.
    pub paths: Vec<RepoPath>,
}

/// All other live agents and runs that hold files; those that wait are left out.
pub fn peers(intents: &[Intent], leases: &[Lease], viewer: &Viewer<'_>) -> Vec<Peer> {
    let intents = intents.iter().filter(|intent| intent.blocks(viewer));
    let leases = leases
        .iter()
        .filter(|lease| lease.is_live(viewer.now, viewer.alive) && lease.owner != *viewer.me);
    intents
        .map(|intent| Peer::of(intent, viewer))
        .chain(leases.map(Peer::of_run))
        .collect()
}

/// The peers whose scopes overlap with `scope`.
pub fn conflicts(scope: &ChangeScope, peers: &[Peer]) -> Vec<Conflict> {
    let meets = |peer: &Peer| {
        let theirs = &peer.scope;
        let hard = overlap(&scope.allowed_files, &theirs.allowed_files);
        let mut soft = overlap(&scope.allowed_files, &theirs.allowed_related);
        soft.extend(overlap(&scope.allowed_related, &theirs.allowed_files));
        soft.sort();
        soft.dedup();
        let found = !(hard.is_empty() && soft.is_empty());
        found.then(|| Conflict {
            peer: peer.clone(),
            hard,
            soft,
        })
    };
    peers.iter().filter_map(meets).collect()
}

/// The peers that forbid what `scope` will touch, or the reverse, where nothing overlaps.
pub fn exclusions(scope: &ChangeScope, peers: &[Peer]) -> Vec<Exclusion> {
    let forbidden = |by: &ChangeScope, of: &ChangeScope| -> Vec<RepoPath> {
        let named = of.allowed_files.iter();
        named
            .filter(|path| by.forbids(path.as_str()))
            .cloned()
            .collect()
    };
    let exclusion = |peer: &Peer| {
        if !conflicts(scope, std::slice::from_ref(peer)).is_empty() {
            return None;
        }
        let theirs = forbidden(&peer.scope, scope);
        let ours = forbidden(scope, &peer.scope);
        let (relation, paths) = match (theirs.is_empty(), ours.is_empty()) {
            (false, _) => ("foreign_excludes_target", theirs),
            (true, false) => ("target_excludes_foreign", ours),
            (true, true) => return None,
        };
        Some(Exclusion {
            intent_id: peer.intent_id.clone(),
            agent_label: peer.agent_label.clone(),
            relation,
            paths,
        })
    };
    peers.iter().filter_map(exclusion).collect()
}

/// What two sorted lists share. A directory shares what lies below it, and the deeper of the two
/// paths is listed.
pub fn overlap(ours: &[RepoPath], theirs: &[RepoPath]) -> Vec<RepoPath> {
    let below = |inner: &[RepoPath], outer: &[RepoPath]| -> Vec<RepoPath> {
        let inside = |path: &&RepoPath| covers(outer, &RawPath::from(*path));
        inner.iter().filter(inside).cloned().collect()
    };
    let mut shared = below(ours, theirs);
    shared.extend(below(theirs, ours));
    shared.sort();
    shared.dedup();
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::tests::{alive, intent, owner};
    use provost_core::lease::LeaseRequest;
    use provost_core::scope::Scope;

    fn scope(allowed: &[&str], related: &[&str], forbidden: &[&str]) -> ChangeScope {
        ChangeScope::parse(allowed, related, forbidden, "").unwrap()
    }

    fn report(mine: &ChangeScope, theirs: ChangeScope) -> String {
        let mut other = intent("other", 2, &["x"]);
        other.scope = theirs;
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 0,
            alive: &alive,
        };
        let peers = peers(&[other], &[], &viewer);
        let words = |paths: &[RepoPath]| {
            let paths: Vec<&str> = paths.iter().map(RepoPath::as_str).collect();
            paths.join(" ")
        };
        match (
            conflicts(mine, &peers).as_slice(),
            exclusions(mine, &peers).as_slice(),
        ) {
            ([], []) => "free".to_owned(),
            ([], [one]) => format!("{} {}", one.relation, words(&one.paths)),
            ([one], []) => format!(
                "{} [{}] [{}]",
                one.kind(),
                words(&one.hard),
                words(&one.soft)
            ),
            _ => "several".to_owned(),
        }
    }

    #[test]
    fn overlaps_and_exclusions() {
        let cases = [
            (
                "the same file",
                scope(&["a"], &[], &[]),
                scope(&["a"], &[], &[]),
                "hard [a] []",
            ),
            (
                "a file below",
                scope(&["p/a"], &[], &[]),
                scope(&["p"], &[], &[]),
                "hard [p/a] []",
            ),
            (
                "a directory above",
                scope(&["p"], &[], &[]),
                scope(&["p/a"], &[], &[]),
                "hard [p/a] []",
            ),
            (
                "a name alike",
                scope(&["pa"], &[], &[]),
                scope(&["p"], &[], &[]),
                "free",
            ),
            (
                "related there",
                scope(&["b"], &[], &[]),
                scope(&["a"], &["b"], &[]),
                "soft [] [b]",
            ),
            (
                "related here",
                scope(&["b"], &["a"], &[]),
                scope(&["a"], &[], &[]),
                "soft [] [a]",
            ),
            (
                "both related",
                scope(&["a"], &["c"], &[]),
                scope(&["b"], &["c"], &[]),
                "free",
            ),
            (
                "both kinds",
                scope(&["a", "b"], &[], &[]),
                scope(&["a"], &["b"], &[]),
                "both [a] [b]",
            ),
            (
                "forbidden here",
                scope(&["b"], &[], &["a*"]),
                scope(&["a.py"], &[], &[]),
                "target_excludes_foreign a.py",
            ),
            (
                "forbidden there first",
                scope(&["b"], &[], &["a*"]),
                scope(&["a.py"], &[], &["b"]),
                "foreign_excludes_target b",
            ),
        ];
        for (name, mine, theirs, want) in cases {
            assert_eq!(report(&mine, theirs), want, "{name}");
        }
    }

    #[test]
    fn only_live_strangers_at_work_count() {
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 400_000,
            alive: &alive,
        };
        let mut queued = intent("queued", 2, &["a"]);
        queued.state = State::Queued;
        let mut over = intent("over", 2, &["a"]);
        over.expires_at = 400_000;
        let all = [
            queued,
            over,
            intent("mine", 1, &["a"]),
            intent("dead", 9, &["a"]),
            intent("stale", 3, &["a"]),
        ];
        let lease = |run: &str, pid: u32| {
            LeaseRequest {
                run_id: run.into(),
                scope: Scope::parse(&["a"]).unwrap(),
                owner: owner(pid),
                now: 0,
                expires_at: 500_000,
            }
            .granted(1)
        };
        let found = peers(&all, &[lease("run", 4), lease("gone", 9)], &viewer);
        let names: Vec<(&str, &str)> = found
            .iter()
            .map(|peer| (peer.intent_id.as_str(), peer.advice().1))
            .collect();
        assert_eq!(
            names,
            [
                ("stale", "coordinate_or_recover"),
                ("run", "stop_and_coordinate")
            ]
        );
    }
}
