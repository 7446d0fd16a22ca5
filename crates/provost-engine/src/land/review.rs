//! Has a merge reviewed whose patch nobody looked at yet.

use provost_core::bundle::after::{REVIEW_RESULT, REVIEW_STARTED, TestStart};
use provost_core::bundle::layout::LATER;
use provost_core::change::Change;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::Gate;
use provost_core::run::effect::Base;

use super::Chapter;
use crate::after::UnleasedWatch;
use crate::ports::PortError;

/// Has `tree` reviewed, which changes `changes` in the target at `tip`, if the run had a reviewer and
/// that is not the patch it looked at.
pub(super) fn again(
    chapter: &mut Chapter<'_, '_>,
    tip: &Oid,
    tree: &Oid,
    changes: &[Change],
) -> Result<(), PortError> {
    if chapter.state.opened.review.is_none() || chapter.state.is_same_patch(changes) {
        return Ok(());
    }
    let records = chapter.after.records().iter();
    let earlier = records.filter(|record| record.event.event_type == REVIEW_STARTED);
    let start = TestStart {
        tree: tree.clone(),
        logs: format!("{LATER}review-{}", earlier.count() + 1),
    };
    let base = Base {
        commit: tip.clone(),
        tree: chapter.ports.target.tree(tip)?,
    };
    let order = chapter.state.review_merge(base, tree, changes, &start.logs);
    let order = order.map_err(|error| PortError::of(Code::Bug, error))?;
    chapter.note(REVIEW_STARTED, &start)?;
    let mut watch = UnleasedWatch(&mut *chapter.ports.observer);
    let reviewed = chapter.ports.target.review(&order, &mut watch)?;
    chapter.note(REVIEW_RESULT, &reviewed)?;
    let mut verdict = chapter.state.judge_merge_review(&reviewed, tree);
    if !verdict.allow {
        verdict.reason = format!(
            "on the merge with the target that moved, {}",
            verdict.reason
        );
    }
    chapter.settle(Gate::Review, verdict)
}
