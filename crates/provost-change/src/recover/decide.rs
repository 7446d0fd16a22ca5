//! Decides which agent may take over the intent of another one.

use crate::conflict::{Conflict, Peer, conflicts};
use crate::hygiene::{AtStart, Overlap};
use crate::intent::{Intent, Ownership, State, Viewer};
use provost_core::checkout::CheckoutState;

#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    NotFound,
    /// The caller owns it, and its lease is valid.
    AlreadyActive,
    /// Its owner is alive, or its time is over.
    NotRecoverable(Ownership),
    /// The caller has no analysis of the checkout.
    RunNotAvailable,
    /// Another live agent has declared its files since.
    Conflict(Vec<Conflict>),
}

impl Refusal {
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::AlreadyActive => "already_active",
            Self::NotRecoverable(_) => "not_recoverable",
            Self::RunNotAvailable => "run_not_available",
            Self::Conflict(_) => "conflict",
        }
    }
}

/// Whether `viewer` may take over `intent`.
///
/// The edits of the dead agent are no obstacle: the analysis from before them is part of the
/// evidence. Other agents that declared the files since are an obstacle.
pub fn judge(
    intent: Option<&Intent>,
    has_run: bool,
    peers: &[Peer],
    viewer: &Viewer<'_>,
) -> Result<(), Refusal> {
    let intent = intent.filter(|it| it.state.is_open() || it.state == State::Expired);
    let intent = intent.ok_or(Refusal::NotFound)?;
    if intent.state == State::Expired {
        return Err(Refusal::NotRecoverable(Ownership::Expired));
    }
    match intent.ownership(viewer) {
        Ownership::Recoverable | Ownership::OwnStale => {}
        Ownership::OwnActive => return Err(Refusal::AlreadyActive),
        other => return Err(Refusal::NotRecoverable(other)),
    }
    if !has_run {
        return Err(Refusal::RunNotAvailable);
    }
    let others: Vec<Peer> = peers
        .iter()
        .filter(|peer| peer.intent_id != intent.intent_id)
        .cloned()
        .collect();
    match conflicts(&intent.scope, &others) {
        found if found.is_empty() => Ok(()),
        found => Err(Refusal::Conflict(found)),
    }
}

/// Lets an agent take over an intent although others hold its files by now, if uncommitted work of
/// it lies in them: the others cannot finish with that work before both agree. Gives the others.
///
/// What the others edited after their own start is theirs, and no reason to take anything over.
pub fn contest(
    judged: Result<(), Refusal>,
    intent: Option<&Intent>,
    now: Option<&CheckoutState>,
    (known, peers): (&[Intent], &[Peer]),
) -> Result<Vec<Conflict>, Refusal> {
    let (Err(Refusal::Conflict(found)), Some(intent)) = (&judged, intent) else {
        return judged.map(|()| Vec::new());
    };
    let left = now.filter(|_| intent.edit_allowed);
    let left = left.map(|now| AtStart::look(&intent.scope, now, peers));
    let was_there = |overlap: &Overlap| {
        let holder = known.iter().find(|one| one.intent_id == overlap.intent_id);
        let start = holder.and_then(|holder| holder.snapshot.as_ref());
        start.is_some_and(|start| start.workspace.dirty.contains_key(&overlap.path))
    };
    match left {
        Some(left) if left.overlaps.iter().any(was_there) => Ok(found.clone()),
        _ => Err(Refusal::Conflict(found.clone())),
    }
}

/// Result of a request to reset an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// The caller owns it, and its time begins anew.
    Renewed,
    /// Its owner is dead or its time is over: it is closed with this state.
    Removed(State),
    /// Its owner is alive.
    Rejected(Ownership),
}

pub fn reset(intent: &Intent, viewer: &Viewer<'_>) -> Reset {
    match intent.ownership(viewer) {
        Ownership::OwnActive | Ownership::OwnStale => Reset::Renewed,
        Ownership::Expired => Reset::Removed(State::Expired),
        Ownership::Recoverable => Reset::Removed(State::Orphaned),
        other @ (Ownership::ForeignActive | Ownership::ForeignStale) => Reset::Rejected(other),
    }
}

/// How much a sweep closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Intents whose time is over.
    Lazy,
    /// Also intents of dead agents.
    Whole,
}

/// The state that a sweep closes an open intent with; `None` if it stays open.
pub fn closing(intent: &Intent, sweep: Sweep, viewer: &Viewer<'_>) -> Option<State> {
    if !intent.state.is_open() {
        return None;
    }
    match (intent.ownership(viewer), sweep) {
        (Ownership::Expired, _) => Some(State::Expired),
        (Ownership::Recoverable, Sweep::Whole) => Some(State::Orphaned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conflict::peers;
    use crate::intent::tests::{alive, intent, owner};

    #[test]
    fn only_an_intent_of_a_dead_agent_is_taken_over() {
        let me = owner(1);
        let viewer = |now| Viewer {
            me: &me,
            now,
            alive: &alive,
        };
        let dead = intent("dead", 9, &["a"]);
        let mine = intent("mine", 1, &["a"]);
        let theirs = intent("theirs", 2, &["a"]);
        let mut closed = dead.clone();
        closed.state = State::Orphaned;
        let name = |intent: Option<&Intent>, has_run, now, others: &[Intent]| {
            let peers = peers(others, &[], &viewer(now));
            judge(intent, has_run, &peers, &viewer(now)).map_err(|refusal| refusal.name())
        };
        assert_eq!(name(None, true, 0, &[]), Err("not_found"));
        assert_eq!(name(Some(&closed), true, 0, &[]), Err("not_found"));
        assert_eq!(name(Some(&theirs), true, 0, &[]), Err("not_recoverable"));
        assert_eq!(
            name(Some(&theirs), true, 300_000, &[]),
            Err("not_recoverable")
        );
        assert_eq!(
            name(Some(&dead), true, 3_600_000, &[]),
            Err("not_recoverable")
        );
        assert_eq!(name(Some(&mine), true, 0, &[]), Err("already_active"));
        assert_eq!(name(Some(&mine), true, 300_000, &[]), Ok(()));
        assert_eq!(name(Some(&dead), false, 0, &[]), Err("run_not_available"));
        assert_eq!(
            name(Some(&dead), true, 0, std::slice::from_ref(&theirs)),
            Err("conflict")
        );
        assert_eq!(name(Some(&dead), true, 0, &[]), Ok(()));
    }

    #[test]
    fn who_lives_is_left_alone() {
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 0,
            alive: &alive,
        };
        let over = Viewer {
            now: 3_600_000,
            ..viewer
        };
        let (mine, theirs, dead) = (
            intent("m", 1, &["a"]),
            intent("t", 2, &["a"]),
            intent("d", 9, &["a"]),
        );
        assert_eq!(reset(&mine, &viewer), Reset::Renewed);
        assert_eq!(
            reset(&theirs, &viewer),
            Reset::Rejected(Ownership::ForeignActive)
        );
        assert_eq!(reset(&dead, &viewer), Reset::Removed(State::Orphaned));
        assert_eq!(reset(&theirs, &over), Reset::Removed(State::Expired));
        assert_eq!(closing(&dead, Sweep::Lazy, &viewer), None);
        assert_eq!(closing(&dead, Sweep::Whole, &viewer), Some(State::Orphaned));
        assert_eq!(closing(&theirs, Sweep::Whole, &viewer), None);
        assert_eq!(closing(&mine, Sweep::Lazy, &over), Some(State::Expired));
    }
}
