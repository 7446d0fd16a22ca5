//! One row for each run.

use std::path::PathBuf;

use crate::bundle::after::Landing;
use provost_core::code::Code;
use provost_core::run::State;
use serde::Serialize;

use super::archive::{self, Landed, RunArchive, Stage};
use super::run::is_approved;

/// The state of a run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunStatus {
    Running,
    Waiting,
    /// A person approved it, and nothing has begun since.
    Approved,
    Interrupted,
    Success,
    Failure,
    /// Its driver died before the first event.
    NotBegun,
    Unreadable,
    /// Its contract was refused before there was a run.
    Refused,
}

impl RunStatus {
    pub fn of(state: &State, reached: Stage) -> Self {
        match (reached, &state.finished) {
            (Stage::Running, _) => Self::Running,
            (Stage::Waiting, _) => Self::Waiting,
            (Stage::Interrupted, None) if is_approved(state) => Self::Approved,
            (Stage::Interrupted, _) | (Stage::Sealed, None) => Self::Interrupted,
            (Stage::Sealed, Some(verdict)) if verdict.allow => Self::Success,
            (Stage::Sealed, Some(_)) => Self::Failure,
        }
    }

    /// As the wire form spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Waiting => "WAITING",
            Self::Approved => "APPROVED",
            Self::Interrupted => "INTERRUPTED",
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::NotBegun => "NOT_BEGUN",
            Self::Unreadable => "UNREADABLE",
            Self::Refused => "REFUSED",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    pub run_id: String,
    pub status: RunStatus,
    /// The code of its verdict, or why it cannot be read.
    pub code: Option<Code>,
    /// What it was asked; for a run without a readable contract, why there is none.
    pub objective: String,
    /// Whether this user began it on this machine; unknown if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// Absent if there was no run.
    #[serde(flatten)]
    pub landing: Option<LandingSummary>,
    /// The directory of the record, if there was no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct LandingSummary {
    pub landed: Option<Landing>,
    /// Whether the branch still holds the commit, if that is known.
    pub held: Option<bool>,
}

impl LandingSummary {
    pub(super) fn of(landed: Option<&Landed>) -> Self {
        Self {
            landed: landed.map(|landed| landed.landing.clone()),
            held: landed.and_then(|landed| landed.held),
        }
    }
}

impl RunSummary {
    /// The row of the run of `state`.
    pub fn folded(state: &State, reached: Stage, own: bool, landed: Option<&Landed>) -> Self {
        Self {
            run_id: state.names.run_id.clone(),
            status: RunStatus::of(state, reached),
            code: state.finished.as_ref().map(|verdict| verdict.code),
            objective: state.opened.contract.inputs.spec.clone(),
            own: Some(own),
            began: Some(state.began.clone()),
            landing: Some(LandingSummary::of(landed)),
            record: None,
        }
    }

    /// A row with nothing but a reason.
    pub fn without_facts(
        run_id: &str,
        status: RunStatus,
        code: Option<Code>,
        reason: String,
    ) -> Self {
        Self {
            run_id: run_id.to_owned(),
            status,
            code,
            objective: reason,
            own: None,
            began: None,
            landing: None,
            record: None,
        }
    }

    /// Whether another user began it.
    pub fn is_foreign(&self) -> bool {
        self.own == Some(false)
    }

    /// Whether its result is on its branch, as far as is known.
    pub fn is_landed(&self) -> bool {
        let landing = self.landing.as_ref();
        // A branch that was reset does not hold the result, and the run can land again.
        landing.is_some_and(|it| it.landed.is_some() && it.held != Some(false))
    }
}

/// The rows of `runs`; a run that cannot be read has a row that says so.
pub fn summaries(archive: &dyn RunArchive, runs: &[String]) -> Vec<RunSummary> {
    let names: Vec<&str> = runs.iter().map(String::as_str).collect();
    let landed = archive::landed(archive, &names);
    let row = |run_id: &String| summary(archive, run_id, landed.get(run_id));
    runs.iter().map(row).collect()
}

fn summary(archive: &dyn RunArchive, run_id: &str, landed: Option<&Landed>) -> RunSummary {
    match archive::state(archive, run_id) {
        Err(_) if archive::never_began(archive, run_id) => {
            RunSummary::without_facts(run_id, RunStatus::NotBegun, None, String::new())
        }
        Err(error) => {
            let code = Some(error.code);
            RunSummary::without_facts(run_id, RunStatus::Unreadable, code, error.reason)
        }
        Ok(state) => {
            let reached = archive::stage(archive, run_id);
            let own = archive::is_own(archive, run_id);
            RunSummary::folded(&state, reached, own, landed)
        }
    }
}
