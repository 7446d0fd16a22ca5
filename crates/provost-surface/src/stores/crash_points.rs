//! A ledger and a bundle that crash the driver at any of their calls, for the crash tests.
//!
//! This module is compiled only with the feature `failpoints`. The variable `FAILPOINTS` names the
//! moment: `before-record`, `after-record`, `after-case-record` or
//! `after-file`, and how many calls succeed before.

use std::path::Path;

use provost_core::record::{Event, Head, Record};
use provost_core::user_secret::Secret;
use provost_engine::ports::{Bundle, Kept, Ledger, PortError};
use provost_store::StoreError;
use provost_store::bundle::DirBundle;
use provost_store::driven::DrivenLedger;
use rustix::process::{Signal, getpid, kill_process};

/// A ledger whose driver may die before or after an event.
pub(super) struct CrashingLedger(DrivenLedger);

impl CrashingLedger {
    /// A new ledger at `path` that continues `head`.
    pub(super) fn create(path: &Path, head: Head) -> Result<Self, StoreError> {
        DrivenLedger::create(path, head).map(Self)
    }

    /// The ledger at `path` that continues `head`.
    pub(super) fn open(path: &Path, head: Head) -> Result<Self, StoreError> {
        DrivenLedger::open(path, head).map(Self)
    }

    /// The same ledger; every event from here on is marked with `secret`.
    pub(super) fn marked_with(self, secret: Secret) -> Self {
        Self(self.0.marked_with(secret))
    }
}

impl Ledger for CrashingLedger {
    fn records(&self) -> &[Record] {
        self.0.records()
    }

    fn append(&mut self, event: Event) -> Result<(), PortError> {
        fail::fail_point!("before-record", |_| die());
        let of_case = ["CASE_", "NODE_"].map(|prefix| event.event_type.starts_with(prefix));
        self.0.append(event)?;
        if of_case.contains(&true) {
            fail::fail_point!("after-case-record", |_| die());
        }
        fail::fail_point!("after-record", |_| die());
        Ok(())
    }

    fn head(&self) -> Head {
        self.0.head()
    }
}

/// A bundle whose driver may die after a file.
pub(super) struct CrashingBundle(DirBundle);

impl CrashingBundle {
    pub(super) fn new(directory: &Path) -> Self {
        Self(DirBundle::new(directory))
    }
}

impl Bundle for CrashingBundle {
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError> {
        for file in files {
            self.0.put_all(std::slice::from_ref(file))?;
            fail::fail_point!("after-file", |_| die());
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        self.0.get(name)
    }

    fn list(&self) -> Result<Vec<Kept>, PortError> {
        self.0.list()
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        self.0.tidy()
    }
}

/// Dies as by `kill -9`: nothing is unwound, flushed or cleaned up.
fn die() -> ! {
    loop {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
