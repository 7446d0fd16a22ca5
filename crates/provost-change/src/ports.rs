//! The ports that controlled changes need in addition to those of runs.

use std::path::Path;

use crate::analysis::run::RunHead;
use crate::answer::Unread;
use crate::intent::Intent;
use crate::intent::fact::IntentFact;
use provost_core::lease::{Lease, Owner};
use provost_core::record::{Event, Head, Record};
use provost_lens::structure::{Report, Settings};

use provost_engine::ports::PortError;

/// Everything that the registry knows about intents and leases.
#[derive(Debug, Clone, Default)]
pub struct RegistryView {
    /// The open intents in the order of their declaration, and the one that was asked for.
    pub intents: Vec<Intent>,
    /// The leases of runs.
    pub leases: Vec<Lease>,
    /// Records that this program does not understand; they are kept and reported.
    pub unread: Vec<Unread>,
}

/// An event that is to be written.
#[derive(Debug, Clone)]
pub enum IntentEntry {
    /// The first event of an intent.
    Declared(Box<Intent>),
    /// An event of an intent that was declared before.
    Changed { intent_id: String, fact: IntentFact },
}

/// Knows the intents of all agents.
pub trait IntentRegistry {
    /// Shows everything to `decide` and writes what it returns, in one step that no other process
    /// can interrupt. The intent `named` is shown even if it is closed.
    fn turn(
        &mut self,
        named: Option<&str>,
        decide: &mut dyn FnMut(&RegistryView) -> Vec<IntentEntry>,
    ) -> Result<(), PortError>;

    /// Reads everything without a turn.
    fn look(&mut self, named: Option<&str>) -> Result<RegistryView, PortError>;

    /// Every intent that was ever active, open or closed, in the order of declaration.
    fn past(&mut self) -> Result<Vec<Intent>, PortError>;

    /// Renews the leases of all open intents of `owner` that are not expired; gives their number.
    /// That is no change of state, and no event.
    fn renew_all(&mut self, owner: &Owner, now: i64) -> Result<usize, PortError>;

    /// The same for one intent.
    fn renew_one(&mut self, owner: &Owner, intent_id: &str, now: i64) -> Result<usize, PortError>;

    /// Removes closed intents that expired before `before`; gives their number.
    fn purge(&mut self, before: i64) -> Result<usize, PortError>;

    /// Stores which intent a document of evidence belongs to, by its digest.
    fn keep_digest(&mut self, digest: &str, intent_id: &str) -> Result<(), PortError>;

    /// Stores where the chain of an intent ends; an earlier end changes nothing.
    fn pin_chain(&mut self, intent_id: &str, head: &Head) -> Result<(), PortError>;

    fn intent_of(&mut self, digest: &str) -> Result<Option<String>, PortError>;
}

/// Analyses the structure of source code.
///
/// Reads from disk what git tracks below `root`, and new files that it does not ignore. Equal trees
/// and settings give equal reports.
pub trait Lens {
    fn analyze(&self, root: &Path, settings: &Settings) -> Result<Report, PortError>;
}

/// Stores the analysis runs of one session.
pub trait AnalysisStore {
    fn heads(&self) -> Result<Vec<RunHead>, PortError>;

    fn report(&self, head: &RunHead) -> Result<Report, PortError>;

    /// Stores a run; one of the same id is replaced.
    fn put(&mut self, head: RunHead, report: &Report) -> Result<(), PortError>;

    fn drop(&mut self, run_ids: &[String]) -> Result<(), PortError>;
}

/// Computes the seal of a whole chain.
pub type Seal<'a> = dyn Fn(&[Record]) -> Result<Vec<u8>, PortError> + 'a;

/// Stores the evidence of intents: a directory and a chain each.
pub trait ChangeEvidence {
    /// Adds a record to the chain of an intent, and stores the seal that `seal` computes from the
    /// whole chain. No other process adds a record meanwhile. Gives the new end of the chain.
    fn append(&mut self, intent_id: &str, event: Event, seal: &Seal<'_>)
    -> Result<Head, PortError>;

    /// Writes the file `name`, whole or not at all.
    fn put(&mut self, intent_id: &str, name: &str, bytes: &[u8]) -> Result<(), PortError>;

    /// Stores the report of a run of this session as the file `name`.
    fn put_report(&mut self, intent_id: &str, name: &str, head: &RunHead) -> Result<(), PortError>;

    /// The file `name`; `None` if there is none.
    fn get(&self, intent_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError>;
}
