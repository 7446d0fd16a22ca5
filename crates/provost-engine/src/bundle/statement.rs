//! The signed in-toto statements about a run, its merges, its landing and its replays.
//!
//! A statement names everything that a verifier needs to check the rest of the bundle: the trees,
//! the end of the ledger, and the digest of the manifest, which in turn names every other file.

use serde::{Deserialize, Serialize};

use super::after::{Candidate, LandCommit, Replay};
use super::granted::PersonGrant;
use provost_core::bundle::report::{Sha256, TestStatus, Time};
use provost_core::code::Code;
use provost_core::object::{ObjectFormat, Oid};
use provost_core::run::fact::{CacheStart, ExistingWork};

pub use provost_evidence::statement::{
    CommitDigest, LedgerHead, PredicateType, Statement, StatementKind, Subject, TreeDigest, Vouched,
};

/// The result of a run.
pub type RunStatement = Statement<TreeDigest, RunPredicate>;

/// A merge of a run's candidate after its seal.
pub type MergeStatement = Statement<TreeDigest, MergePredicate>;

/// The result of a replay after the seal.
pub type ReplayStatement = Statement<TreeDigest, ReplayPredicate>;

/// The commit that is about to land.
pub type CommitStatement = Statement<CommitDigest, CommitPredicate>;

pub type LandingStatement = Statement<CommitDigest, LandingPredicate>;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPredicate {
    pub run_id: String,
    /// SHA-256 of the contract's canonical spelling.
    pub contract_sha256: Sha256,
    pub object_format: ObjectFormat,
    /// The commit the candidate is compared with.
    pub base_commit: Oid,
    pub base_tree: Oid,
    /// The tree that would land; absent if the run made none, and then nothing can land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_tree: Option<Oid>,
    pub verdict: SealedVerdict,
    /// The end of the run's ledger.
    pub ledger_head: LedgerHead,
    /// SHA-256 of `manifest.json`.
    pub manifest_sha256: Sha256,
    /// The sandbox of the agent, or of the acceptance commands if no agent was started; absent if
    /// the run never started one.
    #[serde(default, alias = "box", skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxFacts>,
    pub acceptance: Acceptance,
    /// The work that the run judged without an agent, with every earlier refusal of it; absent if
    /// an agent made it in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ExistingWork>,
    /// What persons gave the agents beyond the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<PersonGrant>,
    /// When the run was sealed.
    pub finished_at: Time,
}

/// The combined decision of the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedVerdict {
    /// Whether the candidate may land.
    pub allow: bool,
    pub code: Code,
}

/// The agent's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFacts {
    pub tier: String,
    /// What a sandbox of this tier does not stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<String>,
    /// The kernel version.
    pub kernel: String,
    /// SHA-256 of the launcher.
    pub launcher_sha256: Sha256,
    /// SHA-256 of the sandbox profile.
    pub profile_sha256: Sha256,
    /// Whether every probe in it was stopped.
    pub selftest_held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The combined status.
    pub status: TestStatus,
    /// How many commands the contract has.
    pub commands: u32,
    /// How many of them ran and exited with 0.
    pub passed: u32,
    /// Whether they started on build caches; absent where the project has none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<CacheStart>,
}

/// A merge of a run's candidate after its seal, which the gates accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePredicate {
    pub run_id: String,
    /// The end of that run's ledger, as its own statement says.
    pub sealed_head: LedgerHead,
    pub vouches: Vouched,
    pub candidate: Candidate,
    /// How the acceptance commands ended on its tree.
    pub acceptance: Acceptance,
    pub merged_at: Time,
}

/// A replay of a run's gates and acceptance commands after its seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayPredicate {
    pub run_id: String,
    /// The end of that run's ledger, as its own statement says.
    pub sealed_head: LedgerHead,
    pub vouches: Vouched,
    /// The tree that was replayed: the candidate, or the base if there is none.
    pub tree: Oid,
    pub replay: Replay,
    pub replayed_at: Time,
}

/// The commit that is about to land, written before the target moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitPredicate {
    pub run_id: String,
    /// The end of that run's ledger, as its own statement says.
    pub sealed_head: LedgerHead,
    pub vouches: Vouched,
    /// The tree of the commit.
    pub tree: Oid,
    /// The parent of the commit.
    pub parent: Oid,
    pub written_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandingPredicate {
    pub run_id: String,
    /// The end of that run's ledger, as its own statement says.
    pub sealed_head: LedgerHead,
    pub vouches: Vouched,
    /// The tree of the commit.
    pub tree: Oid,
    /// The parent of the commit.
    pub parent: Oid,
    /// The ref that was moved.
    pub target: String,
    pub landed_at: Time,
}

/// Subject name of a run: the tree that would land.
pub const CANDIDATE: &str = "candidate";

/// Subject name of a run without a candidate: the tree it started from.
pub const BASE: &str = "base";

/// Subject name of a replay.
pub const REPLAYED: &str = "replayed";

/// Subject name of a landing, and of the commit that is about to land.
pub const LANDED: &str = "landed";

impl RunPredicate {
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

impl CommitPredicate {
    pub fn state(self, commit: &LandCommit) -> CommitStatement {
        Statement {
            kind: StatementKind::V1,
            subject: vec![Subject {
                name: LANDED.to_owned(),
                digest: CommitDigest {
                    git_commit: commit.commit.clone(),
                },
            }],
            predicate_type: PredicateType::Commit,
            predicate: self,
        }
    }
}

impl LandingPredicate {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use provost_core::bundle::key::SigningKey;
    use provost_core::json;

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
                start: None,
            },
            work: None,
            granted: Vec::new(),
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
