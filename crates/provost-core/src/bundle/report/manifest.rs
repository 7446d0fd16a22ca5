//! The manifest of a run: its facts, and the digest of every file it left.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::role_binding::RoleBinding;
use super::shape::{ArtifactRef, Sha256, Time, eight_or_more, not_empty, one_or_more};
use super::surroundings::{Model, Observability, Repo, Runner, Trace, Versions, Workflow};
use crate::closed::closed;
use crate::contract::document::PolicyPack;
use crate::contract::document::Role;
use crate::object::{ObjectFormat, Oid};

closed! {
    /// `run_manifest.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct RunManifest {
        /// The run.
        #[serde(deserialize_with = "eight_or_more")]
        #[schemars(length(min = 8))]
        pub run_id: String,
        /// When it began.
        pub created_at: Time,
        /// When it ended.
        pub finished_at?: Time,
        /// How it ended.
        pub status: RunStatus,
        /// Its task.
        pub task_id?: String,
        /// Why it failed.
        pub failure_reason?: String,
        /// Further notes.
        pub notes?: String,
        /// The request of the user.
        #[serde(deserialize_with = "not_empty")]
        #[schemars(length(min = 1))]
        pub user_request: String,
        /// The id that joins the records of one run across tools.
        #[serde(deserialize_with = "eight_or_more")]
        #[schemars(length(min = 8))]
        pub trace_id: String,
        /// Whether this was a run for diagnosis.
        pub diagnostic?: bool,
        /// The program that ran the agent.
        pub runner?: Runner,
        /// The policy it ran under.
        pub policy_pack?: PolicyPack,
        /// The repository.
        pub repo: Repo,
        /// The versions of the programs involved.
        pub versions: Versions,
        /// The model behind the agent.
        pub model?: Model,
        /// How the role of the contract was bound.
        pub role_binding_summary?: RoleBinding,
        /// The tasks of the run; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub tasks: Vec<TaskEntry>,
        /// Further files of the run.
        pub artifacts: Vec<ArtifactRef>,
        /// The digest of every file of evidence, by its path in the bundle.
        #[serde(deserialize_with = "with_required_keys")]
        #[schemars(extend("required" = REQUIRED_HASHES))]
        pub evidence_hashes: BTreeMap<String, Sha256>,
        /// Further digests.
        pub integrity?: Integrity,
        /// Where the trace is.
        pub trace?: Trace,
        /// The workflow engine around the run.
        pub workflow?: Workflow,
        /// How it was observed.
        pub observability?: Observability,
        /// What Provost adds.
        pub x_provost?: ManifestExtra,
    }
}

/// The keys that a list of digests must have.
pub const REQUIRED_HASHES: [&str; 6] = [
    "contract.json",
    "events.jsonl",
    "patch.diff",
    "diff_name_only.txt",
    "reports/review_report.json",
    "reports/test_report.json",
];

fn with_required_keys<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<BTreeMap<String, Sha256>, D::Error> {
    let hashes = BTreeMap::deserialize(reader)?;
    match REQUIRED_HASHES
        .iter()
        .find(|key| !hashes.contains_key(**key))
    {
        Some(key) => Err(D::Error::custom(format!("the key `{key}` is missing"))),
        None => Ok(hashes),
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunStatus {
    /// The run is still active.
    Running,
    /// Every gate allowed it.
    Success,
    /// A gate refused it, or a step failed.
    Failure,
}

closed! {
    /// One task of a run.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskEntry {
        /// The task.
        pub task_id: String,
        /// The role it was assigned to.
        pub role: Role,
        /// Its contract.
        pub contract: ArtifactRef,
        /// Its state.
        pub status: TaskState,
        /// The agent that worked on it.
        pub assigned_agent_id?: String,
        /// The id of the agent's conversation.
        pub thread_id?: String,
        /// The task result.
        pub result?: ArtifactRef,
        /// The review report.
        pub review_report?: ArtifactRef,
        /// The test report.
        pub test_report?: ArtifactRef,
    }
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskState {
    Pending,
    Running,
    Success,
    Failed,
    Blocked,
    Skipped,
}

closed! {
    /// Further digests.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Integrity {
        /// SHA-256 of the contract's canonical spelling.
        pub contract_sha256?: Sha256,
        /// The path of the contract's signature.
        pub contract_signature_path?: String,
        /// SHA-256 of that signature.
        pub contract_signature_sha256?: Sha256,
        /// The path of a separate hash chain; Provost's ledger is its own chain.
        pub events_hashchain_path?: String,
        /// SHA-256 of the manifest, which cannot contain it; the signed statement does.
        pub manifest_sha256?: Sha256,
    }
}

closed! {
    /// What Provost adds to a manifest: the trees, and the paths of directories that the format
    /// names differently.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct ManifestExtra {
        /// The hash function of the repository's object ids.
        pub object_format: ObjectFormat,
        /// The commit the candidate is compared with.
        pub base_commit: Oid,
        /// Its tree.
        pub base_tree: Oid,
        /// The tree that would land; absent when the run made none.
        pub tree?: Oid,
        /// Directories by their name in the format: `codex` is `agent` here.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub directories: BTreeMap<String, String>,
        /// Facts that no gate depends on.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        pub facts: Map<String, Value>,
    }
}
