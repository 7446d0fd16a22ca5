//! The doors to everything outside: machine, memory, time, keys and whoever looks on.
//!
//! A port is named for its role, an implementation for its technology.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use provost_core::bundle::key::PublicKey;
use provost_core::bundle::verify::Pins;
use provost_core::code::Code;
use provost_core::lease::{Acquired, LeaseRequest};
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::{Event, Head, Record};
use provost_core::run::fact::{
    AgentRun, Cancel, Capture, Cleaned, Layered, Placed, Published, ReviewRun, SandboxTest, TestRun,
};
use provost_core::run::{Gate, State, Step, effect};
use provost_core::structure::{Report, Settings};
use provost_core::verdict::Verdict;
use serde_json::json;

/// Why a port could not do what it was asked.
#[derive(Debug)]
pub struct PortError {
    /// The rule behind it.
    pub code: Code,
    /// What is wrong.
    pub reason: String,
    /// What to do about it, when that is more than reading the page behind the code.
    pub hint: Option<String>,
    /// The error it stands for, with everything that led to it.
    error: Option<Box<dyn Error + Send + Sync>>,
}

impl fmt::Display for PortError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The error itself is the reason already.
        self.error.as_ref().and_then(|error| error.source())
    }
}

impl PortError {
    /// A failure by the rule `code`.
    pub fn new(code: Code, reason: impl fmt::Display) -> Self {
        Self {
            code,
            reason: reason.to_string(),
            hint: None,
            error: None,
        }
    }

    /// The failure that `error` stands for.
    pub fn of(code: Code, error: impl Error + Send + Sync + 'static) -> Self {
        Self {
            code,
            reason: error.to_string(),
            hint: None,
            error: Some(Box::new(error)),
        }
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure as the refusal that ends a run.
    pub fn verdict(&self) -> Verdict {
        let mut reason = self.reason.clone();
        let mut next = self.source();
        while let Some(cause) = next {
            reason = format!("{reason}: {cause}");
            next = cause.source();
        }
        let verdict = Verdict::deny(self.code, reason);
        match &self.hint {
            Some(hint) => verdict.with(json!({ "hint": hint })),
            None => verdict,
        }
    }
}

/// Does things to the machine, for one run.
///
/// Everything but [`Host::agent`] may be done twice: after a crash nobody knows whether it had
/// been done. When a call that runs a sandbox returns, every process of that sandbox is dead.
pub trait Host {
    /// Keeps the base commit of a run by a ref of ours, before any record names it.
    fn keep_base(&mut self, run_id: &str, base: &Oid) -> Result<(), PortError>;

    /// Gets hold of the prepared layers of a tree, and makes those that are not there.
    fn prepare(
        &mut self,
        order: &effect::Prepare,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Layered>, PortError>;

    /// Makes the private directory of an attempt at the base commit, anew if it is there.
    fn workspace(&mut self, order: &effect::Workspace) -> Result<Placed, PortError>;

    /// Lets probes try to get out of the sandboxes of the run, through the same profiles.
    fn selftest(&mut self, order: &effect::Selftest) -> Result<SandboxTest, PortError>;

    /// Lets the agent work until it ends or `watch` ends it.
    fn agent(
        &mut self,
        agent: &effect::Agent,
        watch: &mut dyn Watch,
    ) -> Result<AgentRun, PortError>;

    /// Turns what the agent left into a tree that a ref of ours keeps.
    fn capture(&mut self, order: &effect::Capture) -> Result<Capture, PortError>;

    /// Lets the reviewer look at exactly one tree until it ends or `watch` ends it.
    fn review(
        &mut self,
        order: &effect::Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError>;

    /// Runs the contract's commands in a fresh workspace of exactly one tree.
    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError>;

    /// Lets `time` pass, or less if `watch` ends it; says which.
    fn pause(&mut self, time: Duration, watch: &mut dyn Watch) -> Result<Control, PortError>;

    /// Leaves a branch of ours with one commit of exactly the candidate.
    fn publish(&mut self, order: &effect::Publish) -> Result<Published, PortError>;

    /// Saves what no ref keeps yet, then removes what is to go.
    fn clean(&mut self, order: &effect::Clean) -> Result<Cleaned, PortError>;

    /// `text` without the secrets that this machine knows; nothing if it holds none.
    fn hide(&self, text: &str) -> Option<String>;

    /// The patch from one tree to another.
    fn patch(&mut self, before: &Oid, after: &Oid) -> Result<Vec<u8>, PortError>;

    /// The part of that patch that is about `paths`.
    fn patch_of(
        &mut self,
        before: &Oid,
        after: &Oid,
        paths: &[RawPath],
    ) -> Result<Vec<u8>, PortError>;

    /// A pack that proves the change from the base to each of the trees `after`.
    ///
    /// The content of the paths that stand beside a tree is left out.
    fn objects(
        &mut self,
        base: &effect::Base,
        after: &[(&Oid, &BTreeSet<RawPath>)],
    ) -> Result<Vec<u8>, PortError>;
}

/// Looks after a long effect while it lasts.
pub trait Watch {
    /// Called several times a second.
    fn tick(&mut self, progress: &Progress) -> Control;
}

/// How far a long effect is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is at work.
    pub what: String,
    /// For how long.
    pub elapsed_ms: u64,
    /// The last line it printed.
    pub last_line: String,
}

/// What is to become of a long effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It may go on.
    Continue,
    /// Somebody cancelled the run.
    Cancel,
    LeaseLost,
}

/// Remembers what happened. What `append` confirmed survives a crash.
pub trait Ledger {
    /// All records, oldest first.
    fn records(&self) -> &[Record];

    /// Adds `event` after the last record; it is on disk when this returns.
    fn append(&mut self, event: Event) -> Result<(), PortError>;

    /// The end of the chain.
    fn head(&self) -> Head;
}

/// Knows who holds what now.
pub trait Registry {
    /// Asks for a scope, all or nothing; asking again for the same run changes nothing.
    fn acquire(&mut self, request: &LeaseRequest) -> Result<Acquired, PortError>;

    /// Prolongs the lease; false if it is lost.
    fn renew(&mut self, run_id: &str, fence: u64, expires_at: i64) -> Result<bool, PortError>;

    /// Gives the scope back; nothing happens if it is not held.
    fn release(&mut self, run_id: &str) -> Result<(), PortError>;

    /// Notes the end of a sealed chain, so that cutting it off later is seen.
    fn pin(&mut self, run_id: &str, head: &Head) -> Result<(), PortError>;

    /// Notes the end of the chain after the seal, which only moves forward.
    fn pin_after(&mut self, run_id: &str, head: &Head) -> Result<(), PortError>;

    /// The ends that were noted.
    fn pinned(&mut self, run_id: &str) -> Result<Pins, PortError>;
}

/// Keeps the files of one run.
///
/// A file that was confirmed survives a crash, whole; writing the same file again replaces it.
pub trait Bundle {
    /// Writes these files. After a failure some of them may be there, each of them whole.
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError>;

    /// Writes the file `name`.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        self.put_all(&[(name.to_owned(), bytes.to_vec())])
    }

    /// The file `name`, if it is there.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError>;

    /// Every file that is there, with its length and SHA-256, sorted by name.
    fn list(&self) -> Result<Vec<Kept>, PortError>;

    /// Removes what a crash left of files that never were whole.
    fn tidy(&mut self) -> Result<(), PortError>;
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name in the bundle.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// Signs statements.
pub trait Signer {
    /// The envelope that holds `statement` and the signature.
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError>;

    /// The keys whose statements count here: our own, and those that the user trusts.
    fn trusted(&self) -> &[PublicKey];
}

/// Sees the structure of source code.
///
/// Reads what git tracks below `root`, and new files that it does not ignore, from disk. Equal
/// trees and settings give equal reports.
pub trait Lens {
    /// Analyses the tree at `root`.
    fn analyze(&self, root: &Path, settings: &Settings) -> Result<Report, PortError>;
}

/// Tells the time.
pub trait Clock {
    /// RFC 3339 in UTC.
    fn timestamp(&self) -> String;

    /// Milliseconds since 1970.
    fn millis(&self) -> i64;
}

/// Looks on, for a person.
pub trait Observer {
    /// Something is about to begin; the answer says whether somebody wants it not to.
    fn begins(&mut self, state: &State, step: Step) -> ObserverChoice;

    /// Who wants the run to end, once somebody does.
    fn cancel(&mut self) -> Option<Cancel>;

    /// A gate has spoken.
    fn judged(&mut self, gate: Gate, verdict: &Verdict);

    /// A long effect goes on; the answer says whether somebody wants it to end.
    fn goes_on(&mut self, progress: &Progress) -> ObserverChoice;
}

/// What the person who looks on wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverChoice {
    GoOn,
    /// Cancel the run.
    Cancel,
}
