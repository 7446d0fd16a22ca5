//! Tickets: signed orders to run one contract on some machine of the fleet.

use provost_core::agent::Budget;
use provost_core::object::{Oid, sha256};
use provost_core::path::is_segment;
use provost_core::policy::fleet::{FleetKeys, FleetRole};
use provost_evidence::dsse::{Envelope, OpenError};
use provost_evidence::json::ReadError;
use provost_evidence::key::{PublicKey, SigningKey};
use provost_evidence::statement::{CommitDigest, PredicateType, Statement, StatementKind, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of a signed ticket; far below what Temporal takes as an argument.
pub const LARGEST: usize = 64 * 1024;

/// The most attempts that a ticket may ask for.
pub const MOST_ATTEMPTS: u32 = 20;

/// How far the clocks of two machines of a fleet may be apart, in milliseconds.
pub const CLOCK_SKEW: i64 = 5 * 60 * 1000;

/// What a submitter asks for. Everything large is in git, bound by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The id of the run; it runs at most once to a landing.
    pub run: String,
    /// `fleet.repository` of the policy.
    pub repository: String,
    /// SHA-256 of the canonical contract.
    pub contract_sha256: String,
    /// SHA-256 of the rules in `provost.toml` of the base, without the keys of the fleet.
    pub policy_sha256: String,
    /// The agent, by the name that workers have for it.
    pub agent: String,
    #[serde(default, skip_serializing_if = "TicketBudget::is_open")]
    pub budget: TicketBudget,
    /// The git repository that carries the data, by the name that workers have for it.
    pub hub: String,
    /// The branch that the result is for, as a full ref name.
    pub target: String,
    /// The workers that may take it.
    pub pool: String,
    /// How often a lost attempt may be made again, the first one included.
    pub attempts: u32,
    /// After that it neither starts nor lands, in milliseconds since 1970.
    pub deadline: i64,
    /// In milliseconds since 1970.
    pub issued_at: i64,
    /// Makes two tickets with the same content different.
    pub nonce: String,
}

/// What all attempts of the run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketBudget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl TicketBudget {
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

impl From<TicketBudget> for Budget {
    fn from(budget: TicketBudget) -> Self {
        Self {
            tokens: budget.tokens,
            micro_usd: budget.micro_usd,
        }
    }
}

type TicketStatement = Statement<CommitDigest, Ticket>;

/// A ticket whose signature holds, by a key that may submit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedTicket {
    pub ticket: Ticket,
    pub base_commit: Oid,
    /// SHA-256 of the envelope: the id of this very ticket.
    pub sha256: String,
    /// The name of the submitter in the policy of the base.
    pub submitter: String,
}

/// Why a ticket is not acted on.
#[derive(Debug, thiserror::Error)]
pub enum TicketRefusal {
    #[error("the ticket has {0} bytes; at most {LARGEST} are read")]
    TooLarge(usize),
    #[error("the ticket has no valid signature")]
    Envelope(#[source] OpenError),
    #[error("the ticket does not have the form of one")]
    Form(#[source] ReadError),
    #[error("the ticket does not have the form of one: {0}")]
    Field(&'static str),
    #[error("the key of the ticket is not under [fleet.submitters] at its base commit")]
    UnknownSubmitter,
    #[error("the key of the ticket is no longer under [fleet.submitters] at the tip of the target")]
    Revoked,
    #[error("the ticket was issued in the future, or the clock of this machine is wrong")]
    NotYet,
    #[error("the deadline of the ticket is over")]
    Over,
    #[error("the {what} is not the one that the ticket names")]
    Differs { what: &'static str },
}

/// What a ticket must agree with.
#[derive(Debug, Clone, Copy)]
pub struct TicketFacts<'a> {
    pub repository: &'a str,
    pub contract_sha256: &'a str,
    pub policy_sha256: &'a str,
    pub base_commit: &'a Oid,
}

impl Ticket {
    /// The ticket as signed text.
    pub fn sign(&self, base_commit: &Oid, key: &SigningKey) -> String {
        let statement = Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: "base".to_owned(),
                digest: CommitDigest {
                    git_commit: base_commit.clone(),
                },
            }],
            predicate_type: PredicateType::Ticket,
            predicate: self.clone(),
        };
        statement.seal(key).render()
    }

    fn check(&self) -> Result<(), TicketRefusal> {
        let digest = |text: &str| text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
        let word = |text: &str| is_segment(text) && text.len() <= 128;
        let rules = [
            (self.run.starts_with("run_") && word(&self.run), "run"),
            (word(&self.repository), "repository"),
            (digest(&self.contract_sha256), "contract_sha256"),
            (digest(&self.policy_sha256), "policy_sha256"),
            (word(&self.agent), "agent"),
            (word(&self.hub), "hub"),
            (word(&self.pool), "pool"),
            (is_branch(&self.target), "target"),
            ((1..=MOST_ATTEMPTS).contains(&self.attempts), "attempts"),
            (self.deadline > self.issued_at, "deadline"),
            (self.nonce.len() >= 16 && word(&self.nonce), "nonce"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, field)) => Err(TicketRefusal::Field(field)),
            None => Ok(()),
        }
    }
}

/// Whether `target` is a branch that a ticket may name.
fn is_branch(target: &str) -> bool {
    target.len() <= 256
        && target.strip_prefix("refs/heads/").is_some_and(|name| {
            name.split('/').all(is_segment)
                && !name.starts_with("provost/")
                && name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || b"-_./".contains(&it))
        })
}

fn parse(bytes: &[u8]) -> Result<(Envelope, Oid, Ticket), TicketRefusal> {
    if bytes.len() > LARGEST {
        return Err(TicketRefusal::TooLarge(bytes.len()));
    }
    let envelope = Envelope::parse(bytes).map_err(TicketRefusal::Envelope)?;
    let payload = envelope
        .unverified_payload()
        .map_err(TicketRefusal::Envelope)?;
    let statement = TicketStatement::parse(&payload).map_err(TicketRefusal::Form)?;
    if statement.predicate_type != PredicateType::Ticket {
        return Err(TicketRefusal::Field("predicateType"));
    }
    let [subject] =
        <[_; 1]>::try_from(statement.subject).map_err(|_| TicketRefusal::Field("subject"))?;
    statement.predicate.check()?;
    Ok((envelope, subject.digest.git_commit, statement.predicate))
}

/// Reads a ticket without verifying it, to find out where the keys are that may have signed it.
pub fn unverified(bytes: &[u8]) -> Result<(Oid, Ticket), TicketRefusal> {
    parse(bytes).map(|(_, base, ticket)| (base, ticket))
}

/// Opens a ticket. `at_base` are the keys of its base commit, `at_tip` those of its target now.
pub fn open(
    bytes: &[u8],
    at_base: &FleetKeys,
    at_tip: &FleetKeys,
) -> Result<OpenedTicket, TicketRefusal> {
    let (envelope, base_commit, ticket) = parse(bytes)?;
    let keys: Vec<PublicKey> = at_base.submitters.values().copied().collect();
    let opened = envelope.open(&keys).map_err(|error| match error {
        OpenError::UnknownKey { .. } => TicketRefusal::UnknownSubmitter,
        other => TicketRefusal::Envelope(other),
    })?;
    if !at_tip.lists(FleetRole::Submitter, &opened.key) {
        return Err(TicketRefusal::Revoked);
    }
    let mut named = at_base.submitters.iter();
    let submitter = named.find(|(_, key)| **key == opened.key);
    Ok(OpenedTicket {
        ticket,
        base_commit,
        sha256: sha256(bytes),
        submitter: submitter.map(|(name, _)| name.clone()).unwrap_or_default(),
    })
}

impl OpenedTicket {
    /// Whether the ticket is about exactly this.
    pub fn is_about(&self, facts: TicketFacts<'_>) -> Result<(), TicketRefusal> {
        let ticket = &self.ticket;
        let rules = [
            (ticket.repository == facts.repository, "repository"),
            (ticket.contract_sha256 == facts.contract_sha256, "contract"),
            (ticket.policy_sha256 == facts.policy_sha256, "policy"),
            (self.base_commit == *facts.base_commit, "base commit"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(TicketRefusal::Differs { what }),
            None => Ok(()),
        }
    }

    /// Whether `now`, in milliseconds since 1970, lies within its time; clocks may differ by
    /// [`CLOCK_SKEW`].
    pub fn is_in_time(&self, now: i64) -> Result<(), TicketRefusal> {
        if self.ticket.issued_at > now.saturating_add(CLOCK_SKEW) {
            return Err(TicketRefusal::NotYet);
        }
        if self.ticket.deadline < now.saturating_sub(CLOCK_SKEW) {
            return Err(TicketRefusal::Over);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
