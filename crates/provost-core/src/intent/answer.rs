//! What agents are told.

use serde_json::Value;

use super::claims::Judged;
use super::conflict::{Conflict, Exclusion};
use super::finish::{ScopeCheck, Status as FinishStatus};
use super::hygiene::{AtFinish, AtStart};
use super::record::{Intent, Ownership};
use super::recover::Refusal;
use super::run::RunHead;
use super::start::Status;
use super::verify::Verified;
use super::workspace::Workspace;
use crate::lease::Lease;
use crate::path::RawPath;
use crate::structure::Report;
use crate::structure::blast::Blast;
use crate::structure::budget::{Budgets, Gate, Headroom, Standing, Strictness};
use crate::structure::compare::Delta;
use crate::structure::health::Points;

/// What a start came to.
#[derive(Debug, Clone)]
pub struct Started {
    /// The answer.
    pub status: Status,
    /// The intent; nothing if an analysis is needed.
    pub intent: Option<Intent>,
    /// Who stands in the way.
    pub conflicts: Vec<Conflict>,
    /// Who excludes whom.
    pub exclusions: Vec<Exclusion>,
    /// Who waits for the same files.
    pub waiting: Vec<Conflict>,
    /// How many agents are at work, this one included.
    pub total_agents: usize,
    /// How many intents of others were not renewed in time.
    pub stale_count: usize,
    /// The place in the queue.
    pub position: usize,
    /// The dirt; nothing when git could not be asked.
    pub hygiene: Option<AtStart>,
    /// Whether the dirt in scope is taken for the agent's own.
    pub continuing: bool,
    /// Why git could not be asked.
    pub blind: Option<String>,
    /// What differs from the newest analysis although nobody has it dirty.
    pub drifted: Vec<RawPath>,
    /// How far the scope reaches.
    pub blast: Option<Blast>,
    /// The digest under which all of that is kept; nothing if it is not.
    pub blast_digest: Option<String>,
    /// What may become worse.
    pub budget: Option<Budget>,
    /// Whether this is the answer from before.
    pub replay: bool,
    /// The intents of the same agent whose place this one took (R15).
    pub replaced: Vec<String>,
    /// What to do next; empty when the agent may edit.
    pub next_step: String,
    /// Records that nobody here understands.
    pub unread: Vec<Unread>,
}

impl Started {
    /// The answer when there is no analysis of what is there; `drifted` is what it does not describe.
    pub fn needs_analysis(drifted: Vec<RawPath>) -> Self {
        let next_step = if drifted.is_empty() {
            "analyse the repository (analyze_repository), then start again"
        } else {
            "the checkout moved on since the last analysis: analyse the repository again \
             (analyze_repository), then start"
        };
        Self {
            status: Status::NeedsAnalysis,
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
            drifted,
            blast: None,
            blast_digest: None,
            budget: None,
            replay: false,
            replaced: Vec::new(),
            next_step: next_step.to_owned(),
            unread: Vec::new(),
        }
    }
}

/// What limits say of a run.
#[derive(Debug, Clone)]
pub struct Gated {
    pub run_id: String,
    /// What they say.
    pub gate: Gate,
    /// What is known of a baseline.
    pub baseline: Value,
}

/// What a finish came to.
#[derive(Debug)]
pub struct Finished {
    /// The intent, as it is now.
    pub intent: Intent,
    /// The answer.
    pub status: FinishStatus,
    /// Why, in one word.
    pub reason: Option<&'static str>,
    /// Whether a person has to act.
    pub needs_person: bool,
    /// What to do next; nothing when all is well or nothing helps.
    pub next_step: Option<String>,
    /// Whether the intent was given back.
    pub cleared: bool,
    /// The checkout, as far as it was looked at.
    pub workspace: Option<Workspace>,
    /// The dirt.
    pub hygiene: Option<AtFinish>,
    /// What was touched.
    pub evidence: Vec<RawPath>,
    /// What the scope check found.
    pub check: Option<ScopeCheck>,
    /// What the judgement found.
    pub verified: Option<Verified>,
    /// The analysis from before.
    pub before: Option<(String, Report)>,
    /// The analysis from after.
    pub after: Option<(String, Report)>,
    /// What is known about the claims.
    pub claims: Option<Judged>,
    /// The receipt and its digest.
    pub receipt: Option<(Value, String)>,
    /// Why there is none.
    pub receipt_error: Option<String>,
    pub trail: Option<Value>,
    /// What the agent said beside its evidence.
    pub offered: Offered,
    /// How strict it was.
    pub strictness: Strictness,
    /// Why the checkout could not be seen.
    pub blind: Option<String>,
}

/// What is going on in the repository.
#[derive(Debug)]
pub struct Listed {
    /// Every open intent, whose it is, and whether it could be taken over with a run of the caller.
    pub intents: Vec<(Intent, Ownership)>,
    /// Whether the caller has a run with which it could take something over.
    pub has_run: bool,
    /// What runs of our own hold.
    pub leases: Vec<Lease>,
    /// Records that nobody here understands.
    pub unread: Vec<Unread>,
}

/// What a renewal came to.
#[derive(Debug)]
pub enum Renewed {
    /// The intent, as it is now.
    Yes(Box<Intent>),
    /// Its time was over, and others work on its files by now.
    Conflict(Vec<Conflict>),
}

/// What a promotion came to.
#[derive(Debug)]
pub enum Promoted {
    /// The agent may edit; the paths are what changed since the analysis that it is judged by, other
    /// than by what git shows. A start would ask for a new one; who waited is let in (R108), and told.
    Active(Box<Intent>, AtStart, Vec<RawPath>),
    /// Others are still there, or came first.
    Queued(Box<Intent>, Vec<Conflict>, usize),
    /// Nobody else is there, but the agent may not edit yet (R109, done right).
    Blocked(Box<Intent>, Option<AtStart>, String),
    /// The analysis it would begin from is gone (R108).
    RunEvicted(Box<Intent>),
}

/// What a recovery came to.
#[derive(Debug)]
pub enum Recovered {
    /// The caller has the intent now; and who had it.
    Yes {
        /// As it is now.
        intent: Box<Intent>,
        previous: Box<Intent>,
        /// What changed since it was declared.
        changed: Vec<RawPath>,
    },
    /// It does not.
    No(Refusal),
}

/// What clearing up came to.
#[derive(Debug)]
pub struct Swept {
    /// How many intents were closed.
    pub removed: usize,
    /// How many are open.
    pub remaining: usize,
    /// How many old records were forgotten.
    pub purged: usize,
}

/// What may become worse, and how near that is.
#[derive(Debug, Clone)]
pub struct Budget {
    /// How strict.
    pub strictness: Strictness,
    /// The limits.
    pub budgets: Budgets,
    /// Where the tree stands.
    pub standing: Standing,
    /// What is left.
    pub headroom: Headroom,
    /// What a gate would say now.
    pub gate: Gate,
}

/// Two runs, compared.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The first.
    pub before: RunHead,
    /// The second.
    pub after: RunHead,
    /// What differs.
    pub delta: Delta,
}

/// A judgement, and what it was about.
#[derive(Debug)]
pub struct Looked {
    /// What was found; nothing for an intent under which nobody may edit.
    pub verified: Option<Verified>,
    pub intent: Option<Intent>,
    /// What the scope check said.
    pub check: Option<ScopeCheck>,
    /// The analysis from before, and its health.
    pub before: Option<(String, Option<Points>)>,
    /// The analysis from after, and its health.
    pub after: Option<(String, Option<Points>)>,
    /// How strict it was.
    pub strictness: Strictness,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub intent_id: String,
    /// Why it cannot be read.
    pub why: String,
}

/// What an agent said beside its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Claims about the change.
    pub claims: bool,
    pub review: bool,
}
