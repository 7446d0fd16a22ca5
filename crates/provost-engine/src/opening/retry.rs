//! Decides how a retry of a run begins.

use provost_core::approval;
use provost_core::bundle::layout::BundleFormat;
use provost_core::code::Code;
use provost_core::contract::{self, document::Document};
use provost_core::lease::Owner;
use provost_core::net::endpoint::Endpoint;
use provost_core::run::State;
use provost_core::run::fact::{Opened, WorkspaceChoice};

use super::{Origin, base, widenings};
use crate::ports::PortError;

/// The run that a user wants to retry.
#[derive(Debug, Clone)]
pub struct RetryRequest {
    /// The revision to start from, instead of the same commit.
    pub base: Option<String>,
    /// How workspaces are made, instead of what the policy says.
    pub workspace: Option<WorkspaceChoice>,
    /// The process that drives the run.
    pub owner: Owner,
    pub version: String,
}

/// The first record of a retry of the run `before`: the same contract, agent and reviewer, under
/// the policy of the commit that the retry starts from.
pub fn again(
    origin: &dyn Origin,
    before: &State,
    request: RetryRequest,
) -> Result<Opened, PortError> {
    let opened = &before.opened;
    if opened.agent.is_empty() {
        let run = &before.names.run_id;
        let reason = format!("{run} judged a revision, and has no agent that could start again");
        let hint = format!("provost retry {run} --keep-work judges the revision again");
        return Err(PortError::new(Code::UsageError, reason).hint(hint));
    }
    let again = of_document(origin, before, opened.contract.clone(), request)?;
    Ok(Opened {
        work: None,
        continues: None,
        ..again
    })
}

/// The same with the contract `document`.
pub(super) fn of_document(
    origin: &dyn Origin,
    before: &State,
    mut document: Document,
    again: RetryRequest,
) -> Result<Opened, PortError> {
    let opened = &before.opened;
    if let Some(child) = &opened.child {
        // Its base is what an agent wrote, and no policy is read from there.
        let reason = format!("{} is a child of {}", before.names.run_id, child.run);
        let hint = format!("provost retry {} starts its parent again", child.run);
        return Err(PortError::new(Code::UsageError, reason).hint(hint));
    }
    let same = opened.base_commit.to_string();
    let base_commit = base(origin, again.base.as_deref().unwrap_or(&same))?;
    let named = origin.resolve(&document.rollback.baseline_ref);
    if named.ok().as_ref() != Some(&base_commit) {
        document.rollback.baseline_ref = base_commit.to_string();
    }
    let base_tree = origin.tree(&base_commit)?;
    let policy = origin.policy(&base_tree)?;
    let credentials = opened.credentials.iter();
    let named: Vec<Endpoint> = credentials.map(|it| it.endpoint.clone()).collect();
    let widenings = if opened.typed {
        approval::full_access(&document)
    } else {
        widenings(origin, &document, (&policy, &base_tree), &named)?
    };
    let artifacts = super::artifacts(origin, &base_tree, &document)?;
    let references = super::references(origin, &base_tree, &document)?;
    let additions = super::additions(origin, &base_tree, &document)?;
    let digest = contract::digest(&document);
    // What the user gave to sandboxes stays given; whether it changed is seen when it is mounted.
    let given = opened
        .prepare
        .iter()
        .filter(|step| step.mount.is_some())
        .cloned();
    Ok(Opened {
        artifacts,
        references: Some(references),
        additions,
        contract_sha256: digest.map_err(|error| PortError::of(Code::Bug, error))?,
        // The file was read for the first run, and may name another base.
        contract_source: None,
        contract: document,
        base_commit,
        base_tree,
        object_format: origin.format(),
        protect: policy.protect,
        commands: policy.commands,
        workspace: again.workspace.unwrap_or(policy.workspace),
        cache: policy.cache,
        prepare: policy.prepare.into_iter().chain(given).collect(),
        loopback: !policy.loopback_off,
        limits: policy.limits,
        least_tier: policy.least_tier,
        ask: policy.ask,
        refuses_programs: true,
        checks_thread: true,
        widenings,
        parent: Some(before.names.run_id.clone()),
        owner: again.owner,
        format: BundleFormat::NEWEST,
        version: again.version,
        ..opened.clone()
    })
}
