//! The records of a run's second chain, written after its seal.
//!
//! The chain begins with the sealed head. Anyone with write access to the directory can append a
//! line, so a record alone proves nothing. Records that matter carry a signed statement, which
//! vouches for the records that its own process wrote before it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use provost_core::bundle::layout::LATER;
use provost_core::bundle::report::Sha256;
use provost_core::json;
use provost_core::object::{Kind, Oid};
use provost_core::record::Record;
use provost_core::run::fact::Side;
use provost_core::tree::commit_parents;

/// The field of a payload that holds a signed statement.
pub const STATEMENT: &str = "attestation";

/// The acceptance commands are about to run on a merge with a moved target; names the tree and the
/// log directory.
pub const TEST_STARTED: &str = "TEST_STARTED";
/// The acceptance commands ran on the merge.
pub const TEST_RESULT: &str = "TEST_RESULT";
/// A merge with a different patch is about to be reviewed; names the tree and the log directory.
pub const REVIEW_STARTED: &str = "REVIEW_STARTED";
/// The reviewer finished with the merge.
pub const REVIEW_RESULT: &str = "REVIEW_RESULT";
/// The gates accepted the merge. Carries a statement.
pub const MERGED: &str = "CANDIDATE_MERGED";
/// The commit for the target was written and is kept by a ref. Carries a statement.
pub const COMMIT_WRITTEN: &str = "COMMIT_WRITTEN";
/// The target is about to be moved.
pub const LAND_STARTED: &str = "LAND_STARTED";
/// The target holds the candidate. Carries a statement.
pub const LANDED: &str = "LANDED";

/// The run is about to be replayed; names the directory for the results.
pub const REPLAY_STARTED: &str = "REPLAY_STARTED";
/// The run was replayed. Carries a statement.
pub const REPLAYED: &str = "REPLAYED";

/// The records that have no effect without a statement.
pub const SIGNED: [&str; 4] = [MERGED, COMMIT_WRITTEN, LANDED, REPLAYED];

/// A commit that the gates accepted: the sealed candidate, or its merge with a moved target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub commit: Oid,
    pub tree: Oid,
    /// The parent of the commit.
    pub parent: Oid,
}

/// The commit that brings an accepted tree to the target.
///
/// Author, dates, message and signature are in the bytes, so landing again after a crash makes no
/// other commit and asks for no other signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandCommit {
    pub commit: Oid,
    pub tree: Oid,
    /// The parent of the commit.
    pub parent: Oid,
    /// The bytes of the commit, as git stores them.
    pub object: String,
}

impl LandCommit {
    /// Whether it brings exactly this candidate.
    pub fn is_of(&self, candidate: &Candidate) -> bool {
        (&self.tree, &self.parent) == (&candidate.tree, &candidate.parent)
    }

    /// Whether the bytes are a commit with that id, that tree and that one parent.
    pub fn is_consistent(&self) -> bool {
        let bytes = self.object.as_bytes();
        let id = self.commit.format().oid(Kind::Commit, bytes);
        let begins = format!("tree {}\nparent {}\nauthor ", self.tree, self.parent);
        id.is_ok_and(|id| id == self.commit)
            && self.object.starts_with(&begins)
            && commit_parents(bytes) == [self.parent.clone()]
    }

    /// The commit as something that may be on the target.
    pub fn candidate(&self) -> Candidate {
        Candidate {
            commit: self.commit.clone(),
            tree: self.tree.clone(),
            parent: self.parent.clone(),
        }
    }
}

/// The landing of a candidate on a branch, begun or complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    pub commit: Oid,
    pub tree: Oid,
    /// The parent of the commit.
    pub parent: Oid,
    pub target: String,
}

impl Landing {
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

    /// The last landing in `records`; unverified.
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

/// The start of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayStart {
    /// The directory of the bundle for the results; no other replay uses it.
    pub logs: String,
}

impl ReplayStart {
    /// The next replay after those in `records`.
    pub fn next(records: &[Record]) -> Self {
        let begun = |record: &&Record| record.event.event_type == REPLAY_STARTED;
        let number = records.iter().filter(begun).count() + 1;
        Self {
            logs: format!("{LATER}replay-{number}"),
        }
    }

    /// The directory for the output of the acceptance commands on the tree of `side`.
    pub fn side(&self, side: Side) -> String {
        let name = match side {
            Side::Base => "base",
            Side::BaseAgain => "base-again",
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

    /// All directories that its files are in.
    pub fn directories(&self) -> [String; 4] {
        let sides = [Side::Base, Side::BaseAgain, Side::Candidate].map(|side| self.side(side));
        let [base, again, candidate] = sides;
        [self.logs.clone(), base, again, candidate]
    }
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Path of the report in the bundle.
    pub report: String,
    /// SHA-256 of the report.
    pub sha256: Sha256,
    pub hard_equal: bool,
    pub soft_equal: bool,
}

/// The start of a test or a review of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestStart {
    /// The tree of the merge.
    pub tree: Oid,
    /// The directory of the bundle for its logs; no other test uses it.
    pub logs: String,
}
