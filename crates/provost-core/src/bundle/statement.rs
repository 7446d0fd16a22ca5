//! States what a run came to, what it was merged with, what landed, and that it was done again, as
//! in-toto statements.
//!
//! A statement names everything a reader needs to hold the rest of the bundle against: the trees,
//! the end of the ledger and the digest of the manifest, which in turn names every other file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::after::{Candidate, Replay};
use super::dsse::{self, Envelope};
use super::key::SigningKey;
use super::report::{Sha256, TestStatus, Time};
use crate::code::Code;
use crate::json::{self, JsonError};
use crate::object::{ObjectFormat, Oid};
use crate::record::Head;

/// A statement about something git can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement<S, P> {
    /// That it is a statement, and of which version.
    #[serde(rename = "_type")]
    pub kind: StatementKind,
    /// What it is about.
    pub subject: Vec<Subject<S>>,
    /// What kind of thing it says.
    #[serde(rename = "predicateType")]
    pub predicate_type: PredicateType,
    /// What it says.
    pub predicate: P,
}

/// What a run came to.
pub type RunStatement = Statement<TreeDigest, RunPredicate>;

/// What a run was merged with after its seal.
pub type MergeStatement = Statement<TreeDigest, MergePredicate>;

/// What came of doing a run again after its seal.
pub type ReplayStatement = Statement<TreeDigest, ReplayPredicate>;

pub type LandingStatement = Statement<CommitDigest, LandingPredicate>;

/// The version of in-toto statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementKind {
    /// Version 1.
    #[serde(rename = "https://in-toto.io/Statement/v1")]
    V1,
}

/// What kind of thing a statement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PredicateType {
    /// What a run came to.
    #[serde(rename = "https://provost.dev/run/v1")]
    Run,
    /// What a run was merged with after its seal.
    #[serde(rename = "https://provost.dev/merge/v1")]
    Merge,
    #[serde(rename = "https://provost.dev/landing/v1")]
    Landing,
    /// What came of doing a run again after its seal.
    #[serde(rename = "https://provost.dev/replay/v1")]
    Replay,
    /// What the files of a record that is no bundle are.
    #[serde(rename = "https://provost.dev/record/v1")]
    Record,
    /// What a controlled change came to so far.
    #[serde(rename = "https://provost.dev/change/v1")]
    Change,
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject<S> {
    /// What it is to the run.
    pub name: String,
    /// What git calls it.
    pub digest: S,
}

/// The id of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeDigest {
    /// The id.
    #[serde(rename = "gitTree")]
    pub git_tree: Oid,
}

/// The id of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitDigest {
    /// The id.
    #[serde(rename = "gitCommit")]
    pub git_commit: Oid,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPredicate {
    pub run_id: String,
    /// The digest of the contract's canonical spelling.
    pub contract_sha256: Sha256,
    /// How the repository names its objects.
    pub object_format: ObjectFormat,
    /// The commit the candidate is compared with.
    pub base_commit: Oid,
    pub base_tree: Oid,
    /// The tree that would land; absent when the run made none, and then nothing can land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_tree: Option<Oid>,
    /// What the gates decided.
    pub verdict: SealedVerdict,
    /// Where the ledger of the run ends.
    pub ledger_head: LedgerHead,
    /// The digest of `manifest.json`.
    pub manifest_sha256: Sha256,
    /// What the agent was kept in; absent when the run never came to a sandbox.
    #[serde(default, alias = "box", skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxFacts>,
    /// How the acceptance commands ended.
    pub acceptance: Acceptance,
    /// When the run was sealed.
    pub finished_at: Time,
}

/// What the gates decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedVerdict {
    /// Whether the candidate may land.
    pub allow: bool,
    /// The rule that decided.
    pub code: Code,
}

/// Where a ledger ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    /// The number of its last record, from 0.
    pub seq: u64,
    /// The hash of its last record.
    pub hash: String,
}

impl LedgerHead {
    /// The end of a chain that stands at `head`; `None` when the chain has no record.
    pub fn of(head: &Head) -> Option<Self> {
        Some(Self {
            seq: head.next.checked_sub(1)?,
            hash: head.hash.clone(),
        })
    }
}

/// What the agent was kept in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFacts {
    /// How strong it is.
    pub tier: String,
    /// What a sandbox of this tier does not stop, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<String>,
    /// The kernel that enforced it.
    pub kernel: String,
    /// The digest of the program that built it.
    pub launcher_sha256: Sha256,
    /// The digest of the rules it was built from.
    pub profile_sha256: Sha256,
    /// Whether a probe inside it failed to get out.
    pub selftest_held: bool,
}

/// How the acceptance commands ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// Together.
    pub status: TestStatus,
    /// How many the contract has.
    pub commands: u32,
    /// How many of them ran and ended with 0.
    pub passed: u32,
}

/// The records of the second chain that a statement in it vouches for.
///
/// The hash of the record before it fixes everything that came before, so that no record can be
/// dropped, moved or put in front of the statement. What somebody else had written there by then is
/// fixed as well, but not vouched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vouched {
    /// The first of them.
    pub from: u64,
    /// The last of them: the record that carries the statement.
    pub seq: u64,
    /// The hash of the record before that one.
    pub prev: String,
}

/// What a run was merged with after its seal, and that the gates accepted the merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePredicate {
    pub run_id: String,
    /// Where the ledger of that run ends, as its own statement says.
    pub sealed_head: LedgerHead,
    /// The records it vouches for.
    pub vouches: Vouched,
    /// The new candidate.
    pub candidate: Candidate,
    /// How the acceptance commands ended on its tree.
    pub acceptance: Acceptance,
    pub merged_at: Time,
}

/// That gates and acceptance commands of a run were done again after its seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayPredicate {
    pub run_id: String,
    /// Where the ledger of that run ends, as its own statement says.
    pub sealed_head: LedgerHead,
    /// The records it vouches for.
    pub vouches: Vouched,
    /// The tree that was looked at again: the candidate, or the base if there is none.
    pub tree: Oid,
    /// What came of it.
    pub replay: Replay,
    pub replayed_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandingPredicate {
    pub run_id: String,
    /// Where the ledger of that run ends, as its own statement says.
    pub sealed_head: LedgerHead,
    /// The records it vouches for.
    pub vouches: Vouched,
    /// The tree of the commit.
    pub tree: Oid,
    /// The commit it was put on.
    pub parent: Oid,
    /// The ref that was moved.
    pub target: String,
    pub landed_at: Time,
}

/// What the subject of a run is called: the tree that would land.
pub const CANDIDATE: &str = "candidate";

/// What the subject of a run without a candidate is called: the tree it began from.
pub const BASE: &str = "base";

/// What the subject of a replay is called.
pub const REPLAYED: &str = "replayed";

/// What the subject of a landing is called.
pub const LANDED: &str = "landed";

impl RunPredicate {
    /// The statement about the run.
    pub fn state(self) -> RunStatement {
        let (name, git_tree) = match &self.candidate_tree {
            Some(tree) => (CANDIDATE, tree.clone()),
            None => (BASE, self.base_tree.clone()),
        };
        Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: name.to_owned(),
                digest: TreeDigest { git_tree },
            }],
            predicate_type: PredicateType::Run,
            predicate: self,
        }
    }
}

impl MergePredicate {
    /// The statement that the merge is a candidate.
    pub fn state(self) -> MergeStatement {
        Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: CANDIDATE.to_owned(),
                digest: TreeDigest {
                    git_tree: self.candidate.tree.clone(),
                },
            }],
            predicate_type: PredicateType::Merge,
            predicate: self,
        }
    }
}

impl ReplayPredicate {
    /// The statement that the run was done again.
    pub fn state(self) -> ReplayStatement {
        Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: REPLAYED.to_owned(),
                digest: TreeDigest {
                    git_tree: self.tree.clone(),
                },
            }],
            predicate_type: PredicateType::Replay,
            predicate: self,
        }
    }
}

impl LandingPredicate {
    /// The statement that `commit` is what landed.
    pub fn state(self, commit: Oid) -> LandingStatement {
        Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: LANDED.to_owned(),
                digest: CommitDigest { git_commit: commit },
            }],
            predicate_type: PredicateType::Landing,
            predicate: self,
        }
    }
}

impl<S: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned> Statement<S, P> {
    /// Reads a statement from a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, JsonError> {
        json::parse_as(payload)
    }

    /// The statement in an envelope signed by `key`.
    pub fn seal(&self, key: &SigningKey) -> Envelope {
        // Structures with string keys; serialising them cannot fail, and `null` is no statement.
        let value = serde_json::to_value(self).unwrap_or_default();
        dsse::sign(json::canonical(&value).as_bytes(), key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn oid(digit: &str) -> Oid {
        digit.repeat(40).as_str().try_into().unwrap()
    }

    fn run() -> RunPredicate {
        RunPredicate {
            run_id: "run_00000001".into(),
            contract_sha256: Sha256::of(b"contract"),
            object_format: ObjectFormat::Sha1,
            base_commit: oid("a"),
            base_tree: oid("b"),
            candidate_tree: Some(oid("c")),
            verdict: SealedVerdict {
                allow: true,
                code: Code::Ok,
            },
            ledger_head: LedgerHead {
                seq: 3,
                hash: "d".repeat(64),
            },
            manifest_sha256: Sha256::of(b"manifest"),
            sandbox: None,
            acceptance: Acceptance {
                status: TestStatus::Pass,
                commands: 1,
                passed: 1,
            },
            finished_at: "2026-01-01T00:00:00Z".try_into().unwrap(),
        }
    }

    #[test]
    fn a_sealed_statement_comes_back() {
        let key = SigningKey::from_seed(&[1; 32], "").unwrap();
        let statement = run().state();
        let opened = statement.seal(&key).open(&[key.public()]).unwrap();
        assert_eq!(RunStatement::parse(&opened.payload).unwrap(), statement);
        let value = json::parse(&opened.payload).unwrap();
        assert_eq!(value["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(value["predicateType"], "https://provost.dev/run/v1");
        assert_eq!(
            value["subject"],
            json!([{ "name": "candidate", "digest": { "gitTree": "c".repeat(40) } }])
        );
        assert_eq!(
            value["predicate"]["verdict"],
            json!({ "allow": true, "code": "OK" })
        );
    }

    #[test]
    fn a_run_without_a_candidate_is_about_its_base() {
        let statement = RunPredicate {
            candidate_tree: None,
            ..run()
        }
        .state();
        assert_eq!(statement.subject[0].name, "base");
        assert_eq!(statement.subject[0].digest.git_tree, oid("b"));
    }

    #[test]
    fn a_landing_is_not_read_as_a_run() {
        let statement = LandingPredicate {
            run_id: "run_00000001".into(),
            sealed_head: run().ledger_head,
            vouches: Vouched {
                from: 0,
                seq: 0,
                prev: "d".repeat(64),
            },
            tree: oid("c"),
            parent: oid("a"),
            target: "refs/heads/main".into(),
            landed_at: "2026-01-01T00:00:00Z".try_into().unwrap(),
        }
        .state(oid("e"));
        let bytes = serde_json::to_vec(&statement).unwrap();
        assert_eq!(LandingStatement::parse(&bytes).unwrap(), statement);
        assert!(RunStatement::parse(&bytes).is_err());
        assert!(MergeStatement::parse(&bytes).is_err());
    }
}
