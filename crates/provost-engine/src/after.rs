//! Appends to the second chain of a sealed run, and signs the records that need a signature.
//!
//! # Invariants
//!
//! - A landing or replay begins with evidence that was verified just then, while this process holds
//!   the lock of the run.
//! - A statement vouches only for the records that the same landing or replay appended. Any process
//!   may have written the records before.

use crate::bundle::after::{
    COMMIT_WRITTEN, Candidate, LANDED, LandCommit, Landing, MERGED, REPLAYED, Replay, STATEMENT,
};
use crate::bundle::statement::{
    Acceptance, CommitPredicate, LandingPredicate, LedgerHead, MergePredicate, ReplayPredicate,
    Vouched,
};
use crate::bundle::verify::{self, After, Files, Pins};
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{ATTESTATION, LEDGER};
use provost_core::bundle::report::Time;
use provost_core::code::Code;
use provost_core::json::canonical;
use provost_core::path::RawPath;
use provost_core::record::{self, Event, Head, Level};
use provost_core::run::fact::{Fact, Judgement};
use provost_core::run::{Gate, State};
use provost_core::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ports::{
    Clock, Control, Ledger, Observer, ObserverChoice, PortError, Progress, Registry, Signer, Watch,
};

/// The bundle of a sealed run; no other process writes to it.
pub trait Sealed {
    fn files(&self) -> Result<Box<dyn Files>, PortError>;

    /// The chain after the seal, which continues `head`. A last line that a crash left incomplete
    /// is cut off.
    fn after(&mut self, head: Head) -> Result<Box<dyn Ledger>, PortError>;

    /// Writes the file `name`, whole or not at all. A file that was sealed is never written.
    fn put_later(&mut self, name: &str, bytes: &[u8]) -> Result<(), PortError>;
}

/// The ports of an operation on a sealed run. `target` carries the operation out.
pub struct AfterPorts<'a, T: ?Sized> {
    pub target: &'a mut T,
    /// The sealed files, and the chain after them.
    pub sealed: &'a mut dyn Sealed,
    /// Knows the pinned ends of both chains.
    pub registry: &'a mut dyn Registry,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
    pub observer: &'a mut dyn Observer,
}

/// One operation of one process on one sealed run.
pub(crate) struct AfterSeal<'p, 'a, T: ?Sized> {
    pub(crate) ports: &'p mut AfterPorts<'a, T>,
    pub(crate) state: State,
    pub(crate) after: Box<dyn Ledger>,
    sealed: LedgerHead,
    /// The number of the first record of this operation.
    from: u64,
}

impl<'p, 'a, T: ?Sized> AfterSeal<'p, 'a, T> {
    /// Verifies the run `run_id` and begins to append; also gives what the earlier records say.
    ///
    /// `fits` may refuse the run before it is verified and before anything is written.
    pub(crate) fn begin(
        ports: &'p mut AfterPorts<'a, T>,
        run_id: &str,
        fits: impl FnOnce(&State) -> Result<(), PortError>,
    ) -> Result<(Self, After), PortError> {
        let (state, head) = read(&*ports.sealed.files()?, run_id)?;
        fits(&state)?;
        let pins = ports.registry.pinned(run_id)?;
        if pins.ledger.is_none() {
            let reason =
                format!("the ledger of {run_id} has a seal that the registry does not know");
            return Err(PortError::new(Code::EvidenceIncomplete, reason));
        }
        let after = ports.sealed.after(Head::after(&head.hash))?;
        let known = verified(&*ports.sealed.files()?, ports.signer.trusted(), &pins)?;
        let sealed = LedgerHead::of(&head).ok_or_else(|| bug("the sealed ledger is empty"))?;
        let after_seal = Self {
            ports,
            state,
            sealed,
            from: after.head().next,
            after,
        };
        Ok((after_seal, known))
    }

    /// Appends the signed result of a replay.
    pub(crate) fn replayed(&mut self, replay: &Replay) -> Result<(), PortError> {
        let at = self.now()?;
        let captured = self.state.captured.as_ref();
        let tree = captured.map_or(&self.state.opened.base_tree, |captured| &captured.tree);
        let predicate = ReplayPredicate {
            run_id: self.state.names.run_id.clone(),
            sealed_head: self.sealed.clone(),
            vouches: self.vouches(),
            tree: tree.clone(),
            replay: replay.clone(),
            replayed_at: at.clone(),
        };
        self.signed(REPLAYED, replay, &predicate.state(), at)
    }

    /// Appends, signed, that `commit` was written and will land.
    pub(crate) fn written(&mut self, commit: &LandCommit) -> Result<(), PortError> {
        let at = self.now()?;
        let predicate = CommitPredicate {
            run_id: self.state.names.run_id.clone(),
            sealed_head: self.sealed.clone(),
            vouches: self.vouches(),
            tree: commit.tree.clone(),
            parent: commit.parent.clone(),
            written_at: at.clone(),
        };
        let statement = predicate.state(commit);
        self.signed(COMMIT_WRITTEN, commit, &statement, at)
    }

    /// Appends, signed, that the target holds `landing`.
    pub(crate) fn landed(&mut self, landing: &Landing) -> Result<(), PortError> {
        let at = self.now()?;
        let predicate = LandingPredicate {
            run_id: self.state.names.run_id.clone(),
            sealed_head: self.sealed.clone(),
            vouches: self.vouches(),
            tree: landing.tree.clone(),
            parent: landing.parent.clone(),
            target: landing.target.clone(),
            landed_at: at.clone(),
        };
        let statement = predicate.state(landing.commit.clone());
        self.signed(LANDED, landing, &statement, at)
    }

    /// Appends, signed, that the gates accepted the merge `candidate`.
    pub(crate) fn merged(
        &mut self,
        candidate: &Candidate,
        acceptance: Acceptance,
    ) -> Result<(), PortError> {
        let at = self.now()?;
        let predicate = MergePredicate {
            run_id: self.state.names.run_id.clone(),
            sealed_head: self.sealed.clone(),
            vouches: self.vouches(),
            candidate: candidate.clone(),
            acceptance,
            merged_at: at.clone(),
        };
        self.signed(MERGED, candidate, &predicate.state(), at)
    }

    /// Appends a gate's verdict; a refusal ends the landing.
    pub(crate) fn settle(&mut self, gate: Gate, verdict: Verdict) -> Result<(), PortError> {
        self.ports.observer.judged(gate, &verdict);
        let refusal = PortError::new(verdict.code, verdict.reason.clone());
        let allow = verdict.allow;
        let fact = Fact::judged(Judgement { gate, verdict });
        let at = self.ports.clock.timestamp();
        self.append(fact.event(&self.state.names, self.state.attempt, at))?;
        if allow { Ok(()) } else { Err(refusal) }
    }

    /// Appends a record that needs no signature of its own.
    pub(crate) fn note(&mut self, name: &str, value: &impl Serialize) -> Result<(), PortError> {
        let event = self.event(name, fields(value)?, self.ports.clock.timestamp());
        self.append(event)
    }

    /// Appends a record together with the statement that gives it its meaning.
    fn signed(
        &mut self,
        name: &str,
        value: &impl Serialize,
        statement: &impl Serialize,
        at: Time,
    ) -> Result<(), PortError> {
        let wrong = |error: serde_json::Error| PortError::of(Code::Bug, error);
        let statement = serde_json::to_value(statement).map_err(wrong)?;
        let envelope = self.ports.signer.sign(canonical(&statement).as_bytes())?;
        let envelope = serde_json::from_slice::<Value>(&envelope).map_err(wrong)?;
        let mut payload = fields(value)?;
        payload.insert(STATEMENT.to_owned(), envelope);
        self.append(self.event(name, payload, at.into()))
    }

    /// An event that belongs to no attempt.
    fn event(&self, name: &str, payload: Map<String, Value>, ts: String) -> Event {
        let names = &self.state.names;
        Event {
            ts,
            level: Level::Info,
            event_type: name.to_owned(),
            run_id: names.run_id.clone(),
            task_id: Some(names.task_id.clone()),
            attempt: None,
            payload,
            trace_id: names.trace_id.clone(),
        }
    }

    /// Adds a record, then pins it: the pin may lag behind the chain, and never leads.
    fn append(&mut self, event: Event) -> Result<(), PortError> {
        self.after.append(event)?;
        let head = self.after.head();
        let run_id = &self.state.names.run_id;
        self.ports.registry.pin_after(run_id, &head)
    }

    /// The records that a statement in the next record vouches for.
    fn vouches(&self) -> Vouched {
        let head = self.after.head();
        Vouched {
            from: self.from,
            seq: head.next,
            prev: head.hash,
        }
    }

    pub(crate) fn now(&self) -> Result<Time, PortError> {
        let now = self.ports.clock.timestamp();
        now.try_into().map_err(|_| bug("the clock gives no time"))
    }
}

/// The state of the sealed run, and the end of its ledger.
pub(crate) fn read(files: &dyn Files, run_id: &str) -> Result<(State, Head), PortError> {
    let altered = |what: String| {
        let reason = format!("the ledger of {run_id} cannot be used: {what}");
        PortError::new(Code::EvidenceAltered, reason)
    };
    let bytes = files.read(&RawPath::new(LEDGER)).map_err(altered)?;
    let chain = record::read(&bytes, Head::genesis()).map_err(|e| altered(e.to_string()))?;
    let state = State::fold(&chain.records).map_err(|e| altered(e.to_string()))?;
    if !files.names().contains(&RawPath::new(ATTESTATION)) {
        return Err(unfinished(run_id));
    }
    Ok((state, chain.head))
}

pub(crate) fn unfinished(run_id: &str) -> PortError {
    PortError::new(Code::RunUnfinished, format!("{run_id} has not ended"))
}

/// What followed the seal, if the whole bundle verifies.
pub(crate) fn verified(
    files: &dyn Files,
    trusted: &[PublicKey],
    pins: &Pins,
) -> Result<After, PortError> {
    let report = verify::verify(files, trusted, pins, None);
    let verdict = report.verdict();
    if verdict.allow {
        Ok(report.after)
    } else {
        Err(PortError::new(verdict.code, verdict.reason))
    }
}

/// A watch that renews no lease: a sealed run holds none.
pub(crate) struct UnleasedWatch<'a>(pub(crate) &'a mut dyn Observer);

impl Watch for UnleasedWatch<'_> {
    fn tick(&mut self, progress: &Progress) -> Control {
        match self.0.progressed(progress) {
            ObserverChoice::Continue => Control::Continue,
            ObserverChoice::Cancel => Control::Cancel,
        }
    }
}

fn bug(what: &str) -> PortError {
    PortError::new(Code::Bug, what)
}

fn fields(value: &impl Serialize) -> Result<Map<String, Value>, PortError> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(bug("a payload is no object")),
        Err(error) => Err(PortError::of(Code::Bug, error)),
    }
}
