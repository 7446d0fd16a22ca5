//! Reads runs that are over or that others drive; never repairs and never locks.

use provost_core::bundle::after::Landing;
use provost_core::bundle::layout::{AFTER, ATTESTATION, DRIVER_LOCK, LEDGER};
use provost_core::code::Code;
use provost_core::record::{Head, Record};
use provost_core::run::State;
use provost_host::owner;
use provost_store::ledger;
use provost_store::lock::DriverLock;

use crate::answer::Failure;
use crate::place::Place;
use crate::session::store;

/// What is known of a run beside its own ledger.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Whether a living process drives it.
    pub(crate) driven: bool,
    /// Where it landed.
    pub(crate) landed: Option<Landing>,
}

/// The records of the run `run_id`, oldest first.
pub(crate) fn records(place: &Place, run_id: &str) -> Result<Vec<Record>, Failure> {
    let path = place.run(run_id).join(LEDGER);
    Ok(ledger::read(&path, Head::genesis()).map_err(store)?.records)
}

/// Where the run `run_id` stands.
pub(crate) fn state(place: &Place, run_id: &str) -> Result<State, Failure> {
    let records = records(place, run_id)?;
    State::fold(&records).map_err(|error| Failure::of(Code::EvidenceAltered, &error))
}

/// What is known of the run `run_id` beside its own ledger.
pub(crate) fn beside(place: &Place, run_id: &str) -> Beside {
    Beside {
        driven: is_driven(place, run_id),
        landed: landed(place, run_id),
    }
}

/// Where the run landed, as its second chain says; `land` and `verify` look whether that is true.
pub(crate) fn landed(place: &Place, run_id: &str) -> Option<Landing> {
    Landing::recorded(&after(place, run_id)?)
}

/// What happened after the seal; `None` if nothing did, or it cannot be read.
pub(crate) fn after(place: &Place, run_id: &str) -> Option<Vec<Record>> {
    let path = place.run(run_id).join(AFTER);
    if !path.exists() {
        return None;
    }
    let sealed = records(place, run_id).ok()?;
    let after = ledger::read(&path, Head::after(&sealed.last()?.hash)).ok()?;
    Some(after.records)
}

/// The command that goes on with a run that has not ended.
pub(crate) fn go_on(run_id: &str, driven: bool) -> String {
    if driven {
        format!("provost log {run_id} --follow")
    } else {
        format!("provost resume {run_id}")
    }
}

/// Whether a run that was opened has its seal.
pub(crate) fn is_sealed(place: &Place, run_id: &str) -> bool {
    place.run(run_id).join(ATTESTATION).is_file()
}

/// Whether the driver of a run died before its first record: nothing was begun, so nothing is left.
///
/// The ledger is made before the contract is written, so without both there never was a record.
pub(crate) fn never_began(place: &Place, run_id: &str) -> bool {
    let absent = |name: &str| {
        let there = place.run(run_id).join(name).try_exists();
        there.is_ok_and(|there| !there)
    };
    let empty = || records(place, run_id).is_ok_and(|records| records.is_empty());
    absent(LEDGER) && absent("contract.json") || empty()
}

/// Runs that nobody drives and that have no seal: their driver died.
pub(crate) fn interrupted(place: &Place) -> Result<Vec<String>, Failure> {
    let mut runs = place.runs()?;
    runs.retain(|run_id| !is_sealed(place, run_id) && !is_driven(place, run_id));
    runs.retain(|run_id| !never_began(place, run_id));
    Ok(runs)
}

/// Whether a living process drives the run.
pub(crate) fn is_driven(place: &Place, run_id: &str) -> bool {
    let driver = DriverLock::last_owner(&place.run(run_id).join(DRIVER_LOCK));
    driver.is_some_and(|driver| owner::alive(&driver))
}
