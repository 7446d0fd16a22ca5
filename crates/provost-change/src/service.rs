//! Lets agents that share a checkout declare, edit and finish a change.
//!
//! The rules are in `docs/change-control.md`.
//!
//! # Invariants
//!
//! - The registry decides and writes in one turn which intent may edit; no other process can
//!   interrupt it. The checkout is read before that turn, outside of any lock.
//! - A refused start holds nothing. A finish that is not accepted takes nothing away.
//! - The state that an intent began from is on disk before any other agent can see that intent.
//! - Every record of a chain is followed by a new seal; a file is on disk before the record that
//!   names it.
//! - A chain begins with the declaration, even if another process had to write it for the owner.

use crate::analysis::run::NoRun;
use crate::event::IntentEvent;
use crate::evidence;
use crate::finish::claims::TextError;
use crate::finish::decide::StopReason;
use crate::intent::{Intent, State, Viewer};
use crate::next_step::{Audience, NextStep};
use crate::scope::ScopeError;
use provost_core::bundle::layout::ATTESTATION;
use provost_core::code::Code;
use provost_core::lease::Owner;
use provost_core::object::sha256;
use provost_core::record::Record;
use serde::Serialize;
use serde_json::{Value, json};

pub use crate::analysis::perform::analyse;
pub use crate::analysis::queries::{
    blast, budget, claims, compare, gates, make_receipt, meant, touched, verify,
};
pub use crate::finish::perform::finish;
pub use crate::manage::perform::{check, clear, get, list, promote, renew, renew_all};
pub use crate::recover::perform::{gc, recover, reset};
pub use crate::start::perform::start;

use crate::ports::{AnalysisStore, ChangeEvidence, IntentRegistry, Lens};
use crate::start::perform::begin;
use provost_engine::ports::{Checkout, Clock, FreshNames, PortError, Signer};

/// One agent in a shared checkout, from its first request to its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub me: Owner,
    /// The name that the agent gives itself.
    pub label: String,
    /// When its first request came, in seconds since 1970.
    pub epoch: i64,
    /// How many seconds its intents last by default; from the environment.
    pub ttl: Option<i64>,
    /// How many seconds its leases last by default; from the environment.
    pub lease: Option<i64>,
    /// Whether dirty files without an owner keep a change from finishing.
    pub strict_finish: bool,
}

/// The ports of a request.
pub struct Ports<'a> {
    pub registry: &'a mut dyn IntentRegistry,
    pub checkout: &'a dyn Checkout,
    /// Analyses the structure of the code.
    pub lens: &'a dyn Lens,
    /// The analysis runs of the session.
    pub analyses: &'a mut dyn AnalysisStore,
    pub evidence: &'a mut dyn ChangeEvidence,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
    pub names: &'a dyn FreshNames,
    /// Whether the process of an owner is still alive.
    pub alive: &'a dyn Fn(&Owner) -> bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The request itself is wrong; nothing was changed.
    #[error("{0}")]
    Request(String),
    /// A port failed.
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

/// The refusal of a request about a closed intent.
pub(crate) fn is_closed<T>(intent: &Intent) -> Result<T, ChangeError> {
    let (id, state) = (&intent.intent_id, intent.state.name());
    match intent.state {
        State::Expired => {
            let advice = NextStep::After(StopReason::TtlExpired).text(Audience::Tool);
            wrong(format!("the intent `{id}` is {state}; {advice}"))
        }
        _ => wrong(format!(
            "the intent `{id}` is closed ({state}); start another one"
        )),
    }
}

/// A request that is refused because it is wrong.
pub(crate) fn wrong<T>(reason: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError::Request(reason.into()))
}

impl Ports<'_> {
    pub(crate) fn viewer<'b>(&'b self, session: &'b Session, now: i64) -> Viewer<'b> {
        Viewer {
            me: &session.me,
            now,
            alive: self.alive,
        }
    }

    /// The intent `intent_id`, open or closed; an error if it does not belong to this session.
    pub(crate) fn own(
        &mut self,
        session: &Session,
        intent_id: &str,
    ) -> Result<Intent, ChangeError> {
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

    /// Appends to the chain of an intent, with the files that the record names, and seals it. A
    /// chain that has no first record gets it before that.
    pub(crate) fn note(
        &mut self,
        what: IntentEvent,
        intent: &Intent,
        facts: Value,
        files: &[(&str, String)],
    ) -> Result<(), PortError> {
        self.begin(intent)?;
        self.append(what, &intent.intent_id, facts, files)
    }

    /// Writes the first record of a chain if it is missing: the owner may have died after it
    /// declared the intent.
    pub(crate) fn begin(&mut self, intent: &Intent) -> Result<(), PortError> {
        if self.is_begun(&intent.intent_id)? {
            return Ok(());
        }
        begin(self, intent)
    }

    /// Whether the chain of an intent has a first record. Its seal is looked up, which is written
    /// last.
    pub(crate) fn is_begun(&self, intent_id: &str) -> Result<bool, PortError> {
        Ok(self.evidence.get(intent_id, ATTESTATION)?.is_some())
    }

    pub(crate) fn append(
        &mut self,
        what: IntentEvent,
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
        let head = self.evidence.append(intent_id, event, &seal)?;
        self.registry.pin_chain(intent_id, &head)
    }

    /// Appends that intents were closed, to every chain that can still be written. A damaged chain
    /// must not stop other agents; verification reports it.
    pub(crate) fn note_closed(&mut self, closed: &[Intent]) {
        for intent in closed {
            let facts = json!({ "state": intent.state.name() });
            let _ = self.note(IntentEvent::Closed, intent, facts, &[]);
        }
    }

    /// Stores a document of an intent; gives its name and its digest.
    pub(crate) fn keep(
        &mut self,
        intent_id: &str,
        name: &'static str,
        document: &impl Serialize,
    ) -> Result<(&'static str, String), PortError> {
        let bytes = bytes(&serde_json::to_value(document).unwrap_or_default());
        self.evidence.put(intent_id, name, &bytes)?;
        Ok((name, sha256(&bytes)))
    }
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    provost_core::json::canonical(value).into_bytes()
}

/// The error for a stored document that cannot be read back.
pub(crate) fn altered(what: &str) -> PortError {
    PortError::new(
        Code::EvidenceAltered,
        format!("{what} was changed after Provost wrote it"),
    )
}
