//! Reads the arguments of change-control tools, and writes their answers.
//!
//! Names of tools and fields are fixed by the format (`docs/change-control.md`); fields of Provost
//! are added beside them and never replace them.

pub use crate::analysis::answer::{
    analysed, blast, found_blast, found_receipt, found_trail, gated, in_changed,
};
pub use crate::finish::answer::{
    Focus, budget, claims, compared, finished, looked, message, patch_trail, scope_check,
};
pub use crate::manage::answer::{
    ANALYSIS_GONE, COME_FIRST, JUDGED_WITH_OTHERS, cleared, got, listed, promoted, recovered,
    renewed, reset, swept,
};
pub use crate::receipt::markdown::markdown;
pub use crate::start::answer::{started, unseen_analysis, unseen_start};

use crate::receipt::compose::inside;
use provost_core::path::{RawPath, RepoPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
pub(crate) fn raw<'a>(root: &str, paths: impl IntoIterator<Item = &'a RawPath>) -> Value {
    let text = |path: &RawPath| inside(root, &path.to_string());
    json!(paths.into_iter().map(text).collect::<Vec<String>>())
}

/// The same for paths that are text.
pub(crate) fn seen<'a>(root: &str, paths: impl IntoIterator<Item = &'a RepoPath>) -> Value {
    let text = |path: &RepoPath| inside(root, path.as_str());
    json!(paths.into_iter().map(text).collect::<Vec<String>>())
}
