//! The ports of the engine: machine, memory, time, keys and the observer.
//!
//! A port is named for its role, an implementation for its technology.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::bundle::verify::Pins;
use provost_core::agent::event::Event as AgentEvent;
use provost_core::bundle::key::PublicKey;
use provost_core::checkout::{CheckoutState, Moved};
use provost_core::children::{ChildEnd, FamilyMessage, PackageV1Record};
use provost_core::code::{Code, Coded};
use provost_core::lease::{Acquired, Lease, LeaseRequest};
use provost_core::object::Oid;
use provost_core::package::Package;
use provost_core::path::RawPath;
use provost_core::question::{AgentQuestion, Permission, QuestionAnswer, QuestionKind};
use provost_core::record::{self, Event, Head, Record};
use provost_core::run::fact::{
    AgentRun, Cancel, Capture, Cleaned, Fact, Layered, Names, Opened, Placed, Published, ReviewRun,
    SandboxTest, TestRun,
};
use provost_core::run::{Gate, State, Step, effect};
use provost_core::verdict::Verdict;

/// Why a port could not carry out a call.
#[derive(Debug)]
pub struct PortError {
    /// The rule behind the failure; `provost explain CODE` prints its page.
    pub code: Code,
    pub reason: String,
    /// What to do about it, when the page of the code does not say enough.
    pub hint: Option<String>,
    /// The error behind it, with its sources.
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

impl<E: Coded + Send + Sync + 'static> From<E> for PortError {
    fn from(error: E) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self {
            hint,
            ..Self::of(error.code(), error)
        }
    }
}

impl PortError {
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
            Some(hint) => verdict.with_hint(hint),
            None => verdict,
        }
    }
}

/// Carries out effects on the machine, for one run.
///
/// Everything but [`Host::agent`] may be called twice: after a crash the driver cannot know whether
/// a call took effect. When a call that runs a sandbox returns, every process of it is dead.
pub trait Host {
    /// Keeps the base commit of a run by a ref of Provost, before any record names it.
    fn keep_base(&mut self, run_id: &str, base: &Oid) -> Result<(), PortError>;

    /// Keeps the tree of work that exists already, before any record names it.
    fn keep_tree(&mut self, tree: &Oid, keep: &effect::Keep) -> Result<(), PortError>;

    /// Takes hold of the prepared layers of a tree, and builds those that are missing.
    fn prepare(
        &mut self,
        order: &effect::Prepare,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Layered>, PortError>;

    /// Makes the private directory of an attempt at the base commit; an existing one is replaced.
    fn workspace(&mut self, order: &effect::Workspace) -> Result<Placed, PortError>;

    /// Runs probes that try to get out of the sandboxes of the run, with the same profiles.
    fn selftest(&mut self, order: &effect::Selftest) -> Result<SandboxTest, PortError>;

    /// Runs the agent until it exits or `watch` ends it.
    fn agent(
        &mut self,
        agent: &effect::AgentEffect,
        watch: &mut dyn Watch,
    ) -> Result<AgentRun, PortError>;

    /// Turns the files that the agent left into a tree that a ref of Provost keeps.
    fn capture(&mut self, order: &effect::Capture) -> Result<Capture, PortError>;

    /// Runs the reviewer on exactly one tree until it exits or `watch` ends it.
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

    /// Waits for `time`, or less if `watch` ends it; says which.
    fn pause(&mut self, time: Duration, watch: &mut dyn Watch) -> Result<Control, PortError>;

    /// Makes a branch of Provost with one commit of exactly the candidate.
    fn publish(&mut self, order: &effect::Publish) -> Result<Published, PortError>;

    /// Saves what no ref keeps, then removes the workspaces that are listed.
    fn clean(&mut self, order: &effect::Clean) -> Result<Cleaned, PortError>;

    /// `text` without the secrets that this machine knows; `None` if it contains none.
    fn hide(&self, text: &str) -> Option<String>;

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

/// Watches a long effect, and can end it.
pub trait Watch {
    /// Called several times a second.
    fn tick(&mut self, progress: &Progress) -> Control;

    /// Asks whether something may happen that the program does not have, and reads the answer.
    ///
    /// Called again with each tick while the answer is [`Permission::Open`]. Only an agent of a run
    /// can ask; the answer to all others is no.
    /// `reason` is what the program says about it.
    fn ask(&mut self, _kind: QuestionKind, _content: &str, _reason: &str) -> Permission {
        Permission::No("questions are not asked here".to_owned())
    }

    /// The run as it is recorded so far, if its agent may ask the broker.
    fn state(&self) -> Option<&State> {
        None
    }

    /// Records what a child does while the agent works; `fact` holds no secret.
    fn note(&mut self, fact: Fact) -> Result<(), PortError> {
        let (event, _) = record::tagged(&fact);
        Err(PortError::new(
            Code::Bug,
            format!("{event} cannot stand here"),
        ))
    }
}

/// Drives the runs of children, beside the run of their parent.
pub trait ChildRunner: fmt::Debug + Send {
    /// A fresh id for a run.
    fn name(&mut self) -> Result<String, PortError>;

    /// Begins the run `names`; its first event is `opened`.
    fn begin(&mut self, names: Names, opened: Opened) -> Result<(), PortError>;

    /// The runs that ended since the last call, after at most `wait`.
    fn ended(&mut self, wait: Duration) -> Vec<ChildCame>;

    /// Asks the driver of a run to end it; it still comes by [`ChildRunner::ended`].
    fn cancel(&mut self, run_id: &str, reason: &str) -> Result<(), PortError>;

    /// Passes on `message`, which the run `from` sent to its peer; nothing if that has ended.
    fn send(&mut self, from: &str, message: &FamilyMessage);

    /// The messages that came for this run since the last call, as it receives them.
    fn received(&mut self) -> Vec<FamilyMessage>;

    /// What version 1 derives for a child with `package`; `None` if that has no such form.
    fn package_v1(&self, parent: &Package, child: &Package) -> Option<PackageV1Record>;
}

/// The run of a child that ended.
#[derive(Debug)]
pub struct ChildCame {
    pub run_id: String,
    /// Its end, or why it has none.
    pub end: Result<ChildEnd, Verdict>,
    /// Its patch, if its gates let it pass and it changed something.
    pub patch: Option<Vec<u8>>,
    /// What its agent said at its end.
    pub said: Vec<u8>,
}

/// The progress of a long effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The program or step that is running.
    pub what: String,
    pub elapsed_ms: u64,
    /// The last line that it printed.
    pub last_line: String,
    /// What it does, if it is an agent whose program is known.
    pub agent: Option<AgentProgress>,
}

/// What a known agent does while it works, as it reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentProgress {
    /// Its last tools, oldest first.
    pub tools: Vec<AgentEvent>,
    /// Its last message, or why its model does not work.
    pub says: String,
    /// Tokens and price so far, against its limit.
    pub spent: Option<String>,
}

/// Whether a long effect continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Continue,
    /// The run is cancelled.
    Cancel,
    LeaseLost,
}

/// The append-only ledger. A record that `append` confirmed survives a crash.
pub trait Ledger {
    /// All records, oldest first.
    fn records(&self) -> &[Record];

    /// Adds `event` after the last record; it is on disk when this returns.
    fn append(&mut self, event: Event) -> Result<(), PortError>;

    fn head(&self) -> Head;
}

/// Knows which run holds which scope.
pub trait Registry {
    /// Asks for a scope, all or nothing; asking again for the same run changes nothing.
    fn acquire(&mut self, request: &LeaseRequest) -> Result<Acquired, PortError>;

    /// Prolongs the lease; false if it is lost.
    fn renew(&mut self, run_id: &str, fence: u64, expires_at: i64) -> Result<bool, PortError>;

    /// Gives the scope back; does nothing if it is not held.
    fn release(&mut self, run_id: &str) -> Result<(), PortError>;

    /// Takes exactly this lease away; false if it is not held any more.
    fn release_one(&mut self, run_id: &str, fence: u64) -> Result<bool, PortError>;

    /// All leases, also those that have expired.
    fn leases(&mut self) -> Result<Vec<Lease>, PortError>;

    /// Stores the end of a sealed chain, so that cutting the chain is detected.
    fn pin(&mut self, run_id: &str, head: &Head) -> Result<(), PortError>;

    /// Stores the end of the chain after the seal; it only moves forward.
    fn pin_after(&mut self, run_id: &str, head: &Head) -> Result<(), PortError>;

    /// The ends that were stored.
    fn pinned(&mut self, run_id: &str) -> Result<Pins, PortError>;
}

/// The files of one run.
///
/// A file that was confirmed survives a crash, whole; writing the same file again replaces it.
pub trait Bundle {
    /// Writes these files. After a failure some of them may exist, each of them whole.
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError>;

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        self.put_all(&[(name.to_owned(), bytes.to_vec())])
    }

    /// The file `name`; `None` if there is none.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError>;

    /// Every file with its length and SHA-256, sorted by name.
    fn list(&self) -> Result<Vec<Kept>, PortError>;

    /// Removes incomplete files that a crash left.
    fn tidy(&mut self) -> Result<(), PortError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

pub trait Signer {
    /// The envelope that holds `statement` and the signature.
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError>;

    /// The keys whose statements count: this machine's own, and those that the user trusts.
    fn trusted(&self) -> &[PublicKey];
}

/// Reads the files of the shared checkout.
pub trait Checkout {
    fn workspace(&self) -> Result<CheckoutState, PortError>;

    /// The differences between two trees; `None` stands for the empty tree.
    fn moved(&self, before: Option<&str>, after: Option<&str>) -> Result<Moved, PortError>;

    /// The trees of the checked-out commit and its ancestors; of a long history only the newest.
    fn trees(&self) -> Result<BTreeSet<String>, PortError>;

    fn tree_of(&self, rev: &str) -> Result<String, PortError>;

    /// The bytes of the regular file `path` below `root`, at most `most`, and never through a link;
    /// `None` if there is no such file.
    fn read(&self, root: &str, path: &str, most: u64) -> Result<Option<Vec<u8>>, PortError>;

    /// The first component of `path` that is a symbolic link; `None` if there is no link, or no
    /// such path.
    fn link_on(&self, path: &str) -> Result<Option<String>, PortError>;

    /// The directory of the analysed root `root` on this machine.
    fn place(&self, root: &str) -> PathBuf;
}

pub trait FreshNames {
    /// An unused name for an intent; names sort by time.
    fn intent_id(&self, now: i64) -> Result<String, PortError>;
}

pub trait Clock {
    /// RFC 3339 in UTC.
    fn timestamp(&self) -> String;

    /// Milliseconds since 1970.
    fn millis(&self) -> i64;
}

/// The answers that other processes of this user leave for the questions of an agent.
pub trait Answers {
    /// The answer to the question `digest`, if this user left one.
    fn answer(&self, digest: &str) -> Option<QuestionAnswer>;

    /// The answer to the question `digest` is recorded, or does not count.
    fn forget(&self, digest: &str);
}

/// Shows the progress of a run to a user, and passes on the user's cancel request.
pub trait Observer {
    /// `step` is about to begin; the answer says whether the user cancels it.
    fn begins(&mut self, state: &State, step: Step) -> ObserverChoice;

    /// The cancel request, once there is one.
    fn cancel(&mut self) -> Option<Cancel>;

    /// A gate has given its verdict.
    fn judged(&mut self, gate: Gate, verdict: &Verdict);

    /// The agent asks; a person is to be shown the question.
    fn asked(&mut self, _run_id: &str, _question: &AgentQuestion) {}

    /// A long effect is still active; the answer says whether the user cancels it.
    fn progressed(&mut self, progress: &Progress) -> ObserverChoice;
}

/// The choice of the user who watches a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverChoice {
    Continue,
    Cancel,
}
