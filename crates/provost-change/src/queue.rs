//! Orders the intents that wait.

use crate::conflict::{Conflict, Peer, conflicts};
use crate::intent::{Intent, Ownership, State, Viewer};

/// The place of `intent` among all that wait, from 1: by the time of the declaration, then by name.
pub fn position(intent: &Intent, intents: &[Intent], viewer: &Viewer<'_>) -> usize {
    let key = |one: &Intent| (one.declared_at, one.intent_id.clone());
    let ahead = intents.iter().filter(|other| {
        other.state == State::Queued
            && other.intent_id != intent.intent_id
            && waits(other, viewer)
            && key(other) < key(intent)
    });
    ahead.count() + 1
}

/// Intents that wait for a part of the same files and were declared earlier; they are let in first.
///
/// Only an agent that is alive and renews its lease keeps its place.
pub fn ahead(intent: &Intent, intents: &[Intent], viewer: &Viewer<'_>) -> Vec<Conflict> {
    let key = |one: &Intent| (one.declared_at, one.intent_id.clone());
    let earlier: Vec<Peer> = intents
        .iter()
        .filter(|other| {
            other.state == State::Queued
                && other.ownership(viewer) == Ownership::ForeignActive
                && key(other) < key(intent)
        })
        .map(|other| Peer::of(other, viewer))
        .collect();
    conflicts(&intent.scope, &earlier)
}

fn waits(intent: &Intent, viewer: &Viewer<'_>) -> bool {
    !matches!(
        intent.ownership(viewer),
        Ownership::Expired | Ownership::Recoverable
    )
}

/// Intents that wait for files of `intent`: reported, never blocking.
pub fn waiting(intent: &Intent, intents: &[Intent], viewer: &Viewer<'_>) -> Vec<Conflict> {
    let queued: Vec<Peer> = intents
        .iter()
        .filter(|other| other.state == State::Queued && other.ownership(viewer).is_live_foreign())
        .map(|other| Peer::of(other, viewer))
        .collect();
    let mut found = conflicts(&intent.scope, &queued);
    found.retain(|one| !one.hard.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::tests::{alive, intent, owner};

    fn queued(id: &str, pid: u32, at: i64, allowed: &[&str]) -> Intent {
        Intent {
            state: State::Queued,
            declared_at: at,
            ..intent(id, pid, allowed)
        }
    }

    #[test]
    fn positions_follow_time_and_names_and_the_first_goes_first() {
        let all = [
            queued("b", 2, 10, &["x"]),
            queued("c", 3, 20, &["x"]),
            queued("a", 4, 20, &["y"]),
            queued("dead", 9, 1, &["x"]),
            intent("active", 5, &["x"]),
        ];
        let me = owner(3);
        let viewer = Viewer {
            me: &me,
            now: 100,
            alive: &alive,
        };
        let places: Vec<usize> = all[..3]
            .iter()
            .map(|one| position(one, &all, &viewer))
            .collect();
        assert_eq!(places, [1, 3, 2]);
        let before = |one: &Intent| -> Vec<String> {
            let found = ahead(one, &all, &viewer);
            found.into_iter().map(|one| one.peer.intent_id).collect()
        };
        assert_eq!(before(&all[1]), ["b"]);
        assert!(before(&all[2]).is_empty(), "other files");
        // An agent that does not renew loses its place until it renews.
        let late = Viewer {
            now: 300_020,
            ..viewer
        };
        assert!(ahead(&all[1], &all, &late).is_empty());
        assert_eq!(
            waiting(&all[4], &all, &viewer).len(),
            1,
            "own and dead ones are left out"
        );
    }
}
