//! What agents ask the change service for.

use crate::finish::claims::ClaimText;
use crate::scope::ChangeScope;
use crate::start::decide::{DirtyPolicy, OnConflict};
use provost_lens::structure::blast::Depth;
use provost_lens::structure::budget::Strictness;

/// A request to declare an intent.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The analysed root, relative to the top of the repository.
    pub root: String,
    /// What the agent will touch.
    pub scope: ChangeScope,
    /// What the agent will do, as text.
    pub intent: String,
    /// What the agent expects to change, as text.
    pub expected_effects: Vec<String>,
    /// What to do when other agents hold the files.
    pub on_conflict: OnConflict,
    /// What to do about uncommitted changes in the files to be touched.
    pub policy: DirtyPolicy,
    pub strictness: Strictness,
    /// In seconds; `None` for the default.
    pub ttl: Option<i64>,
    /// How far imports are followed.
    pub depth: Depth,
}

/// The paths that an agent says it touched.
#[derive(Debug, Clone)]
pub enum Evidence {
    Files(Vec<String>),
    /// Every path that differs from this commit.
    DiffRef(String),
}

/// Whether the caller wants something beside the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Yes,
    No,
}

/// A request to finish a change.
#[derive(Debug, Clone)]
pub struct FinishRequest {
    pub intent_id: String,
    pub evidence: Evidence,
    /// The analysis from after the change.
    pub after_run: Option<String>,
    /// What the agent says about the change, for people.
    pub review: Option<String>,
    /// What the agent claims about the change, to be checked against the analyses.
    pub claims: Option<ClaimText>,
    /// Whether a receipt is made.
    pub receipt: Wanted,
    /// Whether the intent is given back when the change is accepted.
    pub clear: Wanted,
    /// `None` for that of the start; a looser one has no effect.
    pub strictness: Option<Strictness>,
}

/// A request to judge a change without finishing it.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// An intent of this session.
    pub intent_id: Option<String>,
    /// The analysis from before, where there is no intent.
    pub before_run: Option<String>,
    pub after_run: Option<String>,
    pub evidence: Option<Evidence>,
    /// `None` for that of the start; a looser one has no effect.
    pub strictness: Option<Strictness>,
}
