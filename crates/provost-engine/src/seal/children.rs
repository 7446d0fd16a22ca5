//! The files of a bundle about the children of a run: one for each, computed from the ledger.

use provost_core::children::{ChildBudget, ChildState, FamilyMember};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::run::State;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bundle::formats::VerdictFile;
use crate::ports::PortError;

/// `children/<run_id>.json`: what a child was given, what it used, and how it ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChildFile<'a> {
    run_id: &'a str,
    key: &'a str,
    read_only: bool,
    package_fingerprint: &'a str,
    parent_fingerprint: &'a str,
    base_commit: &'a Oid,
    base_tree: &'a Oid,
    given: ChildBudget,
    /// Absent if the child was lost with its driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<ChildBudget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VerdictFile>")]
    verdict: Option<&'a Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<&'a Oid>,
    /// SHA-256 of the signed statement of the child's own bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation_sha256: Option<&'a str>,
}

/// The files about the children of `state`, with their names in the bundle.
pub(crate) fn files(state: &State) -> Result<Vec<(String, Vec<u8>)>, PortError> {
    let file = |member: &FamilyMember| {
        let start = &member.start;
        let end = match &member.state {
            ChildState::Ended(end) => Some(end.as_ref()),
            ChildState::Running | ChildState::Lost => None,
        };
        let file = ChildFile {
            run_id: &start.run_id,
            key: &start.key,
            read_only: start.read_only,
            package_fingerprint: &start.fingerprint,
            parent_fingerprint: &start.parent_fingerprint,
            base_commit: &start.base_commit,
            base_tree: &start.base_tree,
            given: start.given,
            spent: end.map(|end| end.spent),
            verdict: end.map(|end| &end.verdict),
            tree: end.and_then(|end| end.tree.as_ref()),
            attestation_sha256: end.and_then(|end| end.attestation_sha256.as_deref()),
        };
        let text = json::pretty(&file).map_err(|error| PortError::of(Code::Bug, error))?;
        Ok((name(&start.run_id), text.into_bytes()))
    };
    state.family.members.iter().map(file).collect()
}

/// The name of the file about the child `run_id`.
fn name(run_id: &str) -> String {
    format!("children/{run_id}.json")
}
