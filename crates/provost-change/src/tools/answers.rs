//! The answers of change-control tools.
//!
//! Names of tools and fields are fixed by the format (`docs/change-control.md`); fields of Provost
//! are added beside them and never replace them.

pub use crate::analysis::answer::{
    Analysed, AnalysisPayload, FoundBlast, FoundReceipt, FoundTrail, GatePayload, Lookup,
    ReceiptLookup, UnknownBlast, UnknownReceipt, UnknownTrail, blast,
};
pub use crate::finish::answer::{
    ClaimsPayload, ComparedRuns, FinishPayload, Focus, LookPayload, RunBudget, ScopeCheckPayload,
};
pub use crate::manage::answer::{
    ANALYSIS_GONE, COME_FIRST, ClearedPayload, ForgottenPayload, IntentPayload, IntentsPayload,
    JUDGED_WITH_OTHERS, PromotePayload, RecoverPayload, RenewPayload, ResetPayload, SweptPayload,
};
pub use crate::start::answer::{StartPayload, StartView, UnseenAnalysis};

use crate::receipt::compose::inside;
use provost_core::path::{RawPath, RepoPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a caller wants to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Numbers, and what blocks the change.
    #[default]
    Summary,
    /// The same as a summary.
    Normal,
    /// Every path.
    Full,
}

/// Paths as a caller sees them, relative to its analysed root.
pub(crate) fn raw<'a>(root: &str, paths: impl IntoIterator<Item = &'a RawPath>) -> Vec<String> {
    let text = |path: &RawPath| inside(root, &path.to_string());
    paths.into_iter().map(text).collect()
}

/// The same for paths that are text.
pub(crate) fn seen<'a>(root: &str, paths: impl IntoIterator<Item = &'a RepoPath>) -> Vec<String> {
    let text = |path: &RepoPath| inside(root, path.as_str());
    paths.into_iter().map(text).collect()
}

/// A list that is left out of a payload if it is empty.
pub(crate) fn filled<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}
