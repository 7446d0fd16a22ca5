//! The children of a run, for surfaces.

use std::collections::BTreeMap;

use provost_core::children::{ChildBudget, ChildState, FamilyMember};
use provost_core::run::State;
use provost_core::verdict::Verdict;
use serde::Serialize;

/// One child of a run.
#[derive(Debug, Serialize)]
pub struct ChildView {
    pub run_id: String,
    pub key: String,
    pub read_only: bool,
    pub given: ChildBudget,
    pub spent: Option<ChildBudget>,
    /// `None` while it runs, and if it was lost with its driver.
    pub verdict: Option<Verdict>,
}

fn view(member: &FamilyMember) -> ChildView {
    let end = match &member.state {
        ChildState::Ended(end) => Some(end),
        ChildState::Running | ChildState::Lost => None,
    };
    ChildView {
        run_id: member.start.run_id.clone(),
        key: member.start.key.clone(),
        read_only: member.start.read_only,
        given: member.start.given,
        spent: end.map(|end| end.spent),
        verdict: end.map(|end| end.verdict.clone()),
    }
}

pub(super) fn refused(state: &State) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for refused in &state.family.refused {
        *counts.entry(refused.verdict.code.to_string()).or_default() += refused.times;
    }
    counts
}

pub(super) fn views(state: &State) -> Vec<ChildView> {
    state.family.members.iter().map(view).collect()
}
