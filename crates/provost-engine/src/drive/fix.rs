//! Reviews a candidate, and prepares the attempt that fixes a refusal.

use std::collections::BTreeMap;
use std::time::Duration;

use provost_core::code::Code;
use provost_core::run::effect::{self, NoEffect};
use provost_core::run::fact::{Fact, ResultFile, Trigger};
use provost_core::run::{Gate, State, Step};
use provost_core::time;
use provost_core::verdict::Verdict;

use super::{Ports, cancelled, watched};
use crate::ports::{Control, PortError};

/// Decides when the attempt that fixes a refusal of `gate` may begin.
pub(super) fn trigger(ports: &Ports<'_>, state: &State, gate: Gate) -> Fact {
    let refusal = state.refusal.as_ref();
    let backoff = state.opened.contract.timeout_retry.retry_backoff_sec;
    let backoff = i64::try_from(backoff).unwrap_or(i64::MAX);
    let not_before = ports.clock.millis();
    let not_before = not_before.saturating_add(backoff.saturating_mul(1000));
    Fact::Triggered(Trigger {
        gate,
        code: refusal.map_or(Code::Bug, |refusal| refusal.code),
        not_before: time::render(not_before),
    })
}

/// Waits until the next attempt may begin, then writes its contract.
pub(super) fn fix(
    ports: &mut Ports<'_>,
    state: &State,
    order: &effect::Fix,
) -> Result<Fact, PortError> {
    let left = order.not_before.saturating_sub(ports.clock.millis());
    let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
    let failed = |verdict| {
        Ok(Fact::Failed {
            step: Step::Fix,
            verdict,
        })
    };
    // A clock that was set back must not make the wait longer than the contract says.
    let left = left.min(order.most);
    match watched(ports, state, |host, watch| host.pause(left, watch)) {
        Ok(Control::Continue) => {}
        Ok(Control::Cancel) => return Ok(cancelled(Step::Fix)),
        Ok(Control::LeaseLost) => {
            let reason = "the lease on the scope was lost";
            return failed(Verdict::deny(Code::LeaseLost, reason));
        }
        Err(error) => return failed(error.verdict()),
    }
    let mut texts = BTreeMap::new();
    for evidence in &order.evidence {
        let Some(bytes) = ports.bundle.get(&evidence.file)? else {
            let reason = format!("`{}` is missing", evidence.file);
            return Err(PortError::new(Code::EvidenceIncomplete, reason));
        };
        texts.insert(evidence.file.clone(), bytes);
    }
    let nothing = || PortError::of(Code::Bug, NoEffect::NothingToMend);
    let fix = state.fix(&texts).ok_or_else(nothing)?;
    let contract = serde_json::to_vec_pretty(&fix.contract)
        .map_err(|error| PortError::of(Code::Bug, error))?;
    ports.bundle.put(&fix.path, &contract)?;
    Ok(Fact::Fixing(Box::new(fix)))
}

/// Has the candidate reviewed; the report is a file before the record that names it.
pub(super) fn review(
    ports: &mut Ports<'_>,
    state: &State,
    order: &effect::Review,
) -> Result<Fact, PortError> {
    let reviewed = match watched(ports, state, |host, watch| host.review(order, watch)) {
        Ok(reviewed) => reviewed,
        Err(error) => {
            return Ok(Fact::Failed {
                step: Step::Review,
                verdict: error.verdict(),
            });
        }
    };
    if let ResultFile::Text(text) = &reviewed.run.result {
        ports.bundle.put(&state.review_file(), text.as_bytes())?;
    }
    Ok(Fact::Reviewed(Box::new(reviewed)))
}
