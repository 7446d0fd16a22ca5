//! Says before a run begins what its gates would answer before its agent starts.

use provost_core::agent::Adapter;
use provost_core::agent::provider::FoundLogins;
use provost_core::approval::Widening;
use provost_core::contract::document::Document;
use provost_core::lease::Owner;
use provost_core::run::fact::Opened;
use provost_core::verdict::Verdict;

use super::{Origin, Request, RequestedAgent, opening};
use crate::ports::PortError;

/// The answers that a run of a contract would get before its agent starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Preflight {
    /// The verdict of its policy gate.
    pub verdict: Verdict,
    /// The questions it would wait for, if that gate lets it pass.
    pub asks: Vec<Widening>,
    /// The first record that the run would have.
    pub opened: Opened,
}

/// The answers for a run of `document`, read from a file, with `agent`. Without an agent, the one
/// that fits the contract best is used, so that every agent would get the same refusal.
pub fn foresee(
    origin: &dyn Origin,
    document: &Document,
    agent: Option<RequestedAgent>,
) -> Result<Preflight, PortError> {
    let known = agent.is_some();
    let command = RequestedAgent::Typed("agent".to_owned());
    let first = begin(origin, document, agent.unwrap_or(command))?;
    if known || first.verdict.allow {
        return Ok(first);
    }
    let policy = origin.policy(&first.opened.base_tree)?;
    let adapters = Adapter::programs().map(|adapter| adapter.name().to_owned());
    let mut best = first;
    for name in policy.agents.into_keys().chain(adapters) {
        // An agent that cannot be resolved says nothing about the contract.
        let Ok(other) = begin(origin, document, RequestedAgent::Named(name)) else {
            continue;
        };
        if other.verdict.allow {
            return Ok(other);
        }
        if count(&other.verdict) < count(&best.verdict) {
            best = other;
        }
    }
    Ok(best)
}

/// How many findings a verdict lists.
fn count(verdict: &Verdict) -> usize {
    verdict.findings().len()
}

fn begin(
    origin: &dyn Origin,
    document: &Document,
    agent: RequestedAgent,
) -> Result<Preflight, PortError> {
    let request = Request {
        contract: document.clone(),
        typed: false,
        agent,
        work: None,
        review: None,
        credentials: Vec::new(),
        // Which login the user has decides nothing about the contract.
        logins: FoundLogins::default(),
        workspace: None,
        owner: placeholder_owner(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let opened = opening(origin, request)?;
    Ok(Preflight {
        verdict: opened.judge(),
        asks: opened.widenings.clone(),
        opened,
    })
}

/// A placeholder for the driver of a run that does not begin.
fn placeholder_owner() -> Owner {
    Owner {
        host: String::new(),
        boot: String::new(),
        pid_namespace: String::new(),
        pid: 0,
        started: 0,
    }
}
