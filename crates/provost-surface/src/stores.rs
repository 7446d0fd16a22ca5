//! Wires the engine's ports to the stores of this program.
//!
//! This is the only module that names them: another registry is one more implementation of the
//! ports, and a line here.

#[cfg(feature = "failpoints")]
mod crash_points;

use std::path::Path;
use std::time::Duration;

use provost_change::ports::IntentRegistry;
use provost_core::lease::Owner;
use provost_core::record::{Head, Record};
use provost_core::user_secret::Secret;
use provost_engine::bundle::verify::Pins;
use provost_engine::ports::{Bundle, Ledger, PortError, Registry};
use provost_host::process_owner;
#[cfg(feature = "formats")]
pub use provost_store::board;
pub use provost_store::changes::{AnalysisFiles, ChangeFiles};
use provost_store::driven::LiveRegistry;
use provost_store::lock::DriverLock;
use provost_store::registry::SqliteRegistry;
pub use provost_store::remote_file_system;
use provost_store::{StoreError, ledger};
#[cfg(not(feature = "failpoints"))]
use provost_store::{bundle::DirBundle as RunBundle, driven::DrivenLedger as RunLedger};

#[cfg(feature = "failpoints")]
use crash_points::{CrashingBundle as RunBundle, CrashingLedger as RunLedger};

use crate::answer::Failure;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        PortError::from(error).into()
    }
}

/// A lock that lasts until it is dropped or its process ends.
pub type DriverGuard = DriverLock;

/// The files in `directory`.
pub fn bundle(directory: &Path) -> Box<dyn Bundle> {
    Box::new(RunBundle::new(directory))
}

/// Which ledger a caller expects at a path.
#[derive(Clone, Copy)]
pub enum Expected {
    New,
    Existing,
    Either,
}

/// The ledger at `path` that continues `head`. Its new events are marked with `secret`.
pub fn open_ledger(
    path: &Path,
    expected: Expected,
    head: Head,
    secret: Option<Secret>,
) -> Result<Box<dyn Ledger>, PortError> {
    let is_new = match expected {
        Expected::New => true,
        Expected::Existing => false,
        Expected::Either => !path.exists(),
    };
    let ledger = if is_new {
        RunLedger::create(path, head)?
    } else {
        RunLedger::open(path, head)?
    };
    Ok(match secret {
        Some(secret) => Box::new(ledger.marked_with(secret)),
        None => Box::new(ledger),
    })
}

/// The records of the ledger at `path`; an unfinished line does not count.
pub fn read_ledger(path: &Path, head: Head) -> Result<Vec<Record>, PortError> {
    Ok(ledger::read(path, head)?.records)
}

/// The leases and pins of runs.
pub fn run_registry(path: &Path) -> Result<Box<dyn Registry>, PortError> {
    Ok(Box::new(LiveRegistry {
        registry: SqliteRegistry::open(path)?,
        alive: process_owner::alive,
    }))
}

/// The intents of agents.
pub fn intent_registry(path: &Path) -> Result<Box<dyn IntentRegistry + Send>, PortError> {
    Ok(Box::new(SqliteRegistry::open(path)?))
}

/// Runs a query that changes nothing on the intents.
pub fn look_at_intents<T>(
    path: &Path,
    ask: impl FnOnce(&mut dyn IntentRegistry) -> Result<T, PortError>,
) -> Result<T, PortError> {
    SqliteRegistry::glance(path, |registry| ask(registry))
}

/// The known ends of the chains of the run `run_id`.
pub fn pins(path: &Path, run_id: &str) -> Result<Pins, PortError> {
    SqliteRegistry::glance(path, |registry| Ok(registry.pins(run_id)?))
}

/// The known end of the chain of the controlled change `intent_id`.
pub fn pinned_change(path: &Path, intent_id: &str) -> Result<Option<Head>, PortError> {
    SqliteRegistry::glance(path, |registry| Ok(registry.pinned_change(intent_id)?))
}

/// The lock at `path`; `None` if another process has it.
pub fn try_lock(path: &Path, owner: &Owner) -> Result<Option<DriverGuard>, PortError> {
    Ok(DriverLock::try_acquire(path, owner)?)
}

/// The lock at `path`, after at most `patience`.
pub fn wait_for_lock(
    path: &Path,
    owner: &Owner,
    patience: Duration,
) -> Result<DriverGuard, PortError> {
    Ok(DriverLock::acquire(path, owner, patience)?)
}

/// The process that had the lock at `path` last.
pub fn last_owner(path: &Path) -> Option<Owner> {
    DriverLock::last_owner(path)
}
