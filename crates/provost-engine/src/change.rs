//! Lets agents that share a checkout declare, edit and finish: reads, decides, writes down.
//!
//! # Invariants
//!
//! - Who may edit is decided and written in one turn of the registry that nobody can interrupt; the
//!   checkout is looked at before it, outside of any lock.
//! - A refused start holds nothing. A finish that is not accepted takes nothing away.
//! - What an intent began from is on disk before anybody sees that intent.
//! - Every record of a chain is followed by a new seal; a file is on disk before the record that
//!   names it.
//! - A chain begins with what was declared, whoever had to write that down.

mod analyse;
mod finish;
mod manage;
pub mod ports;
mod queries;
mod recovery;
mod start;
mod unfinished_work;

use provost_core::bundle::change as evidence;
use provost_core::bundle::layout::ATTESTATION;
use provost_core::code::Code;
use provost_core::intent::claims::TextError;
use provost_core::intent::course::Happening;
use provost_core::intent::record::{Intent, State, Viewer};
use provost_core::intent::run::NoRun;
use provost_core::intent::scope::ScopeError;
use provost_core::lease::Owner;
use provost_core::record::Record;
use serde_json::{Value, json};

pub use analyse::analyse;
pub use finish::finish;
pub use manage::{check, clear, get, list, promote, renew, renew_all};
pub use queries::{blast, budget, claims, compare, gates, make_receipt, meant, touched, verify};
pub use recovery::{gc, recover, reset};
pub use start::start;

use crate::ports::{Clock, Lens, PortError, Signer};
use ports::{AnalysisStore, ChangeEvidence, Checkout, FreshNames, IntentRegistry};

/// Who asks: one agent from when it came to when it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub me: Owner,
    /// What it calls itself.
    pub label: String,
    /// When it came, in seconds since 1970.
    pub epoch: i64,
    /// How long its intents last, if it did not say; from the environment.
    pub ttl: Option<i64>,
    /// How long its leases last, if it did not say; from the environment.
    pub lease: Option<i64>,
    /// Whether dirt that is nobody's keeps a change from ending.
    pub strict_finish: bool,
}

/// Everything a request may touch.
pub struct Ports<'a> {
    /// Who is at work.
    pub registry: &'a mut dyn IntentRegistry,
    /// The files.
    pub checkout: &'a dyn Checkout,
    /// The structure of the code.
    pub lens: &'a dyn Lens,
    /// The runs of the session.
    pub shelf: &'a mut dyn AnalysisStore,
    pub chronicle: &'a mut dyn ChangeEvidence,
    /// The key.
    pub signer: &'a dyn Signer,
    /// The time.
    pub clock: &'a dyn Clock,
    /// New names.
    pub names: &'a dyn FreshNames,
    /// Whether somebody still lives.
    pub alive: &'a dyn Fn(&Owner) -> bool,
}

/// Why a request gets no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The request itself is wrong; nothing was done.
    #[error("{0}")]
    Request(String),
    /// Something outside failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<ScopeError> for ChangeError {
    fn from(error: ScopeError) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<NoRun> for ChangeError {
    fn from(error: NoRun) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<TextError> for ChangeError {
    fn from(error: TextError) -> Self {
        Self::Request(error.to_string())
    }
}

/// What the owner of an intent whose time is over can do.
const RENEW: &str = "the time of this intent is over: renew it (manage_change_intent, \
                     action=\"renew\"), or analyse the repository and start again with \
                     dirty_scope_policy=\"continue_own_wip\"; either way the work is judged from \
                     where it began";

/// The refusal of a request about an intent that is closed.
fn is_closed<T>(intent: &Intent) -> Result<T, ChangeError> {
    let (id, state) = (&intent.intent_id, intent.state.name());
    match intent.state {
        State::Expired => wrong(format!("the intent `{id}` is {state}; {RENEW}")),
        _ => wrong(format!(
            "the intent `{id}` is closed ({state}); start another one"
        )),
    }
}

/// A request that cannot be answered.
fn wrong<T>(words: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError::Request(words.into()))
}

impl Ports<'_> {
    fn viewer<'b>(&'b self, session: &'b Session, now: i64) -> Viewer<'b> {
        Viewer {
            me: &session.me,
            now,
            alive: self.alive,
        }
    }

    /// The intent `intent_id` of this session, open or closed, as it is now (R5).
    fn own(&mut self, session: &Session, intent_id: &str) -> Result<Intent, ChangeError> {
        let known = self.registry.look(Some(intent_id))?;
        let found = known
            .intents
            .into_iter()
            .find(|intent| intent.intent_id == intent_id && intent.owner == session.me);
        match found {
            Some(intent) => Ok(intent.at(self.clock.millis())),
            None => wrong(format!(
                "this session has no intent `{}`",
                intent_id.chars().take(80).collect::<String>()
            )),
        }
    }

    /// Writes into the chain of an intent, with the files that go with it, and seals it. A chain
    /// that its owner left without a beginning gets it first.
    fn note(
        &mut self,
        what: Happening,
        intent: &Intent,
        facts: Value,
        files: &[(&str, String)],
    ) -> Result<(), PortError> {
        self.begin(intent)?;
        self.append(what, &intent.intent_id, facts, files)
    }

    /// Sees to it that the chain of an intent has a first record: its owner may have died between
    /// declaring it and writing it down.
    fn begin(&mut self, intent: &Intent) -> Result<(), PortError> {
        if self.is_begun(&intent.intent_id)? {
            return Ok(());
        }
        start::begin(self, intent)
    }

    /// Whether the chain of an intent has a first record. Its seal is asked for, which comes last.
    fn is_begun(&self, intent_id: &str) -> Result<bool, PortError> {
        Ok(self.chronicle.get(intent_id, ATTESTATION)?.is_some())
    }

    /// Adds a record to a chain, and seals it.
    fn append(
        &mut self,
        what: Happening,
        intent_id: &str,
        facts: Value,
        files: &[(&str, String)],
    ) -> Result<(), PortError> {
        let facts = evidence::naming(facts, files);
        let event = what.event(intent_id, self.clock.timestamp(), facts);
        let signer = self.signer;
        let seal = |records: &[Record]| {
            let statement = evidence::state(records).ok_or_else(|| altered("the chain"))?;
            signer.sign(evidence::spelled(&statement).as_bytes())
        };
        let head = self.chronicle.append(intent_id, event, &seal)?;
        self.registry.pin_chain(intent_id, &head)
    }

    /// Writes down that intents were closed, as far as their chains can still be written to: who
    /// damaged one must not keep everybody else from working, and verification tells of it.
    fn note_closed(&mut self, closed: &[Intent]) {
        for intent in closed {
            let facts = json!({ "state": intent.state.name() });
            let _ = self.note(Happening::Closed, intent, facts, &[]);
        }
    }

    /// Keeps a document of an intent; gives its name and its digest.
    fn keep(
        &mut self,
        intent_id: &str,
        name: &'static str,
        document: &Value,
    ) -> Result<(&'static str, String), PortError> {
        self.chronicle.put(intent_id, name, &bytes(document))?;
        Ok((name, evidence::digest(document)))
    }
}

/// A document that is kept, as its bytes.
fn bytes(value: &Value) -> Vec<u8> {
    provost_core::json::canonical(value).into_bytes()
}

/// A failure of reading back what we wrote.
fn altered(what: &str) -> PortError {
    PortError::new(
        Code::EvidenceAltered,
        format!("{what} is not what was written"),
    )
}
