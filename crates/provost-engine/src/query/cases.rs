//! One row for each case.

use provost_core::code::Code;
use serde::Serialize;

use crate::case::{CaseReport, State};

/// The state of a case in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CaseStatus {
    Running,
    /// A person has to answer its question.
    Waiting,
    /// No process drives it, and it has not ended.
    Interrupted,
    Success,
    Failure,
    Landed,
    Unreadable,
}

impl CaseStatus {
    pub fn of(state: &State, driven: bool) -> Self {
        let report = CaseReport::of("", state);
        match &state.finished {
            _ if state.landed.is_some() => Self::Landed,
            Some(verdict) if verdict.allow => Self::Success,
            Some(_) => Self::Failure,
            None if report.open_question().is_some() => Self::Waiting,
            None if driven => Self::Running,
            None => Self::Interrupted,
        }
    }

    /// As the wire form spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Waiting => "WAITING",
            Self::Interrupted => "INTERRUPTED",
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Landed => "LANDED",
            Self::Unreadable => "UNREADABLE",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct CaseSummary {
    pub case_id: String,
    pub status: CaseStatus,
    /// The code of its verdict.
    pub code: Option<Code>,
    /// What it was asked; for a case that cannot be read, why.
    pub request: String,
    pub began: Option<String>,
    /// How many parts there are, and how many of them were accepted.
    pub parts: usize,
    pub accepted: usize,
    pub fixes: usize,
}

impl CaseSummary {
    pub fn of(case_id: &str, state: &State, driven: bool) -> Self {
        let report = CaseReport::of(case_id, state);
        let is_accepted = |part: &&crate::case::CasePart<'_>| {
            let last = part.runs.last().and_then(|run| run.verdict);
            last.is_some_and(|verdict| verdict.allow)
        };
        Self {
            case_id: case_id.to_owned(),
            status: CaseStatus::of(state, driven),
            code: state.finished.as_ref().map(|verdict| verdict.code),
            request: state.opened.request.clone(),
            began: Some(state.began.clone()),
            parts: report.parts.len(),
            accepted: report.parts.iter().filter(is_accepted).count(),
            fixes: state.fixes.len(),
        }
    }

    /// The row of a case that cannot be read.
    pub fn unreadable(case_id: &str, code: Code, reason: String) -> Self {
        Self {
            case_id: case_id.to_owned(),
            status: CaseStatus::Unreadable,
            code: Some(code),
            request: reason,
            began: None,
            parts: 0,
            accepted: 0,
            fixes: 0,
        }
    }
}
