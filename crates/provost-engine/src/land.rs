//! Lands an accepted run: exactly the candidate, or its merge with a target that moved.
//!
//! # Invariants
//!
//! - Everything is decided under the lock of the run, from evidence that was verified just then.
//! - Of the records after the seal only signed ones count, and what they say about a branch is
//!   compared with the branch.
//! - A ref of Provost keeps every commit before a record names it.
//! - The commit is recorded, bytes and signature, before the target moves. Landing again after a
//!   crash finds its own commit instead of making another.

mod commit;
mod merge;
mod review;

use crate::bundle::after::{Candidate, LAND_STARTED, LANDED, LandCommit, Landing};
use crate::bundle::verify::After;
use provost_core::change::{Change, Finding};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::fact::{ReviewRun, TestRun};
use provost_core::run::{State, effect};

pub use crate::after::Sealed;
use crate::after::{self, AfterPorts, unfinished};
use crate::ports::{PortError, Watch};
pub use commit::{CommitOrder, CommitPeople, CommitPerson};

/// The branch that a result lands on.
pub trait Target {
    /// The commit of the branch; `None` if there is no such branch.
    ///
    /// A symbolic ref is refused.
    fn tip(&mut self, branch: &str) -> Result<Option<Oid>, PortError>;

    /// Whether `commit` exists and is in the history of `tip`.
    fn holds(&mut self, tip: &Oid, commit: &Oid) -> Result<bool, PortError>;

    /// Merges the target and the candidate, both based on the run's base, into one commit on the
    /// target that a ref of Provost keeps.
    fn merge(&mut self, order: &effect::Merge, target: &Oid) -> Result<MergeOutcome, PortError>;

    /// What `tree` changes in the commit `target`, with everything that the diff gate needs.
    fn changes(&mut self, target: &Oid, tree: &Oid) -> Result<Changed, PortError>;

    /// Runs the contract's commands in a fresh workspace of exactly one tree.
    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError>;

    fn tree(&mut self, commit: &Oid) -> Result<Oid, PortError>;

    /// Runs the reviewer on exactly one tree until it exits or `watch` ends it.
    fn review(
        &mut self,
        order: &effect::Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError>;

    /// The user, as `git commit` would name them; a missing name is refused.
    fn people(&mut self) -> Result<CommitPeople, PortError>;

    /// Writes a commit, signed if the user's global git configuration says so, and keeps it by a
    /// ref of Provost.
    fn write_commit(&mut self, order: &CommitOrder) -> Result<LandCommit, PortError>;

    /// Writes a commit that was recorded before, and keeps it by a ref below `refs`.
    fn restore_commit(&mut self, refs: &str, commit: &LandCommit) -> Result<(), PortError>;

    /// Moves the branch, and a checkout of it, if the branch still is at `from`. Files of the
    /// checkout that the two commits have in common stay as they are.
    ///
    /// Calling it twice equals calling it once, also after an interruption.
    fn advance(&mut self, branch: &str, from: &Oid, to: &Oid) -> Result<(), PortError>;

    /// Removes a branch of Provost that is at `commit` and is not checked out.
    fn retire(&mut self, branch: &str, commit: &Oid) -> Result<(), PortError>;

    /// Removes what merging and testing left in the cache.
    fn tidy(&mut self) -> Result<(), PortError>;
}

/// What a tree changes, and what a checkout of it cannot hold faithfully.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    pub changes: Vec<Change>,
    pub findings: Vec<Finding>,
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    Clean(Candidate),
    /// Paths that both sides changed.
    Conflict(Vec<String>),
}

pub type LandPorts<'a> = AfterPorts<'a, dyn Target + 'a>;

/// One landing of one run.
type LandAfterSeal<'p, 'a> = after::AfterSeal<'p, 'a, dyn Target + 'a>;

/// What the target holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub landing: Landing,
    pub when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Now,
    /// Earlier; this call changed nothing.
    Before,
}

/// Lands the run `run_id`, whose lock this process holds.
pub fn land(ports: &mut LandPorts<'_>, run_id: &str) -> Result<Landed, PortError> {
    let mut branch = String::new();
    let (mut after_seal, known) = LandAfterSeal::begin(ports, run_id, |state| {
        branch = landable(state)?;
        Ok(())
    })?;
    let landed = decide(&mut after_seal, &known, &branch);
    // The landing is decided; `provost gc` removes what stays behind.
    let _ = after_seal.ports.target.tidy();
    let landed = landed?;
    retire(&mut after_seal);
    Ok(landed)
}

/// Removes the branch of the run: the target has its work, and a ref keeps the captured tree.
fn retire(after_seal: &mut LandAfterSeal<'_, '_>) {
    if let Some(published) = after_seal.state.published.as_ref() {
        let (branch, commit) = (&published.branch, &published.commit);
        // The landing is done either way; a user can delete a branch that stays.
        let _ = after_seal.ports.target.retire(branch, commit);
    }
}

/// Finds out what is left to do, and does it.
fn decide(
    after_seal: &mut LandAfterSeal<'_, '_>,
    known: &After,
    branch: &str,
) -> Result<Landed, PortError> {
    let tip = after_seal.ports.target.tip(branch)?.ok_or_else(|| {
        let reason = format!("there is no branch `{branch}` to land on");
        PortError::new(Code::NotFound, reason)
    })?;
    let landable = known.landable();
    let at_tip = |candidate: &&Candidate| candidate.commit == tip;
    let begun = begun(after_seal);
    let interrupted = landable.iter().find(at_tip);
    if let Some(candidate) = interrupted.filter(|one| begun.as_ref() == Some(&one.commit)) {
        // The branch moved, but its checkout may not have followed.
        let (from, to) = (&candidate.parent, &candidate.commit);
        after_seal.ports.target.advance(branch, from, to)?;
        return landed(after_seal, Landing::of(candidate, branch));
    }
    for landing in known
        .landings
        .iter()
        .rev()
        .filter(|one| one.target == branch)
    {
        if after_seal.ports.target.holds(&tip, &landing.commit)? {
            return Ok(Landed {
                landing: landing.clone(),
                when: When::Before,
            });
        }
    }
    for candidate in landable.iter().rev() {
        // Another process put it there, or committed on top of an interrupted landing.
        if after_seal.ports.target.holds(&tip, &candidate.commit)? {
            return landed(after_seal, Landing::of(candidate, branch));
        }
    }
    let commit = commit_on(after_seal, known, &tip)?;
    let landing = Landing::of(&commit.candidate(), branch);
    after_seal.note(LAND_STARTED, &landing)?;
    let (from, to) = (&landing.parent, &landing.commit);
    after_seal.ports.target.advance(branch, from, to)?;
    landed(after_seal, landing)
}

/// The commit that brings the result of the run to `tip`.
fn commit_on(
    after_seal: &mut LandAfterSeal<'_, '_>,
    known: &After,
    tip: &Oid,
) -> Result<LandCommit, PortError> {
    if let Some(written) = known.commits.iter().find(|one| one.parent == *tip) {
        let refs = commit::refs(&after_seal.state);
        after_seal.ports.target.restore_commit(&refs, written)?;
        return Ok(written.clone());
    }
    // Before a merge is tested for nothing.
    let people = after_seal.ports.target.people()?;
    let fitting = known.candidates.iter().find(|one| one.parent == *tip);
    let candidate = match fitting {
        Some(candidate) => {
            let sealed = after_seal.state.published.as_ref();
            if sealed.is_some_and(|sealed| sealed.commit == candidate.commit) {
                merge::confirm(after_seal, &known.tests)?;
            }
            candidate.clone()
        }
        None => merge::merge(after_seal, tip, &known.tests)?,
    };
    commit::write(after_seal, &candidate, people)
}

fn landed(after_seal: &mut LandAfterSeal<'_, '_>, landing: Landing) -> Result<Landed, PortError> {
    after_seal.landed(&landing)?;
    Ok(Landed {
        landing,
        when: When::Now,
    })
}

/// The target branch of an accepted run.
fn landable(state: &State) -> Result<String, PortError> {
    let run = &state.names.run_id;
    if let Some(child) = &state.opened.child {
        let reason = format!("{run} is a child of {}, which lands its work", child.run);
        return Err(PortError::new(Code::NotAccepted, reason));
    }
    match &state.finished {
        Some(verdict) if verdict.allow => state.opened.target.clone().ok_or_else(|| {
            PortError::new(Code::NotFound, format!("{run} names no branch to land on"))
        }),
        Some(verdict) => {
            let reason = format!("{run} was refused: {}", verdict.reason);
            Err(PortError::new(Code::NotAccepted, reason))
        }
        None => Err(unfinished(run)),
    }
}

/// The commit of a landing that began and has no end.
fn begun(after_seal: &LandAfterSeal<'_, '_>) -> Option<Oid> {
    let kinds = [LAND_STARTED, LANDED];
    let of_landing = |kind: &str| kinds.contains(&kind);
    let mut records = after_seal.after.records().iter().rev();
    let last = records.find(|record| of_landing(&record.event.event_type))?;
    // The record is not signed, so it is only a hint where to look.
    let commit = last.event.payload.get("commit")?.as_str()?;
    (last.event.event_type == LAND_STARTED)
        .then(|| Oid::try_from(commit).ok())
        .flatten()
}
