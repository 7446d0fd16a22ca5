//! What waits for a person.

use std::collections::BTreeSet;

use provost_core::code::Code;
use serde::Serialize;

use super::summary::{RunStatus, RunSummary};

/// Why a run waits for a person; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Its agent asks a person.
    Question,
    /// A person has to approve or reject it.
    Approval,
    /// Its driver died.
    LostDriver,
    /// It was refused because a budget was reached, and no newer run retries it.
    Budget,
    /// It was refused, and no newer run retries it.
    Refused,
    /// It was accepted and has not landed, and its target has moved since it began.
    TargetMoved,
    /// It was accepted and has not landed.
    Landing,
}

impl WaitReason {
    /// Why the run of `summary` waits; `None` if nothing is left to decide.
    ///
    /// `retried` are the runs that another run retries.
    pub fn of(summary: &RunSummary, retried: &BTreeSet<&str>, target_moved: bool) -> Option<Self> {
        if summary.is_foreign() {
            return None;
        }
        let is_retried = retried.contains(summary.run_id.as_str());
        match summary.status {
            RunStatus::Waiting => Some(Self::Approval),
            RunStatus::Interrupted | RunStatus::Approved => Some(Self::LostDriver),
            RunStatus::Failure if is_retried => None,
            RunStatus::Failure if summary.code == Some(Code::Cancelled) => None,
            RunStatus::Failure if summary.code == Some(Code::TokenLimit) => Some(Self::Budget),
            RunStatus::Failure => Some(Self::Refused),
            RunStatus::Success if summary.is_landed() || is_retried => None,
            RunStatus::Success if target_moved => Some(Self::TargetMoved),
            RunStatus::Success => Some(Self::Landing),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_already_waits_for_no_person() {
        let row = |status, code| {
            let mut row = RunSummary::without_facts("run_1", status, code, String::new());
            row.own = Some(true);
            row
        };
        let refused = row(RunStatus::Failure, Some(Code::ScopeViolation));
        let none = BTreeSet::new();
        let retried = BTreeSet::from(["run_1"]);
        let of = |row: &RunSummary| WaitReason::of(row, &none, false);
        assert_eq!(of(&refused), Some(WaitReason::Refused));
        assert_eq!(WaitReason::of(&refused, &retried, false), None);
        let budget = row(RunStatus::Failure, Some(Code::TokenLimit));
        assert_eq!(of(&budget), Some(WaitReason::Budget));
        let cancelled = row(RunStatus::Failure, Some(Code::Cancelled));
        assert_eq!(of(&cancelled), None);
        let accepted = row(RunStatus::Success, Some(Code::Ok));
        assert_eq!(of(&accepted), Some(WaitReason::Landing));
        let moved = WaitReason::of(&accepted, &none, true);
        assert_eq!(moved, Some(WaitReason::TargetMoved));
        let mut foreign = row(RunStatus::Waiting, None);
        foreign.own = Some(false);
        assert_eq!(of(&foreign), None);
        assert_eq!(of(&row(RunStatus::Running, None)), None);
    }
}
