//! What agents ask for.

use super::claims::ClaimText;
use super::scope::ChangeScope;
use super::start::{DirtyPolicy, OnConflict};
use crate::structure::blast::Depth;
use crate::structure::budget::Strictness;

/// What an agent asks for.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The analysed root, seen from the top of the repository.
    pub root: String,
    /// What it will touch.
    pub scope: ChangeScope,
    /// What it will do.
    pub intent: String,
    /// What it expects to change.
    pub expected_effects: Vec<String>,
    /// What to do when others are there.
    pub on_conflict: OnConflict,
    /// What to do about dirt.
    pub policy: DirtyPolicy,
    /// How strict the budget is.
    pub strictness: Strictness,
    /// How long the intent lasts.
    pub ttl: Option<i64>,
    /// How far imports are followed.
    pub depth: Depth,
}

/// What an agent says it touched.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// These paths.
    Files(Vec<String>),
    /// Whatever differs from this commit.
    DiffRef(String),
}

/// What is wanted beside the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Yes,
    No,
}

/// What an agent asks for.
#[derive(Debug, Clone)]
pub struct FinishRequest {
    pub intent_id: String,
    /// What it touched.
    pub evidence: Evidence,
    /// The analysis from after the change.
    pub after_run: Option<String>,
    /// What it says about the change, for people.
    pub review: Option<String>,
    /// What it claims about the change, to be held against what is known.
    pub claims: Option<ClaimText>,
    /// Whether a receipt is made.
    pub receipt: Wanted,
    /// Whether the intent is given back when all is well.
    pub clear: Wanted,
    /// How strict to be.
    pub strictness: Strictness,
}

/// What is to be judged without finishing anything.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// An intent of this session.
    pub intent_id: Option<String>,
    /// The analysis from before, where there is no intent.
    pub before_run: Option<String>,
    /// The analysis from after.
    pub after_run: Option<String>,
    /// What was touched.
    pub evidence: Option<Evidence>,
    /// How strict to be.
    pub strictness: Strictness,
}
