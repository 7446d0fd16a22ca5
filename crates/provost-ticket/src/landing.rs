//! Whether a result may land: every fact that a lander collected, and one decision.

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::policy::fleet::{FleetKeys, FleetRole};
use provost_core::run::fact::TicketUse;
use provost_core::verdict::Verdict;
use provost_evidence::dsse::{self, OpenError};
use provost_evidence::key::{PublicKey, SigningKey};
use provost_evidence::statement::{CommitDigest, PredicateType, Statement, StatementKind, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::ticket::OpenedTicket;

/// What a sealed bundle proves, after its verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFacts {
    /// The key that sealed it.
    pub signer: PublicKey,
    pub accepted: bool,
    /// The ticket that its first event names, with the fence.
    pub ticket: Option<TicketUse>,
    /// The digest of its contract, with the base of the ticket in place of its own.
    pub contract_sha256: String,
    pub base_commit: Oid,
    /// The rules in the policy of that base.
    pub policy_sha256: String,
    /// The tree that was accepted.
    pub tree: Option<Oid>,
}

/// Everything that decides about a landing.
#[derive(Debug, Clone, Copy)]
pub struct LandingFacts<'a> {
    pub ticket: &'a OpenedTicket,
    /// The attempt that the run counts.
    pub fence: Fence,
    /// The number of the lease that the run holds now.
    pub held: Option<u64>,
    pub bundle: &'a BundleFacts,
    pub keys_at_base: &'a FleetKeys,
    pub keys_at_tip: &'a FleetKeys,
    pub lander: &'a PublicKey,
    /// Where the target is now.
    pub tip: &'a Oid,
    /// The tree of the candidate at the hub.
    pub candidate_tree: &'a Oid,
    /// Whether `provost.toml` of the candidate is that of its base, byte for byte.
    pub policy_is_unchanged: bool,
    /// In milliseconds since 1970.
    pub now: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LandingDecision {
    Land,
    /// The target moved after the judgement.
    Moved,
    Refuse(Verdict),
}

/// Decides about a landing. The first rule that does not hold refuses it.
pub fn decide(facts: &LandingFacts<'_>) -> LandingDecision {
    let refusal = ticket(facts).or_else(|| evidence(facts));
    match refusal {
        Some(verdict) => LandingDecision::Refuse(verdict),
        None if facts.bundle.base_commit != *facts.tip => LandingDecision::Moved,
        None => LandingDecision::Land,
    }
}

fn ticket(facts: &LandingFacts<'_>) -> Option<Verdict> {
    if let Err(error) = facts.ticket.is_in_time(facts.now) {
        return Some(Verdict::deny(Code::TicketRefused, error.to_string()));
    }
    let listed = |keys: &FleetKeys| keys.lists(FleetRole::Lander, facts.lander);
    if !listed(facts.keys_at_base) || !listed(facts.keys_at_tip) {
        let reason = "the key of this lander is not under [fleet.landers] at the base and the tip";
        return Some(Verdict::deny(Code::FleetKeyRefused, reason));
    }
    if facts.held != Some(facts.fence.lease) {
        let reason = match facts.held {
            Some(other) => format!(
                "the result was made under lease {}, and the run holds lease {other}",
                facts.fence.lease
            ),
            None => format!("the run no longer holds lease {}", facts.fence.lease),
        };
        return Some(Verdict::deny(Code::FenceStale, reason));
    }
    None
}

fn evidence(facts: &LandingFacts<'_>) -> Option<Verdict> {
    let bundle = facts.bundle;
    let listed = |keys: &FleetKeys| keys.lists(FleetRole::Worker, &bundle.signer);
    if !listed(facts.keys_at_base) || !listed(facts.keys_at_tip) {
        let reason = "the key that sealed the evidence is not under [fleet.workers] at the base and \
                      the tip";
        return Some(Verdict::deny(Code::FleetKeyRefused, reason));
    }
    let named = bundle.ticket.as_ref();
    let of_this = named.is_some_and(|it| it.sha256 == facts.ticket.sha256);
    let same_fence = named.is_some_and(|it| it.fence == facts.fence.to_string());
    if of_this && !same_fence {
        let reason = "the evidence is of another attempt than the one that counts";
        return Some(Verdict::deny(Code::FenceStale, reason));
    }
    let ticket = &facts.ticket.ticket;
    let rules = [
        (of_this, "its evidence names another ticket"),
        (bundle.accepted, "its evidence says that it was refused"),
        (
            bundle.contract_sha256 == ticket.contract_sha256,
            "its contract is not the one of the ticket",
        ),
        (
            bundle.policy_sha256 == ticket.policy_sha256,
            "it was judged by other rules than those of the ticket; submit it again",
        ),
        (
            bundle.tree.as_ref() == Some(facts.candidate_tree),
            "the candidate is not the tree that was accepted",
        ),
        (
            facts.policy_is_unchanged,
            "it changes provost.toml, which no run of the fleet may do",
        ),
    ];
    let broken = rules.iter().find(|(holds, _)| !holds)?;
    let reason = format!("the result cannot land: {}", broken.1);
    Some(Verdict::deny(Code::TicketRefused, reason))
}

/// What a lander signs, in the push that moves the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetLanding {
    pub run: String,
    pub ticket_sha256: String,
    /// The attempt, as `N.A`.
    pub fence: String,
    /// The branch, as a full ref name.
    pub target: String,
    /// Where the branch was.
    pub from: Oid,
    /// The commit at the hub that holds the evidence.
    pub bundle: Oid,
    /// In milliseconds since 1970.
    pub landed_at: i64,
}

type LandingStatement = Statement<CommitDigest, FleetLanding>;

impl FleetLanding {
    /// The signed statement that `commit` landed.
    pub fn sign(&self, commit: &Oid, key: &SigningKey) -> String {
        let statement = Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: "landed".to_owned(),
                digest: CommitDigest {
                    git_commit: commit.clone(),
                },
            }],
            predicate_type: PredicateType::FleetLanding,
            predicate: self.clone(),
        };
        statement.seal(key).render()
    }

    /// Reads a statement that one of `landers` signed: the commit, and what landed it.
    pub fn open(bytes: &[u8], landers: &[PublicKey]) -> Result<(Oid, Self), BadLanding> {
        let opened = dsse::open(bytes, landers).map_err(BadLanding::Envelope)?;
        let statement = LandingStatement::parse(&opened.payload);
        let statement = statement.map_err(|_| BadLanding::Form)?;
        if statement.predicate_type != PredicateType::FleetLanding {
            return Err(BadLanding::Form);
        }
        let [subject] = <[_; 1]>::try_from(statement.subject).map_err(|_| BadLanding::Form)?;
        Ok((subject.digest.git_commit, statement.predicate))
    }
}

/// Why a statement about a landing does not count.
#[derive(Debug, thiserror::Error)]
pub enum BadLanding {
    #[error("it has no valid signature of a lander")]
    Envelope(#[source] OpenError),
    #[error("it does not have the form of a landing")]
    Form,
}

#[cfg(test)]
mod tests;
