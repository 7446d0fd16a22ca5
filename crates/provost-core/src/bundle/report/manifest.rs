//! The manifest of a run: what it was, and the digest of every file it left.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::role_binding::RoleBinding;
use super::shape::{ArtifactRef, Sha256, Time, eight_or_more, not_empty, one_or_more, present};
use super::surroundings::{
    Model, Observability, PolicyPack, Repo, Runner, Trace, Versions, Workflow,
};
use crate::contract::document::Role;
use crate::object::{ObjectFormat, Oid};

/// `run_manifest.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunManifest {
    /// The run.
    #[serde(deserialize_with = "eight_or_more")]
    #[schemars(length(min = 8))]
    pub run_id: String,
    /// When it began.
    pub created_at: Time,
    /// When it ended.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub finished_at: Option<Time>,
    /// How it ended.
    pub status: RunStatus,
    /// Its task.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub task_id: Option<String>,
    /// Why it failed.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub failure_reason: Option<String>,
    /// What a reader should know besides.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub notes: Option<String>,
    /// What was asked for.
    #[serde(deserialize_with = "not_empty")]
    #[schemars(length(min = 1))]
    pub user_request: String,
    /// Joins the records of one run across tools.
    #[serde(deserialize_with = "eight_or_more")]
    #[schemars(length(min = 8))]
    pub trace_id: String,
    /// Whether this was a run for diagnosis.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub diagnostic: Option<bool>,
    /// What ran the agent.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub runner: Option<Runner>,
    /// The policy it ran under.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub policy_pack: Option<PolicyPack>,
    /// The repository.
    pub repo: Repo,
    /// The versions of what took part.
    pub versions: Versions,
    /// The model behind the agent.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<Model>,
    /// How the role of the contract was bound.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub role_binding_summary: Option<RoleBinding>,
    /// The tasks of the run; never empty.
    #[serde(deserialize_with = "one_or_more")]
    #[schemars(length(min = 1))]
    pub tasks: Vec<TaskEntry>,
    /// What it made besides.
    pub artifacts: Vec<ArtifactRef>,
    /// The digest of every file of evidence, by its path in the bundle.
    #[serde(deserialize_with = "with_required_keys")]
    #[schemars(extend("required" = REQUIRED_HASHES))]
    pub evidence_hashes: BTreeMap<String, Sha256>,
    /// Digests beside the list.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub integrity: Option<Integrity>,
    /// Where the trace is.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub trace: Option<Trace>,
    /// The workflow engine around the run.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub workflow: Option<Workflow>,
    /// How it was observed.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub observability: Option<Observability>,
    /// What Provost adds.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub x_provost: Option<ManifestExtra>,
}

/// The keys without which a list of digests is no evidence.
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
    /// It still goes on.
    Running,
    /// Every gate let it through.
    Success,
    /// Something did not.
    Failure,
}

/// One task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// The task.
    pub task_id: String,
    /// Who was to do it.
    pub role: Role,
    /// What was asked.
    pub contract: ArtifactRef,
    /// How far it came.
    pub status: TaskState,
    /// The agent that did it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub assigned_agent_id: Option<String>,
    /// The agent's conversation.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub thread_id: Option<String>,
    /// The task result.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<ArtifactRef>,
    /// The review report.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub review_report: Option<ArtifactRef>,
    /// The test report.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub test_report: Option<ArtifactRef>,
}

/// How far a task came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are the format's and say it all")]
pub enum TaskState {
    Pending,
    Running,
    Success,
    Failed,
    Blocked,
    Skipped,
}

/// Digests beside the list of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    /// Of the contract's canonical spelling.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub contract_sha256: Option<Sha256>,
    /// Where a signature of the contract lies.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub contract_signature_path: Option<String>,
    /// Of that signature.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub contract_signature_sha256: Option<Sha256>,
    /// Where a chain beside the ledger lies; our ledger is its own chain.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub events_hashchain_path: Option<String>,
    /// Of the manifest, which cannot hold it; the signed statement does.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub manifest_sha256: Option<Sha256>,
}

/// What Provost adds to a manifest: the trees, and where to find what others call differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestExtra {
    /// How the repository names its objects.
    pub object_format: ObjectFormat,
    /// The commit the candidate is compared with.
    pub base_commit: Oid,
    /// Its tree.
    pub base_tree: Oid,
    /// The tree that would land; absent when the run made none.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub tree: Option<Oid>,
    /// Directories by the name the format has for them: `codex` is `agent` here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// Facts that decide nothing.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
}
