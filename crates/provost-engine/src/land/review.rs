//! Reviews a merge whose patch differs from the one that was reviewed.

use crate::bundle::after::{REVIEW_RESULT, REVIEW_STARTED, TestStart};
use provost_core::bundle::layout::LATER;
use provost_core::change::Change;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::Gate;
use provost_core::run::effect::Base;

use super::LandAfterSeal;
use crate::after::UnleasedWatch;
use crate::ports::PortError;

/// Has `tree` reviewed, which changes `changes` in the target at `tip`. Does nothing if the run had
/// no reviewer, or if the reviewer read the same patch.
pub(super) fn again(
    after_seal: &mut LandAfterSeal<'_, '_>,
    tip: &Oid,
    tree: &Oid,
    changes: &[Change],
) -> Result<(), PortError> {
    if after_seal.state.opened.review.is_none() || after_seal.state.is_same_patch(changes) {
        return Ok(());
    }
    let records = after_seal.after.records().iter();
    let earlier = records.filter(|record| record.event.event_type == REVIEW_STARTED);
    let start = TestStart {
        tree: tree.clone(),
        logs: format!("{LATER}review-{}", earlier.count() + 1),
    };
    let base = Base {
        commit: tip.clone(),
        tree: after_seal.ports.target.tree(tip)?,
    };
    let order = after_seal
        .state
        .review_merge(base, tree, changes, &start.logs);
    let order = order.map_err(|error| PortError::of(Code::Bug, error))?;
    after_seal.note(REVIEW_STARTED, &start)?;
    let mut watch = UnleasedWatch(&mut *after_seal.ports.observer);
    let reviewed = after_seal.ports.target.review(&order, &mut watch)?;
    after_seal.note(REVIEW_RESULT, &reviewed)?;
    let mut verdict = after_seal.state.judge_merge_review(&reviewed, tree);
    if !verdict.allow {
        verdict.reason = format!(
            "on the merge with the target that moved, {}",
            verdict.reason
        );
    }
    after_seal.settle(Gate::Review, verdict)
}
