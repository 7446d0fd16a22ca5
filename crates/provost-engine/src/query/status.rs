//! What has not ended, and the change that a run left.

use serde::Serialize;

use super::summary::RunSummary;

/// Runs that have not ended, and the controlled changes `C` of this checkout.
#[derive(Debug, Serialize)]
pub struct StatusView<C> {
    /// Newest first.
    pub open: Vec<RunSummary>,
    /// `None` if they cannot be read.
    pub changes: Option<Vec<C>>,
    /// How many runs another user began.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The patch from the base of a run to what it captured.
#[derive(Debug, Serialize)]
pub struct DiffView {
    pub run_id: String,
    pub patch: String,
}
