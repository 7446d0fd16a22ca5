//! The answers of the tools, before they are rendered as JSON or as text.

use std::collections::BTreeSet;

use provost_change::analysis::run::RunHead;
use provost_change::answer::{
    Budget, Compared, Finished, Gated, IntentList, Looked, Promoted, Recovered, Renewed, Started,
    Swept,
};
use provost_change::finish::claims::ClaimsVerdict;
use provost_change::finish::decide::{FinishStatus, ScopeCheck, Stop, conclude};
use provost_change::finish::verify;
use provost_change::intent::{Intent, Ownership, ScopeStatus, State};
use provost_change::recover::decide::Reset;
use provost_change::request::StartRequest;
use provost_change::start::decide::StartStatus;
use provost_change::tools::answers::{self as payload, Detail, Focus};
use provost_change::tools::arguments::{ArgumentError, ReceiptFormat, Shown};
use provost_core::exit::Exit;
use provost_lens::structure::Report;
use provost_lens::structure::blast::Blast;
use provost_lens::structure::gates::Switches;
use serde_json::{Value, json};

/// An answer of a tool.
pub(crate) enum ToolAnswer {
    Analysed(Box<AnalysisAnswer>),
    /// Git cannot read the checkout that was to be analysed: its root, and why.
    UnseenAnalysis(String, String),
    Started(Box<StartAnswer>),
    /// Git cannot read the checkout where a change was to start: its root, and why.
    UnseenStart(String, String),
    Finished(Box<Finished>, Shown),
    Got(Box<Intent>, Ownership),
    Checked(Box<Intent>, Box<ScopeCheck>),
    Promoted(Promoted),
    /// The id of the intent, and the result.
    Renewed(String, Renewed),
    Cleared(Vec<String>),
    /// The id of the intent, the result, and the time in milliseconds since 1970.
    Recovered(String, Recovered, i64),
    /// A recovery without what it needs.
    NotRecovered(&'static str),
    Listed(IntentList),
    /// The result of a clean-up, and how many reports it removed.
    Swept(Swept, usize),
    /// The id of the intent, and the result; `None` if there is no such intent.
    Reset(String, Option<Box<(Intent, Reset)>>),
    /// The run, its budget, and the intent that it is for.
    Budget(String, Box<Budget>, Option<Box<Intent>>),
    Looked(Box<Looked>),
    Compared(Box<Compared>, Focus),
    /// The run, the reach, and the lists that the caller wants.
    Blast(String, Box<Blast>, Option<Vec<String>>),
    /// The document, its digest, and what the caller named.
    BlastArtifact(Option<Value>, String, String),
    Gated(Gated, Switches),
    Claims(ClaimsVerdict),
    Receipt(ReceiptAnswer),
    /// The trail, and the digest that the caller named.
    Trail(Option<Value>, String),
    /// How many analyses and intents were given back.
    Forgotten(usize, usize),
}

pub(crate) struct AnalysisAnswer {
    pub(crate) head: RunHead,
    pub(crate) report: Report,
    pub(crate) root: String,
    /// The names of arguments that had no effect.
    pub(crate) ignored: Vec<String>,
    /// The paths whose findings the caller wants.
    pub(crate) changed: Option<BTreeSet<String>>,
}

impl AnalysisAnswer {
    fn json(&self) -> Value {
        let mut value = payload::analysed(&self.head, &self.report, &self.root, &self.ignored);
        if let Some(paths) = &self.changed {
            value["changed"] = payload::in_changed(&self.head, &self.report, paths);
        }
        value
    }
}

pub(crate) struct StartAnswer {
    pub(crate) answer: Started,
    pub(crate) request: StartRequest,
    /// How much of the blast radius is shown.
    pub(crate) detail: Detail,
    pub(crate) root: String,
    /// In milliseconds since 1970.
    pub(crate) now: i64,
}

pub(crate) struct ReceiptAnswer {
    pub(crate) document: Option<Value>,
    /// The digest of the whole receipt.
    pub(crate) digest: String,
    pub(crate) format: ReceiptFormat,
    /// The sections that the caller does not want.
    pub(crate) omitted: Vec<&'static str>,
}

impl ReceiptAnswer {
    fn json(&self) -> Value {
        let mut value = payload::found_receipt(self.document.as_ref(), &self.digest, self.format);
        if !self.omitted.is_empty() {
            value["omitted_sections"] = json!(self.omitted);
        }
        value
    }
}

impl ToolAnswer {
    /// The answer as the payload of its tool.
    pub(crate) fn json(&self) -> Result<Value, ArgumentError> {
        Ok(match self {
            Self::Analysed(answer) => answer.json(),
            Self::UnseenAnalysis(root, why) => payload::unseen_analysis(root, why),
            Self::Started(it) => {
                payload::started(&it.answer, &it.request, it.detail, &it.root, it.now)
            }
            Self::UnseenStart(root, why) => payload::unseen_start(root, why),
            Self::Finished(done, shown) => payload::finished(done, *shown),
            Self::Got(intent, whose) => payload::got(intent, *whose),
            Self::Checked(intent, found) => payload::scope_check(found, intent),
            Self::Promoted(answer) => payload::promoted(answer),
            Self::Renewed(id, answer) => payload::renewed(id, answer),
            Self::Cleared(ids) => payload::cleared(ids),
            Self::Recovered(id, answer, now) => payload::recovered(id, answer, *now),
            Self::NotRecovered(reason) => json!({
                "action_taken": "recovery_rejected", "reason": reason, "details": {},
            }),
            Self::Listed(listed) => payload::listed(listed),
            Self::Swept(swept, reports) => payload::swept(swept, *reports),
            Self::Reset(id, answer) => payload::reset(id, answer.as_deref()),
            Self::Budget(run, budget, intent) => payload::budget(run, budget, intent.as_deref()),
            Self::Looked(found) => payload::looked(found),
            Self::Compared(found, focus) => payload::compared(found, *focus),
            Self::Blast(run, blast, include) => payload::blast(run, blast, include.as_deref())?,
            Self::BlastArtifact(document, digest, asked) => {
                payload::found_blast(document.as_ref(), digest, asked)
            }
            Self::Gated(found, switches) => payload::gated(found, switches),
            Self::Claims(judged) => payload::claims(judged),
            Self::Receipt(answer) => answer.json(),
            Self::Trail(trail, digest) => payload::found_trail(trail.as_ref(), digest),
            Self::Forgotten(runs, intents) => {
                json!({ "cleared_runs": runs, "cleared_intents": intents })
            }
        })
    }

    /// The exit status of a command with this answer.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Started(it) => match it.answer.status {
                StartStatus::NeedsAnalysis | StartStatus::Queued => Exit::NotNow,
                StartStatus::Blocked if !it.answer.conflicts.is_empty() => Exit::NotNow,
                StartStatus::Blocked => Exit::No,
                StartStatus::Active => Exit::Yes,
            },
            Self::Finished(done, _) => of_finish(done.status),
            Self::Got(intent, _)
            | Self::Renewed(_, Renewed::Yes(intent))
            | Self::Recovered(_, Recovered::Yes { intent, .. }, _) => of_state(intent.state),
            Self::Checked(_, found) => yes_if(found.status != ScopeStatus::Violated),
            Self::Promoted(answer) => match answer {
                Promoted::Active(..) => Exit::Yes,
                Promoted::Queued(..) | Promoted::Blocked(..) | Promoted::RunEvicted(_) => {
                    Exit::NotNow
                }
            },
            Self::Reset(_, Some(answer)) => match answer.1 {
                Reset::Renewed => of_state(answer.0.state),
                Reset::Removed(state) => of_state(state),
                Reset::Rejected(_) => Exit::No,
            },
            Self::Looked(found) => of_look(found),
            Self::Gated(found, _) => yes_if(!found.gate.would_fail),
            Self::Claims(judged) => yes_if(judged.is_valid()),
            Self::BlastArtifact(document, ..) | Self::Trail(document, _) => {
                yes_if(document.is_some())
            }
            Self::Receipt(answer) => yes_if(answer.document.is_some()),
            Self::UnseenStart(..)
            | Self::Renewed(_, Renewed::Conflict(_))
            | Self::Recovered(_, Recovered::No(_), _)
            | Self::NotRecovered(_)
            | Self::Reset(_, None) => Exit::No,
            Self::Analysed(_)
            | Self::UnseenAnalysis(..)
            | Self::Cleared(_)
            | Self::Listed(_)
            | Self::Swept(..)
            | Self::Budget(..)
            | Self::Compared(..)
            | Self::Blast(..)
            | Self::Forgotten(..) => Exit::Yes,
        }
    }
}

fn yes_if(holds: bool) -> Exit {
    if holds { Exit::Yes } else { Exit::No }
}

fn of_state(state: State) -> Exit {
    match state {
        State::Queued => Exit::NotNow,
        State::Expired => Exit::No,
        State::Active | State::Clean | State::Orphaned | State::Refused | State::Replaced => {
            Exit::Yes
        }
    }
}

fn of_finish(status: FinishStatus) -> Exit {
    match status {
        FinishStatus::Accepted | FinishStatus::AcceptedWithExternalChanges => Exit::Yes,
        FinishStatus::Unverified => Exit::NotNow,
        FinishStatus::Violated | FinishStatus::Expired => Exit::No,
    }
}

fn of_look(found: &Looked) -> Exit {
    if let Some(verified) = &found.verified {
        return of_verify(verified.status);
    }
    let state = found.intent.as_ref().map_or(State::Refused, |it| it.state);
    of_finish(conclude(Stop::without_permission(state)).0)
}

fn of_verify(status: verify::PatchStatus) -> Exit {
    match status {
        verify::PatchStatus::Accepted | verify::PatchStatus::AcceptedWithExternalChanges => {
            Exit::Yes
        }
        verify::PatchStatus::Unverified => Exit::NotNow,
        verify::PatchStatus::Violated => Exit::No,
    }
}
