//! Takes a lease away from the run that holds it, because a person said so.
//!
//! The run notices when it renews its lease. It then ends its agent, keeps the work and is refused
//! with `LEASE_LOST`. A chain of its own says who took the lease away, because only the driver of a
//! run writes its ledger.

use provost_core::approval::Person;
use provost_core::approval::release::Release;
use provost_core::code::Code;

use crate::ports::{Clock, Ledger, PortError};

/// The lease that a person wants taken away.
pub struct LeaseRelease<'a> {
    /// The lease as it is at the time of the request.
    pub release: Release<'a>,
    /// The digest of what was shown to the person.
    pub seen: &'a str,
    /// The person who decides.
    pub by: &'a Person,
    pub reason: &'a str,
}

/// Records the decision, calls `take` to remove the lease, and records the result.
///
/// `take` returns whether a lease of that run and number existed.
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
