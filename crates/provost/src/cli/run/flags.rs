//! Turns the flags of `provost run` into the contract they stand for.

use provost_core::contract::document::{
    AcceptanceTest, Agent, Artifact, Document, Extension, Filesystem, Inputs, LogPaths, LogRefs,
    Network, OutputType, Permissions, RequiredOutput, Role, Rollback, RollbackStrategy, Shell,
    TaskType, TimeoutRetry, ToolPermissions,
};
use provost_core::contract::{RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use provost_core::object::sha256;
use provost_core::roster;
use provost_host::clock;

use super::Run;

/// The contract that the flags stand for, of the run `run_id`.
pub(super) fn document(run: &Run, run_id: &str) -> Document {
    let agent = |role, id: &str| Agent {
        role,
        agent_id: id.to_owned(),
        codex_thread_id: None,
    };
    let test = |(number, cmd): (usize, &String)| AcceptanceTest {
        name: format!("accept-{}", number + 1),
        cmd: cmd.clone(),
        must_pass: true,
    };
    let now = clock::now_millis();
    Document {
        task_id: format!("task-{now}"),
        task_type: Some(TaskType::Implement),
        parent_task_id: None,
        owner_agent: agent(Role::Pm, roster::OWNER),
        assigned_agent: agent(Role::Worker, roster::WORKER),
        inputs: inputs(run),
        required_outputs: vec![RequiredOutput {
            name: "patch".to_owned(),
            r#type: OutputType::Patch,
            acceptance: "every acceptance command passes".to_owned(),
        }],
        allowed_paths: run.allow.clone(),
        forbidden_actions: Vec::new(),
        acceptance_tests: run.accept.iter().enumerate().map(test).collect(),
        tool_permissions: ToolPermissions {
            filesystem: Filesystem::WorkspaceWrite,
            shell: Shell::Never,
            network: if run.net.places().is_empty() {
                Network::Deny
            } else {
                Network::Allow
            },
            mcp_tools: Vec::new(),
        },
        mcp_tool_set: vec!["none".to_owned()],
        timeout_retry: TimeoutRetry {
            timeout_sec: run.timeout,
            max_retries: 0,
            retry_backoff_sec: 0,
        },
        rollback: Rollback {
            strategy: RollbackStrategy::WorktreeDrop,
            baseline_ref: run.base.clone().unwrap_or_else(|| "HEAD".to_owned()),
            target_ref: None,
        },
        evidence_links: Vec::new(),
        log_refs: LogRefs {
            run_id: run_id.to_owned(),
            paths: LogPaths::default(),
        },
        policy_pack: None,
        handoff_chain: None,
        audit_only: None,
        browser_policy: None,
        runtime_options: None,
        role_contract: None,
        x_provost: Some(extension(run)),
    }
}

fn inputs(run: &Run) -> Inputs {
    Inputs {
        spec: run.objective.clone().unwrap_or_default(),
        artifacts: vec![Artifact {
            name: "output_schema".to_owned(),
            uri: RESULT_SCHEMA.to_owned(),
            sha256: sha256(RESULT_SCHEMA_TEXT.as_bytes()),
        }],
    }
}

fn extension(run: &Run) -> Extension {
    let permit = Permissions {
        oracle: run.permit_oracle.clone(),
        governing: run.permit_governing.clone(),
        binary: run.allow_binary.clone(),
        symlink: run.permit_symlink.clone(),
    };
    Extension {
        forbid: run.forbid.clone(),
        net: run.net.places().iter().map(ToString::to_string).collect(),
        permit: (permit != Permissions::default()).then_some(permit),
        target: run.target.clone(),
        author: Some("person".to_owned()),
        ..Extension::default()
    }
}
