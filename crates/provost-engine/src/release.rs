//! Takes a lease away from a run that has it, because a person said so.
//!
//! The run notices when it renews its lease, ends what is under way, keeps the work and is refused
//! with `LEASE_LOST`. Who took it away stands in a chain of its own, because only the driver of a run
//! writes its ledger.

use provost_core::approval::Person;
use provost_core::approval::release::Release;
use provost_core::code::Code;

use crate::ports::{Clock, Ledger, PortError};

/// What somebody wants taken away.
pub struct LeaseRelease<'a> {
    /// The lease as it is now.
    pub release: Release<'a>,
    /// The digest of what the person has seen.
    pub seen: &'a str,
    /// Whose word it is.
    pub by: &'a Person,
    /// Why.
    pub reason: &'a str,
}

/// Records the word, has the lease taken away by `take`, and records what came of it.
///
/// `take` says whether a lease of that run and number was there.
pub fn release(
    ledger: &mut dyn Ledger,
    clock: &dyn Clock,
    order: &LeaseRelease<'_>,
    take: impl FnOnce(&str, u64) -> Result<bool, PortError>,
) -> Result<bool, PortError> {
    let Release { run_id, fence, .. } = order.release;
    let digest = order.release.digest();
    if digest != order.seen {
        let reason = format!("the lease of {run_id} is another one: its digest is {digest}");
        return Err(PortError::new(Code::NothingToApprove, reason)
            .hint(format!("provost lease release {run_id} shows it")));
    }
    let approved = order
        .release
        .approved(order.by, order.reason, clock.timestamp());
    ledger.append(approved)?;
    let was_there = take(run_id, fence)?;
    ledger.append(order.release.released(was_there, clock.timestamp()))?;
    Ok(was_there)
}
