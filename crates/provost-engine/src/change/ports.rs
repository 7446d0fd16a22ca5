//! The doors that controlled changes need beside those of runs.

use std::collections::BTreeSet;

use provost_core::intent::answer::Unread;
use provost_core::intent::course::Happening;
use provost_core::intent::record::Intent;
use provost_core::intent::run::RunHead;
use provost_core::intent::workspace::{Moved, Workspace};
use provost_core::lease::{Lease, Owner};
use provost_core::record::{Event, Head, Record};
use provost_core::structure::Report;

use crate::ports::PortError;

/// Everything that is known about who is at work.
#[derive(Debug, Clone, Default)]
pub struct RegistryView {
    /// The open intents by when they were declared, and the one that was asked for.
    pub intents: Vec<Intent>,
    /// What runs of our own hold.
    pub leases: Vec<Lease>,
    /// Records that this program does not understand; they are kept and told (R10).
    pub unread: Vec<Unread>,
}

/// A record that is to be written.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The whole record.
    pub intent: Intent,
    /// What happened; nothing if only its lease was renewed, which is no change of state.
    pub what: Option<Happening>,
}

/// Knows the intents of all agents.
pub trait IntentRegistry {
    /// Shows everything to `decide` and writes what it says, in one step that nobody can interrupt.
    /// The intent `named` is shown also if it is closed.
    fn turn(
        &mut self,
        named: Option<&str>,
        decide: &mut dyn FnMut(&RegistryView) -> Vec<Entry>,
    ) -> Result<(), PortError>;

    /// Everything as it is, without a turn.
    fn look(&mut self, named: Option<&str>) -> Result<RegistryView, PortError>;

    /// Every intent under which could be edited, open or closed, by when it was declared.
    fn past(&mut self) -> Result<Vec<Intent>, PortError>;

    /// Renews the leases of all open intents of `owner` whose time is not over; gives their number.
    fn renew_all(&mut self, owner: &Owner, now: i64) -> Result<usize, PortError>;

    /// Forgets closed records whose time was over before `before`; gives their number.
    fn purge(&mut self, before: i64) -> Result<usize, PortError>;

    /// Notes which intent a document of evidence belongs to, by its digest.
    fn keep_digest(&mut self, digest: &str, intent_id: &str) -> Result<(), PortError>;

    /// Notes where the chain of an intent ends; a note about an earlier end changes nothing.
    fn pin_chain(&mut self, intent_id: &str, head: &Head) -> Result<(), PortError>;

    /// The intent that a digest belongs to.
    fn intent_of(&mut self, digest: &str) -> Result<Option<String>, PortError>;
}

/// Sees the files of the shared checkout.
pub trait Checkout {
    /// Its state now.
    fn workspace(&self) -> Result<Workspace, PortError>;

    /// What differs between two trees; nothing stands for an empty one.
    fn moved(&self, before: Option<&str>, after: Option<&str>) -> Result<Moved, PortError>;

    /// The trees of the commit it stands on and of those before; of very many only the newest.
    fn trees(&self) -> Result<BTreeSet<String>, PortError>;

    /// The tree of the commit that `rev` names.
    fn tree_of(&self, rev: &str) -> Result<String, PortError>;

    /// The bytes of the regular file `path` below the root `root`, `most` at most, and never through
    /// a link; nothing if there is none.
    fn read(&self, root: &str, path: &str, most: u64) -> Result<Option<Vec<u8>>, PortError>;

    /// The first part of `path` that is a symbolic link; nothing if there is none, or nothing stands
    /// there.
    fn link_on(&self, path: &str) -> Result<Option<String>, PortError>;

    /// Where the analysed root `root` is on this machine.
    fn place(&self, root: &str) -> std::path::PathBuf;
}

/// Keeps the runs of one session.
pub trait AnalysisStore {
    fn heads(&self) -> Result<Vec<RunHead>, PortError>;

    /// What a run found.
    fn report(&self, head: &RunHead) -> Result<Report, PortError>;

    /// Keeps a run; one of the same name is replaced.
    fn put(&mut self, head: RunHead, report: &Report) -> Result<(), PortError>;

    /// Forgets runs.
    fn drop(&mut self, run_ids: &[String]) -> Result<(), PortError>;
}

/// Makes the seal of a whole chain.
pub type Seal<'a> = dyn Fn(&[Record]) -> Result<Vec<u8>, PortError> + 'a;

/// Keeps the evidence of intents: a directory and a chain each.
pub trait ChangeEvidence {
    /// Adds a record to the chain of an intent, and keeps the seal that `seal` makes of the whole
    /// chain. Nobody else adds a record meanwhile. Gives where the chain ends.
    fn append(&mut self, intent_id: &str, event: Event, seal: &Seal<'_>)
    -> Result<Head, PortError>;

    /// Writes the file `name`, whole or not at all.
    fn put(&mut self, intent_id: &str, name: &str, bytes: &[u8]) -> Result<(), PortError>;

    /// Makes the report of a run of this session the file `name`.
    fn put_report(&mut self, intent_id: &str, name: &str, head: &RunHead) -> Result<(), PortError>;

    /// The file `name`, if it is there.
    fn get(&self, intent_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError>;
}

/// Makes names that nobody has used before.
pub trait FreshNames {
    /// A new name for an intent, sorted by time.
    fn intent_id(&self, now: i64) -> Result<String, PortError>;
}
