//! Lands an accepted run: exactly the candidate, or its merge with a target that moved.
//!
//! # Invariants
//!
//! - Everything is decided while the run is ours alone, from evidence that was verified just then.
//! - Of what came after the seal only signed records are believed; and what they say of a branch
//!   is held against the branch.
//! - Every commit is kept by a ref of ours before a record names it.
//! - The commit is a function of the ledger and of the target it is put on, so landing again after
//!   a crash finds its own commit instead of making another.

mod merge;
mod review;

use provost_core::bundle::after::{Candidate, LAND_STARTED, LANDED, Landing};
use provost_core::bundle::verify::After;
use provost_core::change::{Change, Finding};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::fact::{Published, ReviewRun, TestRun};
use provost_core::run::{State, effect};

pub use crate::after::Sealed;
use crate::after::{self, AfterPorts, unfinished};
use crate::ports::{PortError, Watch};

/// The branch that a result is meant for, and the way there.
pub trait Target {
    /// Where the branch is; `None` if there is no such branch.
    ///
    /// A branch that is only another name for one is refused.
    fn tip(&mut self, branch: &str) -> Result<Option<Oid>, PortError>;

    /// Whether `commit` is there and in the history of `tip`.
    fn holds(&mut self, tip: &Oid, commit: &Oid) -> Result<bool, PortError>;

    /// Merges what the target and the candidate made of the base into one commit on the target,
    /// which a ref of ours keeps.
    fn merge(&mut self, order: &effect::Merge, target: &Oid) -> Result<MergeOutcome, PortError>;

    /// What `tree` would change in the commit `target`, with everything the diff gate looks at.
    fn changes(&mut self, target: &Oid, tree: &Oid) -> Result<Changed, PortError>;

    /// Runs the contract's commands in a fresh workspace of exactly one tree.
    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError>;

    /// The tree of `commit`.
    fn tree(&mut self, commit: &Oid) -> Result<Oid, PortError>;

    /// Lets the reviewer look at exactly one tree until it ends or `watch` ends it.
    fn review(
        &mut self,
        order: &effect::Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError>;

    /// Moves the branch, and a clean checkout of it, if it still is where it was.
    ///
    /// Doing it twice equals doing it once, also when it was interrupted.
    fn advance(&mut self, branch: &str, from: &Oid, to: &Oid) -> Result<(), PortError>;

    /// Removes a branch of ours that is at `commit` and that nobody has checked out.
    fn retire(&mut self, branch: &str, commit: &Oid) -> Result<(), PortError>;

    /// Removes what merging and testing left in the cache.
    fn tidy(&mut self) -> Result<(), PortError>;
}

/// What a tree changes, and what it cannot hold faithfully.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// The paths that differ.
    pub changes: Vec<Change>,
    /// What a checkout of it cannot hold.
    pub findings: Vec<Finding>,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// One commit.
    Clean(Candidate),
    /// Paths that both sides changed.
    Conflict(Vec<String>),
}

/// The ports that a landing goes through.
pub type LandPorts<'a> = AfterPorts<'a, dyn Target + 'a>;

/// One landing of one run.
type Chapter<'p, 'a> = after::AfterSeal<'p, 'a, dyn Target + 'a>;

/// What the target holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub landing: Landing,
    pub when: When,
}

/// When something landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Just now.
    Now,
    /// Before; nothing was done.
    Before,
}

/// Lands the run `run_id`, which this process holds the lock of.
pub fn land(ports: &mut LandPorts<'_>, run_id: &str) -> Result<Landed, PortError> {
    let mut branch = String::new();
    let (mut chapter, known) = Chapter::begin(ports, run_id, |state| {
        branch = landable(state)?;
        Ok(())
    })?;
    let landed = decide(&mut chapter, &known, &branch);
    // The answer is known by now; what stays is removed by `provost gc`.
    let _ = chapter.ports.target.tidy();
    let landed = landed?;
    retire(&mut chapter, &landed.landing);
    Ok(landed)
}

/// Removes the branch of the run once the target has exactly its commit; a merge keeps it.
fn retire(chapter: &mut Chapter<'_, '_>, landing: &Landing) {
    let done = |branch: &&Published| branch.commit == landing.commit;
    if let Some(published) = chapter.state.published.as_ref().filter(done) {
        let (branch, commit) = (&published.branch, &published.commit);
        // It has landed either way; a branch that stays can be deleted by hand.
        let _ = chapter.ports.target.retire(branch, commit);
    }
}

/// Finds out what there is to do, and has it done.
fn decide(chapter: &mut Chapter<'_, '_>, known: &After, branch: &str) -> Result<Landed, PortError> {
    let tip = chapter.ports.target.tip(branch)?.ok_or_else(|| {
        let reason = format!("there is no branch `{branch}` to land on");
        PortError::new(Code::NotFound, reason)
    })?;
    let at_tip = |candidate: &&Candidate| candidate.commit == tip;
    let begun = begun(chapter);
    let interrupted = known.candidates.iter().find(at_tip);
    if let Some(candidate) = interrupted.filter(|one| begun.as_ref() == Some(&one.commit)) {
        // The branch moved and its checkout may not have followed.
        let (from, to) = (&candidate.parent, &candidate.commit);
        chapter.ports.target.advance(branch, from, to)?;
        return landed(chapter, Landing::of(candidate, branch));
    }
    for landing in known
        .landings
        .iter()
        .rev()
        .filter(|one| one.target == branch)
    {
        if chapter.ports.target.holds(&tip, &landing.commit)? {
            return Ok(Landed {
                landing: landing.clone(),
                when: When::Before,
            });
        }
    }
    for candidate in known.candidates.iter().rev() {
        // Somebody put it there without us, or on top of a landing that was interrupted.
        if chapter.ports.target.holds(&tip, &candidate.commit)? {
            return landed(chapter, Landing::of(candidate, branch));
        }
    }
    let fitting = known.candidates.iter().find(|one| one.parent == tip);
    let candidate = match fitting {
        Some(candidate) => candidate.clone(),
        None => merge::merge(chapter, &tip, &known.tests)?,
    };
    let landing = Landing::of(&candidate, branch);
    chapter.note(LAND_STARTED, &landing)?;
    let (from, to) = (&landing.parent, &landing.commit);
    chapter.ports.target.advance(branch, from, to)?;
    landed(chapter, landing)
}

/// Writes down that the target holds `landing`.
fn landed(chapter: &mut Chapter<'_, '_>, landing: Landing) -> Result<Landed, PortError> {
    chapter.landed(&landing)?;
    Ok(Landed {
        landing,
        when: When::Now,
    })
}

/// The branch that an accepted run is meant for.
fn landable(state: &State) -> Result<String, PortError> {
    let run = &state.names.run_id;
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
fn begun(chapter: &Chapter<'_, '_>) -> Option<Oid> {
    let kinds = [LAND_STARTED, LANDED];
    let of_landing = |kind: &str| kinds.contains(&kind);
    let mut records = chapter.after.records().iter().rev();
    let last = records.find(|record| of_landing(&record.event.event_type))?;
    // Anybody may have written it; it only says where to look.
    let commit = last.event.payload.get("commit")?.as_str()?;
    (last.event.event_type == LAND_STARTED)
        .then(|| Oid::try_from(commit).ok())
        .flatten()
}
