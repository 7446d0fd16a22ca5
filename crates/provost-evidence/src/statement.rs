//! The form of signed in-toto statements. What a statement says, its predicate, belongs to the
//! rules of runs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dsse::{self, Envelope};
use crate::json::{self, ReadError};
use crate::key::SigningKey;
use crate::object::Oid;
use crate::record::Head;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement<S, P> {
    /// The type and version of the statement.
    #[serde(rename = "_type")]
    pub kind: StatementKind,
    pub subject: Vec<Subject<S>>,
    #[serde(rename = "predicateType")]
    pub predicate_type: PredicateType,
    pub predicate: P,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementKind {
    #[serde(rename = "https://in-toto.io/Statement/v1")]
    V1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PredicateType {
    /// The result of a run.
    #[serde(rename = "https://provost.dev/run/v1")]
    Run,
    /// A merge of a run's candidate after its seal.
    #[serde(rename = "https://provost.dev/merge/v1")]
    Merge,
    /// The commit that is about to land.
    #[serde(rename = "https://provost.dev/commit/v1")]
    Commit,
    #[serde(rename = "https://provost.dev/landing/v1")]
    Landing,
    /// The result of a replay after the seal.
    #[serde(rename = "https://provost.dev/replay/v1")]
    Replay,
    /// The files of a sealed record that is not a bundle.
    #[serde(rename = "https://provost.dev/record/v1")]
    Record,
    /// The files of a control packet.
    #[serde(rename = "https://provost.dev/packet/v1")]
    Packet,
    /// The state of a controlled change.
    #[serde(rename = "https://provost.dev/change/v1")]
    Change,
    /// The order to run a contract on another machine.
    #[serde(rename = "https://provost.dev/ticket/v1")]
    Ticket,
    /// What a lander of the fleet put on a branch.
    #[serde(rename = "https://provost.dev/fleet-landing/v1")]
    FleetLanding,
}

/// The subject of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject<S> {
    /// Its part in the run, such as `candidate`.
    pub name: String,
    /// Its id in git.
    pub digest: S,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeDigest {
    #[serde(rename = "gitTree")]
    pub git_tree: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitDigest {
    #[serde(rename = "gitCommit")]
    pub git_commit: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    /// The number of its last record, from 0.
    pub seq: u64,
    pub hash: String,
}

impl LedgerHead {
    /// The end of a chain with this `head`; `None` if the chain has no record.
    pub fn of(head: &Head) -> Option<Self> {
        Some(Self {
            seq: head.next.checked_sub(1)?,
            hash: head.hash.clone(),
        })
    }
}

/// The records of the second chain that a statement in it vouches for.
///
/// The hash of the preceding record fixes everything before it, so no record can be dropped, moved
/// or inserted before the statement. Records that another process wrote there are fixed too, but
/// not vouched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vouched {
    /// The number of the first one.
    pub from: u64,
    /// The number of the last one: the record that carries the statement.
    pub seq: u64,
    /// The hash of the record before that one.
    pub prev: String,
}

impl<S: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned> Statement<S, P> {
    pub fn parse(payload: &[u8]) -> Result<Self, ReadError> {
        json::parse_as(payload)
    }

    /// The statement in an envelope signed by `key`.
    pub fn seal(&self, key: &SigningKey) -> Envelope {
        // Structures with string keys; serialising them cannot fail, and `null` is not a statement.
        let value = serde_json::to_value(self).unwrap_or_default();
        dsse::sign(json::canonical(&value).as_bytes(), key)
    }
}
