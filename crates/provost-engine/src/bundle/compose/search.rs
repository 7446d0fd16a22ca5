//! Writes the evidence of a search: what its agent found, beside what the proxy saw.
//!
//! No claim is called verified on the word of the agent that made it, and nothing is written if
//! the agent left no findings.

use super::{ComposeError, Composer, render, time};
use provost_core::bundle::report::{
    Claim, ClaimStatus, EvidenceBundle, Query, Requester, RequesterRole, Source,
};
use provost_core::contract::document::Role;
use provost_core::net::traffic::Traffic;
use provost_core::run::search;

impl Composer<'_> {
    /// `evidence_bundle.json`, if the run was a search that found something.
    pub(super) fn evidence_bundle(&self) -> Result<Option<Vec<u8>>, ComposeError> {
        let contract = &self.state.opened.contract;
        let agent = self.state.agent.as_ref();
        let found = agent.and_then(|agent| search::findings(contract, &agent.result));
        // What does not parse was refused by the output gate.
        let (Some(agent), Some(Ok(found))) = (agent, found) else {
            return Ok(None);
        };
        let owner = &contract.owner_agent;
        let question = contract.inputs.spec.clone();
        let bundle = EvidenceBundle {
            bundle_id: self.state.names.run_id.clone(),
            created_at: time(&self.state.latest)?,
            requested_by: Requester {
                role: match owner.role {
                    Role::Pm => RequesterRole::Pm,
                    Role::TechLead => RequesterRole::TechLead,
                    Role::Searcher => RequesterRole::Searcher,
                    _ => RequesterRole::Orchestrator,
                },
                agent_id: owner.agent_id.clone(),
            },
            query: Query {
                refined_prompt: found.refined_prompt.unwrap_or_else(|| question.clone()),
                raw_question: question,
                freshness_requirement_days: None,
            },
            sources: found
                .sources
                .into_iter()
                .map(|source| observed(source, &agent.network))
                .collect(),
            claims: found.claims.into_iter().map(unverified).collect(),
            limitations: found.limitations,
            consensus: found.consensus,
            artifacts: None,
        };
        Ok(Some(render(&bundle)?))
    }
}

/// The source with a note whether the proxy saw a request to its host.
fn observed(source: Source, requests: &[Traffic]) -> Source {
    let host = source.url.as_deref().and_then(host);
    let seen = host.is_some_and(|host| {
        let answered = requests.iter().filter(|it| it.allow && it.received > 0);
        let mut hosts = answered.filter_map(|it| it.target.rsplit_once(':'));
        hosts.any(|(target, _)| target == host)
    });
    let note = match (&source.url, seen) {
        (None, _) => "no address: not observable",
        (Some(_), true) => "the proxy saw an answer of its host",
        (Some(_), false) => "the proxy saw no answer of its host",
    };
    let said = source.notes.as_deref().map(|said| format!("; {said}"));
    Source {
        notes: Some(format!("{note}{}", said.unwrap_or_default())),
        ..source
    }
}

/// The host of an address.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?', '#']).next()?;
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    Some(place.rsplit_once(':').map_or(place, |(host, _)| host))
}

/// The claim, not called verified: only its own agent says so.
fn unverified(claim: Claim) -> Claim {
    if claim.status != ClaimStatus::Verified {
        return claim;
    }
    let said = claim.verification_notes.unwrap_or_default();
    Claim {
        status: ClaimStatus::Unverified,
        verification_notes: Some(format!("verified by the word of its agent alone; {said}")),
        ..claim
    }
}
