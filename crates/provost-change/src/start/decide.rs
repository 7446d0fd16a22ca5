//! Decides whether an agent may edit.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::conflict::Conflict;
use crate::hygiene::AtStart;
use crate::next_step::NextStep;

use provost_core::words;

/// What to do when another agent has declared the same files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Refuse the start.
    #[default]
    Block,
    /// Wait in the queue.
    Queue,
}

words! {
    /// What to do about uncommitted changes in the files to be touched.
    #[derive(Default, Deserialize, JsonSchema)]
    pub enum DirtyPolicy {
        /// Refuse the start.
        #[default]
        Block = "block",
        /// Take them for the agent's own unfinished work.
        ContinueOwnWip = "continue_own_wip",
    }
}

words! {
    pub enum StartStatus {
        /// No analysis describes the checkout as it is.
        NeedsAnalysis = "needs_analysis",
        /// Other agents hold the files, and this one waits.
        Queued = "queued",
        Blocked = "blocked",
        Active = "active",
    }
}

/// What is known about the uncommitted changes of the checkout.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    All(&'a AtStart),
    /// Git could not read the checkout. No agent may edit a checkout whose state is unknown.
    Nothing(&'a str),
}

/// Decides about a start that has an analysis.
pub fn decide(
    conflicts: &[Conflict],
    seen: Seen<'_>,
    on_conflict: OnConflict,
    policy: DirtyPolicy,
) -> StartStatus {
    if !conflicts.is_empty() {
        return match on_conflict {
            OnConflict::Queue => StartStatus::Queued,
            OnConflict::Block => StartStatus::Blocked,
        };
    }
    match seen {
        Seen::All(changes) if !changes.blocks_edit() || continues(changes, policy) => {
            StartStatus::Active
        }
        Seen::All(_) | Seen::Nothing(_) => StartStatus::Blocked,
    }
}

/// Whether the uncommitted changes in scope are taken for the agent's own.
pub fn continues(changes: &AtStart, policy: DirtyPolicy) -> bool {
    changes.blocks_edit() && policy == DirtyPolicy::ContinueOwnWip && changes.overlaps.is_empty()
}

/// What the agent can do about a start that was refused.
pub fn advice(conflicts: &[Conflict], seen: Seen<'_>) -> NextStep {
    match (conflicts.is_empty(), seen) {
        (_, Seen::Nothing(why)) => NextStep::CheckoutUnknown(why.to_owned()),
        (false, Seen::All(found)) if found.blocks_edit() => NextStep::AwaitOthersOfDirty,
        (false, Seen::All(_)) => NextStep::AwaitOthers,
        (true, Seen::All(found)) if !found.overlaps.is_empty() => NextStep::AskOwnerOfDirty,
        (true, Seen::All(_)) => NextStep::CommitOrClaim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conflict::{conflicts, peers};
    use crate::intent::Viewer;
    use crate::intent::tests::{alive, intent, owner};
    use crate::sample::{checkout, dirty_file};
    use crate::scope::ChangeScope;

    #[test]
    fn the_first_that_fits_decides() {
        use DirtyPolicy::{Block as Refuse, ContinueOwnWip as Continue};
        use OnConflict::{Block, Queue};
        use StartStatus::{Active, Blocked, Queued};
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 0,
            alive: &alive,
        };
        let scope = ChangeScope::parse(&["a"], &["r"], &[], "").unwrap();
        let clean = checkout(&[]);
        let dirty = checkout(&[("a", dirty_file(" M", "1", "2"))]);
        let beside = checkout(&[
            ("r", dirty_file(" M", "1", "2")),
            ("z", dirty_file(" M", "1", "2")),
        ]);
        let cases = [
            ("clean", &[][..], &clean, Block, Refuse, Active),
            ("queue without need", &[], &clean, Queue, Refuse, Active),
            ("dirty", &[], &dirty, Block, Refuse, Blocked),
            ("own work", &[], &dirty, Block, Continue, Active),
            ("dirty beside", &[], &beside, Block, Refuse, Active),
            ("others", &["a"], &clean, Block, Refuse, Blocked),
            ("others, waiting", &["a"], &clean, Queue, Refuse, Queued),
            ("others, dirty", &["a"], &dirty, Block, Continue, Blocked),
            (
                "others, dirty, waiting",
                &["a"],
                &dirty,
                Queue,
                Refuse,
                Queued,
            ),
        ];
        for (name, theirs, now, on_conflict, policy, want) in cases {
            let intents: Vec<_> = theirs.iter().map(|file| intent("p", 2, &[file])).collect();
            let peers = peers(&intents, &[], &viewer);
            let changes = AtStart::look(&scope, now, &peers);
            let found = conflicts(&scope, &peers);
            let status = decide(&found, Seen::All(&changes), on_conflict, policy);
            assert_eq!(status, want, "{name}");
        }
        let status = decide(&[], Seen::Nothing("no git"), Block, Continue);
        assert_eq!(status, Blocked, "blind");
    }
}
