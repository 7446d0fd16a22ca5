//! What the change service answers to agents.

use serde::Serialize;
use serde_json::Value;

use crate::analysis::run::RunHead;
use crate::conflict::{Conflict, Exclusion};
use crate::finish::claims::ClaimsVerdict;
use crate::finish::decide::{FinishStatus, ScopeCheck, StopReason};
use crate::finish::verify::Verified;
use crate::hygiene::{AtFinish, AtStart};
use crate::intent::{Intent, Ownership};
use crate::next_step::{Audience, NextStep};
use crate::receipt::compose::{PatchTrail, Receipt};
use crate::recover::decide::Refusal;
use crate::start::decide::StartStatus;
use provost_core::checkout::CheckoutState;
use provost_core::lease::Lease;
use provost_core::path::RawPath;
use provost_lens::structure::Report;
use provost_lens::structure::blast::Blast;
use provost_lens::structure::budget::{Budgets, Gate, Headroom, Standing, Strictness};
use provost_lens::structure::compare::Delta;
use provost_lens::structure::health::Points;

/// Result of a start.
#[derive(Debug, Clone)]
pub struct Started {
    pub status: StartStatus,
    /// `None` if an analysis is needed first.
    pub intent: Option<Intent>,
    /// The intents and runs that block this one.
    pub conflicts: Vec<Conflict>,
    /// Scopes that forbid what the other one will touch.
    pub exclusions: Vec<Exclusion>,
    /// Intents that wait for the same files.
    pub waiting: Vec<Conflict>,
    /// How many agents are active, this one included.
    pub total_agents: usize,
    /// How many intents of other agents were not renewed in time.
    pub stale_count: usize,
    pub position: usize,
    /// The uncommitted changes; `None` when git could not read the checkout.
    pub hygiene: Option<AtStart>,
    /// Whether the uncommitted changes in scope are taken for the agent's own.
    pub continuing: bool,
    /// Why git could not read the checkout.
    pub blind: Option<String>,
    /// Paths that differ from the newest analysis although they are clean.
    pub drifted: Vec<RawPath>,
    pub blast: Option<Blast>,
    /// The digest under which the whole blast radius is stored; `None` if it is not stored.
    pub blast_digest: Option<String>,
    /// By how much the structure may become worse.
    pub budget: Option<Budget>,
    /// Whether this repeats the answer to an earlier, equal request.
    pub replay: bool,
    /// The intents of the same agent that this one replaces.
    pub replaced: Vec<String>,
    /// `None` when the agent may edit.
    pub next_step: Option<NextStep>,
    /// Records that this version cannot read.
    pub unread: Vec<Unread>,
}

impl Started {
    /// The answer when no analysis describes the checkout. `drifted` lists what the newest one
    /// misses.
    pub fn needs_analysis(drifted: Vec<RawPath>) -> Self {
        let next_step = if drifted.is_empty() {
            NextStep::Analyse
        } else {
            NextStep::AnalyseAgain
        };
        Self {
            drifted,
            ..Self::undeclared(StartStatus::NeedsAnalysis, next_step)
        }
    }

    /// The answer where git cannot read the checkout: then no agent may edit.
    pub fn unseen(why: String) -> Self {
        let next_step = NextStep::CheckoutUnknown(why.clone());
        Self {
            blind: Some(why),
            ..Self::undeclared(StartStatus::Blocked, next_step)
        }
    }

    fn undeclared(status: StartStatus, next_step: NextStep) -> Self {
        Self {
            status,
            intent: None,
            conflicts: Vec::new(),
            exclusions: Vec::new(),
            waiting: Vec::new(),
            total_agents: 0,
            stale_count: 0,
            position: 0,
            hygiene: None,
            continuing: false,
            blind: None,
            drifted: Vec::new(),
            blast: None,
            blast_digest: None,
            budget: None,
            replay: false,
            replaced: Vec::new(),
            next_step: Some(next_step),
            unread: Vec::new(),
        }
    }

    pub fn edit_allowed(&self) -> bool {
        self.intent
            .as_ref()
            .is_some_and(|intent| intent.edit_allowed)
    }

    pub fn message(&self, to: Audience) -> String {
        match &self.next_step {
            Some(step) => step.text(to),
            None => MAY_EDIT.to_owned(),
        }
    }
}

/// The message to an agent that may edit.
pub const MAY_EDIT: &str = "you may edit the files of the scope";

/// Result of the limits for a run.
#[derive(Debug, Clone)]
pub struct Gated {
    pub run_id: String,
    pub gate: Gate,
    /// What is known about the baseline.
    pub baseline: Value,
}

/// Result of a finish.
#[derive(Debug)]
pub struct Finished {
    pub intent: Intent,
    pub status: FinishStatus,
    pub reason: Option<StopReason>,
    pub needs_person: bool,
    /// `None` when the change is accepted, or when nothing helps.
    pub next_step: Option<NextStep>,
    /// Whether the intent was given back.
    pub cleared: bool,
    /// The checkout, as far as it was read.
    pub workspace: Option<CheckoutState>,
    pub hygiene: Option<AtFinish>,
    /// The paths that the agent says it touched.
    pub evidence: Vec<RawPath>,
    pub check: Option<ScopeCheck>,
    pub verified: Option<Verified>,
    /// The id and the report of the analysis from before.
    pub before: Option<(String, Report)>,
    /// The id and the report of the analysis from after.
    pub after: Option<(String, Report)>,
    pub claims: Option<ClaimsVerdict>,
    /// The receipt and its digest.
    pub receipt: Option<(Receipt, String)>,
    /// Why there is no receipt.
    pub receipt_error: Option<String>,
    pub trail: Option<PatchTrail>,
    pub offered: Offered,
    pub strictness: Strictness,
    /// Why git could not read the checkout.
    pub blind: Option<String>,
}

impl Finished {
    /// The result in one sentence.
    pub fn message(&self, to: Audience) -> String {
        match (self.status, &self.next_step) {
            (FinishStatus::Accepted, _) => "the change is accepted".to_owned(),
            (FinishStatus::AcceptedWithExternalChanges, _) => {
                "the change is accepted; other changes are in the checkout".to_owned()
            }
            (_, Some(next)) => next.text(to),
            (_, None) => "the change breaks its contract; see verification".to_owned(),
        }
    }
}

/// The intents and leases of the repository.
#[derive(Debug)]
pub struct IntentList {
    /// Every open intent, and who owns it.
    pub intents: Vec<(Intent, Ownership)>,
    /// Whether the caller has a run with which it could take over an intent.
    pub has_run: bool,
    /// What the runs of `provost run` hold.
    pub leases: Vec<Lease>,
    /// Records that this version cannot read.
    pub unread: Vec<Unread>,
}

/// Result of a renewal.
#[derive(Debug)]
pub enum Renewed {
    Yes(Box<Intent>),
    /// Its time was over, and other agents have declared its files since.
    Conflict(Vec<Conflict>),
}

/// Result of a promotion.
#[derive(Debug)]
pub enum Promoted {
    /// The agent may edit. The paths changed since the analysis that it is judged by, other than by
    /// what git shows. A start would ask for a new analysis; a promotion lets the agent in and
    /// reports them.
    Active(Box<Intent>, AtStart, Vec<RawPath>),
    /// Other agents still hold the files, or wait in front of this one.
    Queued(Box<Intent>, Vec<Conflict>, usize),
    /// No other agent holds the files, but the checkout does not permit an edit yet.
    Blocked(Box<Intent>, Option<AtStart>, NextStep),
    /// The analysis that it would begin from was removed.
    RunEvicted(Box<Intent>),
}

/// Result of a recovery.
#[derive(Debug)]
pub enum Recovered {
    /// The caller owns the intent; the former owner is named.
    Yes {
        intent: Box<Intent>,
        previous: Box<Intent>,
        /// What changed since the intent was declared.
        changed: Vec<RawPath>,
        /// The intents and runs that hold its files by now; until they are gone it may not edit.
        held_by: Vec<Conflict>,
    },
    No(Refusal),
}

/// Result of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// How many intents were closed.
    pub removed: usize,
    /// How many are open.
    pub remaining: usize,
    /// How many old records were deleted.
    pub purged: usize,
}

/// What may become worse, and how much room is left.
#[derive(Debug, Clone)]
pub struct Budget {
    pub strictness: Strictness,
    pub budgets: Budgets,
    /// The values of the tree.
    pub standing: Standing,
    /// How much room is left below each limit.
    pub headroom: Headroom,
    /// The verdict of the gate on the tree as it is.
    pub gate: Gate,
}

#[derive(Debug, Clone)]
pub struct Compared {
    pub before: RunHead,
    pub after: RunHead,
    pub delta: Delta,
}

/// A judgement, and what it was about.
#[derive(Debug)]
pub struct Looked {
    /// `None` for an intent under which the agent may not edit.
    pub verified: Option<Verified>,
    pub intent: Option<Intent>,
    pub check: Option<ScopeCheck>,
    /// The id and the health of the analysis from before.
    pub before: Option<(String, Option<Points>)>,
    /// The id and the health of the analysis from after.
    pub after: Option<(String, Option<Points>)>,
    pub strictness: Strictness,
}

/// A record of an intent that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    pub intent_id: String,
    pub why: String,
}

/// What an agent sent beside its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Claims about the change.
    pub claims: bool,
    pub review: bool,
    pub strictness: Option<Strictness>,
}
