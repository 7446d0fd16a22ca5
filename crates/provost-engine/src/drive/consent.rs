//! Records the answer of a person to the question of a run.

use std::time::Duration;

use provost_core::approval::{Approval, LONGEST_SEC, Person, Rejection};
use provost_core::code::Code;
use provost_core::run::State;
use provost_core::run::fact::Fact;
use provost_core::time;

use super::{Ports, fold, record};
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

/// Records the approval by `by`, which expires after `lasts`.
pub fn approve(
    ports: &mut Ports<'_>,
    by: Person,
    seen: Option<&str>,
    lasts: Duration,
) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    let digest = asked(&state, seen)?;
    let lasts = lasts.min(Duration::from_secs(LONGEST_SEC));
    let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
    let until = time::render(ports.clock.millis().saturating_add(lasts));
    let approval = Approval { digest, by, until };
    record(ports, &mut state, Fact::Approved(approval))?;
    Ok(state)
}

/// Records the rejection by `by`, which ends the run.
pub fn reject(
    ports: &mut Ports<'_>,
    by: Person,
    seen: Option<&str>,
    reason: &str,
) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    let rejection = Rejection {
        digest: asked(&state, seen)?,
        by,
        reason: reason.to_owned(),
    };
    record(ports, &mut state, Fact::Rejected(rejection))?;
    Ok(state)
}
