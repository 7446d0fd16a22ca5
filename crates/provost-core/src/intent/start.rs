//! Decides whether an agent may edit now (R43 to R51).

use super::conflict::Conflict;
use super::hygiene::AtStart;

/// What to do when somebody else is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Say so.
    #[default]
    Block,
    /// Wait in the queue.
    Queue,
}

/// What to do about dirt in what is to be touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DirtyPolicy {
    /// Say so.
    #[default]
    Block,
    /// It is the agent's own unfinished work.
    ContinueOwnWip,
}

impl DirtyPolicy {
    /// Its name in payloads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::ContinueOwnWip => "continue_own_wip",
        }
    }
}

/// The answer to a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is no analysis of what is there now.
    NeedsAnalysis,
    /// Others are there, and the agent waits.
    Queued,
    /// The agent must not edit.
    Blocked,
    /// The agent may edit.
    Active,
}

impl Status {
    /// Its name in payloads.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeedsAnalysis => "needs_analysis",
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Active => "active",
        }
    }
}

/// What is known about the dirt of the checkout.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// Everything.
    All(&'a AtStart),
    /// Nothing: git could not be asked. Nobody may edit what nobody can see (R42, done right).
    Nothing(&'a str),
}

/// Decides about a start for which an analysis is there.
pub fn decide(
    conflicts: &[Conflict],
    seen: Seen<'_>,
    on_conflict: OnConflict,
    policy: DirtyPolicy,
) -> Status {
    if !conflicts.is_empty() {
        return match on_conflict {
            OnConflict::Queue => Status::Queued,
            OnConflict::Block => Status::Blocked,
        };
    }
    match seen {
        Seen::All(dirt) if !dirt.blocks_edit() || continues(dirt, policy) => Status::Active,
        Seen::All(_) | Seen::Nothing(_) => Status::Blocked,
    }
}

/// Whether the dirt in scope is taken for the agent's own (R47, R48).
pub fn continues(dirt: &AtStart, policy: DirtyPolicy) -> bool {
    dirt.blocks_edit() && policy == DirtyPolicy::ContinueOwnWip && dirt.overlaps.is_empty()
}

/// What to do next when the agent must not edit.
pub fn advice(conflicts: &[Conflict], seen: Seen<'_>) -> String {
    let others = "somebody else works on these files: wait for them (on_conflict=\"queue\"), agree \
                  with them, or choose other files";
    let dirt = "files of the scope have changes that are not committed: commit or stash them, or \
                say that they are yours (dirty_scope_policy=\"continue_own_wip\")";
    match (conflicts.is_empty(), seen) {
        (_, Seen::Nothing(why)) => {
            format!("the state of the checkout is not known, so nobody may edit: {why}")
        }
        (false, Seen::All(found)) if found.blocks_edit() => {
            "somebody else works on these files, and some of them have changes that are not \
             committed: wait for them (on_conflict=\"queue\") or choose other files"
                .to_owned()
        }
        (false, Seen::All(_)) => others.to_owned(),
        (true, Seen::All(found)) if !found.overlaps.is_empty() => {
            "changes in the scope belong to somebody else who is at work: agree with them first"
                .to_owned()
        }
        (true, Seen::All(_)) => dirt.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conflict::{conflicts, peers};
    use super::super::record::Viewer;
    use super::super::record::tests::{alive, intent, owner};
    use super::super::scope::ChangeScope;
    use super::super::workspace::tests::{dirt, workspace};
    use super::*;

    #[test]
    fn r44_to_r50_the_first_that_fits_decides() {
        use DirtyPolicy::{Block as Refuse, ContinueOwnWip as Continue};
        use OnConflict::{Block, Queue};
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 0,
            alive: &alive,
        };
        let scope = ChangeScope::parse(&["a"], &["r"], &[], "").unwrap();
        let clean = workspace(&[]);
        let dirty = workspace(&[("a", dirt(" M", "1", "2"))]);
        let beside = workspace(&[("r", dirt(" M", "1", "2")), ("z", dirt(" M", "1", "2"))]);
        let cases = [
            ("clean", &[][..], &clean, Block, Refuse, Status::Active),
            (
                "queue without need",
                &[],
                &clean,
                Queue,
                Refuse,
                Status::Active,
            ),
            ("dirty", &[], &dirty, Block, Refuse, Status::Blocked),
            ("own work", &[], &dirty, Block, Continue, Status::Active),
            ("dirt beside", &[], &beside, Block, Refuse, Status::Active),
            ("others", &["a"], &clean, Block, Refuse, Status::Blocked),
            (
                "others, waiting",
                &["a"],
                &clean,
                Queue,
                Refuse,
                Status::Queued,
            ),
            (
                "others and dirt",
                &["a"],
                &dirty,
                Block,
                Continue,
                Status::Blocked,
            ),
            (
                "others and dirt, waiting",
                &["a"],
                &dirty,
                Queue,
                Refuse,
                Status::Queued,
            ),
        ];
        for (name, theirs, now, on_conflict, policy, want) in cases {
            let intents: Vec<_> = theirs.iter().map(|file| intent("p", 2, &[file])).collect();
            let peers = peers(&intents, &[], &viewer);
            let dirt = AtStart::look(&scope, now, &peers);
            let found = conflicts(&scope, &peers);
            let status = decide(&found, Seen::All(&dirt), on_conflict, policy);
            assert_eq!(status, want, "{name}");
        }
        let status = decide(&[], Seen::Nothing("no git"), Block, Continue);
        assert_eq!(status, Status::Blocked, "blind");
    }
}
