//! The answers of the tools, before they are rendered as JSON or as text.

use provost_change::answer::{
    Budget, Compared, Finished, Gated, IntentList, Looked, Promoted, Recovered, Renewed, Started,
    Swept,
};
use provost_change::finish::claims::ClaimsVerdict;
use provost_change::finish::decide::{FinishStatus, ScopeCheck, stopped_at};
use provost_change::finish::verify;
use provost_change::intent::{Intent, Ownership, ScopeStatus, State};
use provost_change::next_step::Audience;
use provost_change::receipt::compose::PatchTrail;
use provost_change::recover::decide::Reset;
use provost_change::request::StartRequest;
use provost_change::start::decide::StartStatus;
use provost_change::tools::answers::{
    self as payload, Analysed, AnalysisPayload, ClaimsPayload, ClearedPayload, ComparedRuns,
    Detail, FinishPayload, Focus, ForgottenPayload, FoundBlast, FoundReceipt, FoundTrail,
    GatePayload, IntentPayload, IntentsPayload, LookPayload, Lookup, PromotePayload, ReceiptLookup,
    RecoverPayload, RenewPayload, ResetPayload, RunBudget, ScopeCheckPayload, StartPayload,
    StartView, SweptPayload, UnknownBlast, UnknownReceipt, UnknownTrail, UnseenAnalysis,
};
use provost_change::tools::arguments::{ArgumentError, Shown};
use provost_core::exit::Exit;
use provost_lens::structure::blast::Blast;
use provost_lens::structure::gates::Switches;
use serde::Serialize;
use serde_json::Value;

/// An answer of a tool.
pub enum ToolAnswer {
    Analysed(Box<Analysed>),
    /// Git cannot read the checkout that was to be analysed: its root, and why.
    UnseenAnalysis(String, String),
    Started(Box<StartAnswer>),
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
    Receipt(Box<ReceiptLookup>),
    /// The trail, and the digest that the caller named.
    Trail(Option<Box<PatchTrail>>, String),
    /// How many analyses and intents were given back.
    Forgotten(usize, usize),
}

pub struct StartAnswer {
    pub answer: Started,
    pub request: StartRequest,
    /// How much of the blast radius is shown.
    pub detail: Detail,
    pub root: String,
    /// In milliseconds since 1970.
    pub now: i64,
}

impl StartAnswer {
    fn view(&self) -> StartView<'_> {
        StartView {
            answer: &self.answer,
            request: &self.request,
            detail: self.detail,
            root: &self.root,
            now: self.now,
        }
    }
}

fn value(payload: impl Serialize) -> Value {
    serde_json::to_value(payload).unwrap_or_default()
}

fn lookup<T: Serialize, M: Serialize>(found: Option<T>, unknown: M) -> Value {
    value(found.map_or(Lookup::NotFound(unknown), Lookup::Ok))
}

impl ToolAnswer {
    /// The answer as the payload of its tool, in words for `to`.
    pub fn json(&self, to: Audience) -> Result<Value, ArgumentError> {
        Ok(match self {
            Self::Analysed(found) => value(AnalysisPayload::of(found)),
            Self::UnseenAnalysis(root, why) => value(UnseenAnalysis::of(root, why)),
            Self::Started(it) => value(StartPayload::of(it.view())),
            Self::Finished(done, shown) => value(FinishPayload::of(done, *shown)),
            Self::Got(intent, whose) => value(IntentPayload::of(intent, *whose)),
            Self::Checked(intent, found) => value(ScopeCheckPayload::of(found, intent)),
            Self::Promoted(answer) => value(PromotePayload::of(answer)),
            Self::Renewed(id, answer) => value(RenewPayload::of(id, answer)),
            Self::Cleared(ids) => value(ClearedPayload::of(ids)),
            Self::Recovered(id, answer, now) => value(RecoverPayload::of(id, answer, *now)),
            Self::NotRecovered(missing) => value(RecoverPayload::incomplete(missing)),
            Self::Listed(list) => value(IntentsPayload::of(list)),
            Self::Swept(swept, reports) => value(SweptPayload::of(swept, *reports)),
            Self::Reset(id, answer) => value(ResetPayload::of(id, answer.as_deref())),
            Self::Budget(run, budget, intent) => {
                value(RunBudget::of(run, budget, intent.as_deref()))
            }
            Self::Looked(found) => value(LookPayload::of(found, to)),
            Self::Compared(found, focus) => value(ComparedRuns::of(found, *focus)),
            Self::Blast(run, blast, include) => payload::blast(run, blast, include.as_deref())?,
            Self::BlastArtifact(document, digest, asked) => {
                let found = document.as_ref().map(|it| FoundBlast::of(it, digest));
                lookup(found, UnknownBlast::of(asked))
            }
            Self::Gated(found, switches) => value(GatePayload::of(found, switches)),
            Self::Claims(judged) => value(ClaimsPayload::of(judged)),
            Self::Receipt(it) => {
                let found = it
                    .receipt
                    .as_ref()
                    .map(|receipt| FoundReceipt::of(receipt, it));
                lookup(found, UnknownReceipt::of(&it.digest))
            }
            Self::Trail(trail, digest) => lookup(
                trail.as_deref().map(FoundTrail::of),
                UnknownTrail::of(digest),
            ),
            Self::Forgotten(runs, intents) => value(ForgottenPayload::of(*runs, *intents)),
        })
    }

    /// The exit status of a command with this answer.
    pub fn exit(&self) -> Exit {
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
            Self::BlastArtifact(document, ..) => yes_if(document.is_some()),
            Self::Trail(trail, _) => yes_if(trail.is_some()),
            Self::Receipt(answer) => yes_if(answer.receipt.is_some()),
            Self::Renewed(_, Renewed::Conflict(_))
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
    of_finish(stopped_at(state).0)
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
