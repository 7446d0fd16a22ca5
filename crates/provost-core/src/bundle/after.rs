//! What happens to a run after its seal: the records of its second chain.
//!
//! The chain begins with the sealed head. Whoever can write to the directory can add a line to it,
//! so a record alone proves nothing: what matters carries a signed statement, and a statement
//! vouches for the records that its own process wrote before it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layout::LATER;
use super::report::Sha256;
use crate::json;
use crate::object::Oid;
use crate::record::Record;
use crate::run::fact::Side;

/// The field of a payload that holds a signed statement.
pub const STATEMENT: &str = "attestation";

/// A merge with a target that moved is tested next; names the tree and where its logs go.
pub const TEST_STARTED: &str = "TEST_STARTED";
/// The acceptance commands ran on the merge.
pub const TEST_RESULT: &str = "TEST_RESULT";
/// A merge whose patch is another one is reviewed next; names the tree and where its logs go.
pub const REVIEW_STARTED: &str = "REVIEW_STARTED";
/// The reviewer looked at the merge.
pub const REVIEW_RESULT: &str = "REVIEW_RESULT";
/// The merge was accepted. Carries a statement.
pub const MERGED: &str = "CANDIDATE_MERGED";
/// The target is moved next.
pub const LAND_STARTED: &str = "LAND_STARTED";
/// The target holds the candidate. Carries a statement.
pub const LANDED: &str = "LANDED";

/// The run is done again next; names the directory of what comes of it.
pub const REPLAY_STARTED: &str = "REPLAY_STARTED";
/// The run was done again. Carries a statement.
pub const REPLAYED: &str = "REPLAYED";

/// The records that mean nothing without a statement.
pub const SIGNED: [&str; 3] = [MERGED, LANDED, REPLAYED];

/// A commit that the gates accepted: the candidate of the seal, or its merge with a moved target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub commit: Oid,
    pub tree: Oid,
    /// The commit it is put on.
    pub parent: Oid,
}

/// A candidate on its way to a branch, or arrived there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    pub commit: Oid,
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

    pub fn candidate(&self) -> Candidate {
        Candidate {
            commit: self.commit.clone(),
            tree: self.tree.clone(),
            parent: self.parent.clone(),
        }
    }
}

/// A replay that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayStart {
    /// The directory of the bundle for what comes of it; no other replay has it.
    pub logs: String,
}

impl ReplayStart {
    /// The next replay after those that `records` tell of.
    pub fn next(records: &[Record]) -> Self {
        let begun = |record: &&Record| record.event.event_type == REPLAY_STARTED;
        let number = records.iter().filter(begun).count() + 1;
        Self {
            logs: format!("{LATER}replay-{number}"),
        }
    }

    /// The directory for what the acceptance commands print about the tree of `side`.
    pub fn side(&self, side: Side) -> String {
        let name = match side {
            Side::Base => "base",
            Side::Candidate => "candidate",
            Side::Merged => "merged",
            Side::OldTests => "old-tests",
            Side::NewTests => "new-tests",
        };
        format!("{}/{name}", self.logs)
    }

    pub fn report(&self) -> String {
        format!("{}/reexec_report.json", self.logs)
    }

    /// Every directory that its files are in.
    pub fn directories(&self) -> [String; 3] {
        let sides = [Side::Base, Side::Candidate].map(|side| self.side(side));
        let [base, candidate] = sides;
        [self.logs.clone(), base, candidate]
    }
}

/// What came of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The report, as a file of the bundle.
    pub report: String,
    /// SHA-256 of its bytes.
    pub sha256: Sha256,
    /// Whether everything that must be equal is.
    pub hard_equal: bool,
    /// Whether everything that should be equal is.
    pub soft_equal: bool,
}

/// A test or a review of a merge that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestStart {
    /// The merge.
    pub tree: Oid,
    /// The directory of the bundle that its logs go to; nothing else has it.
    pub logs: String,
}
