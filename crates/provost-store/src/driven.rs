//! Implements the engine's ports for ledger and registry.

use std::path::Path;

use provost_core::lease::{Acquired, Lease, LeaseRequest, Owner};
use provost_core::record::{Event, Head, Record};
use provost_core::user_secret::Secret;
use provost_engine::bundle::verify::Pins;
use provost_engine::ports::{self, PortError};

use crate::StoreError;
use crate::bundle::refuse;
use crate::ledger::FileLedger;
use crate::registry::{Pin, SqliteRegistry};

/// A ledger in a file, with its records in memory.
#[derive(Debug)]
pub struct DrivenLedger {
    file: FileLedger,
    records: Vec<Record>,
}

impl DrivenLedger {
    /// A new ledger at `path` that continues `head`.
    pub fn create(path: &Path, head: Head) -> Result<Self, StoreError> {
        Ok(Self {
            file: FileLedger::create(path, head)?,
            records: Vec::new(),
        })
    }

    /// The ledger at `path` that continues `head`.
    pub fn open(path: &Path, head: Head) -> Result<Self, StoreError> {
        let (file, records) = FileLedger::open_for_append(path, head)?;
        Ok(Self { file, records })
    }

    /// The same ledger, which marks every later record with `secret`.
    #[must_use]
    pub fn marked_with(mut self, secret: Secret) -> Self {
        self.file.mark_with(secret);
        self
    }
}

impl ports::Ledger for DrivenLedger {
    fn records(&self) -> &[Record] {
        &self.records
    }

    fn append(&mut self, event: Event) -> Result<(), PortError> {
        let record = self.file.append(event).map_err(refuse)?;
        self.records.push(record);
        Ok(())
    }

    fn head(&self) -> Head {
        self.file.head().clone()
    }
}

/// The registry, with a test whether the owner of a lease is alive.
#[derive(Debug)]
pub struct LiveRegistry {
    pub registry: SqliteRegistry,
    /// Only the host can tell which processes are alive.
    pub alive: fn(&Owner) -> bool,
}

impl ports::Registry for LiveRegistry {
    fn acquire(&mut self, request: &LeaseRequest) -> Result<Acquired, PortError> {
        self.registry.acquire(request, &self.alive).map_err(refuse)
    }

    fn renew(&mut self, run_id: &str, fence: u64, expires_at: i64) -> Result<bool, PortError> {
        self.registry
            .renew(run_id, fence, expires_at)
            .map_err(refuse)
    }

    fn release(&mut self, run_id: &str) -> Result<(), PortError> {
        self.registry.release(run_id).map_err(refuse)
    }

    fn release_one(&mut self, run_id: &str, fence: u64) -> Result<bool, PortError> {
        self.registry.release_one(run_id, fence).map_err(refuse)
    }

    fn leases(&mut self) -> Result<Vec<Lease>, PortError> {
        self.registry.leases().map_err(refuse)
    }

    fn pin(&mut self, run_id: &str, head: &Head) -> Result<(), PortError> {
        self.registry.pin(run_id, &pin(head)).map_err(refuse)
    }

    fn pin_after(&mut self, run_id: &str, head: &Head) -> Result<(), PortError> {
        self.registry.pin_after(run_id, &pin(head)).map_err(refuse)
    }

    fn pinned(&mut self, run_id: &str) -> Result<Pins, PortError> {
        self.registry.pins(run_id).map_err(refuse)
    }
}

/// The last record of a chain that ends at `head`.
fn pin(head: &Head) -> Pin {
    Pin {
        seq: head.next.saturating_sub(1),
        hash: head.hash.clone(),
    }
}
