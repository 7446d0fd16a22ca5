//! What happens to a run after its seal: the records of its second chain.
//!
//! The chain begins with the sealed head. Whoever can write to the directory can add a line to it,
//! so a record alone proves nothing: what matters carries a signed statement, and a statement
//! vouches for the records that its own process wrote before it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json;
use crate::object::Oid;
use crate::record::Record;

/// The field of a payload that holds a signed statement.
pub const STATEMENT: &str = "attestation";

/// A merge with a target that moved is tested next; names the tree and where its logs go.
pub const TEST_STARTED: &str = "TEST_STARTED";
/// The acceptance commands ran on the merge.
pub const TEST_RESULT: &str = "TEST_RESULT";
/// The merge was accepted. Carries a statement.
pub const MERGED: &str = "CANDIDATE_MERGED";
/// The target is moved next.
pub const LAND_STARTED: &str = "LAND_STARTED";
/// The target holds the candidate. Carries a statement.
pub const LANDED: &str = "LANDED";

/// The records that mean nothing without a statement.
pub const SIGNED: [&str; 2] = [MERGED, LANDED];

/// A commit that the gates accepted: the candidate of the seal, or its merge with a moved target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The commit it is put on.
    pub parent: Oid,
}

/// A candidate on its way to a branch, or arrived there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The commit it is put on.
    pub parent: Oid,
    /// The branch.
    pub target: String,
}

impl Landing {
    /// `candidate` on its way to `target`.
    pub fn of(candidate: &Candidate, target: &str) -> Self {
        let Candidate {
            commit,
            tree,
            parent,
        } = candidate.clone();
        Self {
            commit,
            tree,
            parent,
            target: target.to_owned(),
        }
    }

    /// The last landing that `records` tell of; whether that is true is for verification to say.
    pub fn recorded(records: &[Record]) -> Option<Self> {
        let landed = |record: &&Record| record.event.event_type == LANDED;
        let mut payload = records.iter().rev().find(landed)?.event.payload.clone();
        payload.remove(STATEMENT);
        json::from_value(Value::Object(payload)).ok()
    }

    /// What lands.
    pub fn candidate(&self) -> Candidate {
        Candidate {
            commit: self.commit.clone(),
            tree: self.tree.clone(),
            parent: self.parent.clone(),
        }
    }
}

/// A test of a merge that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestStart {
    /// The merge.
    pub tree: Oid,
    /// The directory of the bundle that its logs go to; no other test has it.
    pub logs: String,
}
