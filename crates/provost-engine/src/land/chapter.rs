//! Writes what one landing does to the second chain, and signs what matters.
//!
//! A statement vouches for the records of its own chapter only: what was in the chain before may
//! be anybody's.

use provost_core::bundle::after::{Candidate, LANDED, Landing, MERGED, STATEMENT};
use provost_core::bundle::report::Time;
use provost_core::bundle::statement::{
    Acceptance, LandingPredicate, LedgerHead, MergePredicate, Vouched,
};
use provost_core::code::Code;
use provost_core::json::canonical;
use provost_core::record::{Event, Head, Level};
use provost_core::run::fact::{Fact, Judgement};
use provost_core::run::{Gate, State};
use provost_core::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{LandPorts, Landed, When};
use crate::ports::{Ledger, PortError};

/// One landing of one run.
pub(super) struct Chapter<'p, 'a> {
    pub(super) ports: &'p mut LandPorts<'a>,
    pub(super) state: State,
    pub(super) after: Box<dyn Ledger>,
    sealed: LedgerHead,
    /// The number of its first record.
    from: u64,
}

impl<'p, 'a> Chapter<'p, 'a> {
    /// Begins a chapter at the end of `after`, of the run whose ledger ends at `head`.
    pub(super) fn new(
        ports: &'p mut LandPorts<'a>,
        state: State,
        head: &Head,
        after: Box<dyn Ledger>,
    ) -> Result<Self, PortError> {
        let sealed = LedgerHead::of(head).ok_or_else(|| bug("the sealed ledger is empty"))?;
        Ok(Self {
            ports,
            state,
            sealed,
            from: after.head().next,
            after,
        })
    }

    /// Writes down that the target holds `landing`.
    pub(super) fn landed(&mut self, landing: Landing) -> Result<Landed, PortError> {
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
        self.signed(LANDED, &landing, &statement, at)?;
        Ok(Landed {
            landing,
            when: When::Now,
        })
    }

    /// Writes down that the gates accepted the merge `candidate`.
    pub(super) fn merged(
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

    /// Writes a gate's answer down; a refusal ends the landing.
    pub(super) fn settle(&mut self, gate: Gate, verdict: Verdict) -> Result<(), PortError> {
        self.ports.observer.judged(gate, &verdict);
        let refusal = PortError::new(verdict.code, verdict.reason.clone());
        let allow = verdict.allow;
        let fact = Fact::judged(Judgement { gate, verdict });
        let at = self.ports.clock.timestamp();
        self.append(fact.event(&self.state.names, self.state.attempt, at))?;
        if allow { Ok(()) } else { Err(refusal) }
    }

    /// Writes down what needs no signature of its own.
    pub(super) fn note(&mut self, name: &str, value: &impl Serialize) -> Result<(), PortError> {
        let event = self.event(name, fields(value)?, self.ports.clock.timestamp());
        self.append(event)
    }

    /// Writes down what means nothing without its statement.
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
        let envelope = serde_json::from_slice(&envelope).map_err(wrong)?;
        let mut payload = fields(value)?;
        payload.insert(STATEMENT.to_owned(), envelope);
        self.append(self.event(name, payload, at.into()))
    }

    /// Something that belongs to no attempt.
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

    /// Adds a record, then pins it: the pin may lag, and never leads.
    fn append(&mut self, event: Event) -> Result<(), PortError> {
        self.after.append(event)?;
        let head = self.after.head();
        let run_id = &self.state.names.run_id;
        self.ports.registry.pin_after(run_id, &head)
    }

    /// What a statement in the next record vouches for.
    fn vouches(&self) -> Vouched {
        let head = self.after.head();
        Vouched {
            from: self.from,
            seq: head.next,
            prev: head.hash,
        }
    }

    fn now(&self) -> Result<Time, PortError> {
        let now = self.ports.clock.timestamp();
        now.try_into().map_err(|_| bug("the clock gives no time"))
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
