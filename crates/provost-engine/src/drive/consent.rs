//! Records the answer of a person to the question of a run.

use std::time::Duration;

use provost_core::approval::{Approval, LONGEST_FULL_ACCESS_SEC, LONGEST_SEC, Person, Rejection};
use provost_core::code::Code;
use provost_core::question::{AnswerMeans, Needs};
use provost_core::run::State;
use provost_core::run::fact::Fact;
use provost_core::time;

use super::{Ports, fold, record, refusal};
use crate::ports::PortError;

/// Whether the approval of the run is expired for the step that begins next.
pub(super) fn is_over(ports: &Ports<'_>, state: &State) -> bool {
    state.approval.is_some() && state.consent_is_over(ports.clock.millis())
}

/// The digest of the open question; an error if `seen` is the digest of another one.
fn asked(state: &State, seen: Option<&str>) -> Result<String, PortError> {
    let run = &state.names.run_id;
    let nothing = |reason: String| PortError::new(Code::NothingToApprove, reason);
    let question = state.question().filter(|_| state.is_waiting());
    let Some(question) = question else {
        return Err(nothing(match &state.approval {
            Some(approval) => format!("{run} is approved already, by {}", approval.by),
            None => format!("{run} asks nothing"),
        })
        .hint(format!("provost show {run}")));
    };
    let digest = question.digest();
    if seen.is_some_and(|seen| seen != digest) {
        let reason = format!("{run} asks something else: the digest of its question is {digest}");
        return Err(nothing(reason).hint(format!("provost show {run} says what it asks")));
    }
    Ok(digest)
}

/// A yes before it is signed.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    pub by: Person,
    /// The digest of the question that the person has seen.
    pub seen: Option<&'a str>,
    pub lasts: Duration,
    pub how: AnswerMeans,
    pub reason: &'a str,
}

/// Signs an answer, or says how else it was given; it is called with what a yes needs.
pub type Sign<'a> = &'a mut dyn FnMut(Needs, &mut Approval) -> Result<(), PortError>;

/// Records the approval that `draft` describes and `sign` signs.
pub fn approve(
    ports: &mut Ports<'_>,
    draft: Draft<'_>,
    sign: Sign<'_>,
) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    let digest = asked(&state, draft.seen)?;
    let most = if state.has_full_access() {
        LONGEST_FULL_ACCESS_SEC
    } else {
        LONGEST_SEC
    };
    let lasts = draft.lasts.min(Duration::from_secs(most));
    let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
    let mut approval = Approval {
        digest,
        by: draft.by,
        until: time::render(ports.clock.millis().saturating_add(lasts)),
        how: draft.how,
        reason: draft.reason.to_owned(),
        signature: None,
    };
    sign(state.approval_needs(), &mut approval)?;
    let may = state.may_approve(&approval);
    may.map_err(|refused| refusal(&state.names.run_id, &refused))?;
    record(ports, &mut state, Fact::Approved(approval))?;
    Ok(state)
}

/// Records the rejection by `by`, which ends the run.
pub fn reject(
    ports: &mut Ports<'_>,
    (by, how): (Person, AnswerMeans),
    seen: Option<&str>,
    reason: &str,
) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    let rejection = Rejection {
        digest: asked(&state, seen)?,
        by,
        reason: reason.to_owned(),
        how,
    };
    record(ports, &mut state, Fact::Rejected(rejection))?;
    Ok(state)
}
