//! The contract of a child: that of its parent, with the task, the scope and the share of the child.

use super::admit::Asking;
use super::family::{ChildBudget, ChildOf};
use super::grant::ChildGrant;
use crate::contract::document::{
    Document, Extension, Filesystem, LogPaths, LogRefs, Network, Rollback, RollbackStrategy,
    TimeoutRetry,
};

/// The contract of the child.
pub(super) fn document(asking: &Asking<'_>, grant: &ChildGrant, child_of: &ChildOf) -> Document {
    let Asking { opened, task, .. } = *asking;
    let mut document = opened.contract.clone();
    let (given, nested) = (child_of.given, nested(child_of.given, task.children));
    let parent_task = document.task_id.clone();
    let stem: String = parent_task.chars().take(96).collect();
    document.task_id = format!("{stem}.child-{}", asking.family.members.len() + 1);
    document.parent_task_id = Some(parent_task);
    document.inputs.spec.clone_from(&task.task);
    let is_schema = |name: &str| name.starts_with("output_schema");
    document
        .inputs
        .artifacts
        .retain(|artifact| is_schema(&artifact.name));
    if !task.read_only {
        document.allowed_paths.clone_from(&task.write);
    }
    document.audit_only = task.read_only.then_some(true);
    document.tool_permissions.filesystem = if task.read_only {
        Filesystem::ReadOnly
    } else {
        Filesystem::WorkspaceWrite
    };
    document.tool_permissions.network = if task.net.is_empty() {
        Network::Deny
    } else {
        Network::Allow
    };
    document.timeout_retry = TimeoutRetry {
        timeout_sec: given.seconds - nested.seconds,
        max_retries: 0,
        retry_backoff_sec: 0,
    };
    document.rollback = Rollback {
        strategy: RollbackStrategy::WorktreeDrop,
        baseline_ref: opened.base_commit.to_string(),
        target_ref: None,
    };
    document.log_refs = LogRefs {
        run_id: asking.child.to_owned(),
        paths: LogPaths::default(),
    };
    document.handoff_chain = None;
    document.role_contract = None;
    let parent = document.x_provost.take().unwrap_or_default();
    let mut limits = parent.limits.unwrap_or_default();
    limits.processes = Some(given.processes - nested.processes);
    document.x_provost = Some(Extension {
        net: task.net.clone(),
        limits: Some(limits),
        shares: Vec::new(),
        target: None,
        children: Some(ChildGrant {
            count: task.children,
            depth: Some(grant.levels().saturating_sub(1)),
            tokens: Some(nested.tokens),
            micro_usd: grant.micro_usd.map(|_| nested.micro_usd),
            seconds: Some(nested.seconds),
            processes: Some(nested.processes),
            models: None,
            messages: Some(task.messages.clone()),
        }),
        ..parent
    });
    document
}

/// The part of a share that is for the children of the child: half of it, if it may have any.
fn nested(given: ChildBudget, children: u32) -> ChildBudget {
    if children == 0 {
        return ChildBudget::default();
    }
    ChildBudget {
        tokens: given.tokens / 2,
        micro_usd: given.micro_usd / 2,
        seconds: given.seconds / 2,
        processes: given.processes / 2,
    }
}
