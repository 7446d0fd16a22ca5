//! Makes the contract that a user types on the command line.

use super::document::{
    AcceptMode, AcceptanceTest, Agent, Artifact, Document, Extension, Filesystem, Inputs, LogPaths,
    LogRefs, Network, OutputType, Permissions, RequiredOutput, Role, Rollback, RollbackStrategy,
    Shell, TaskType, TimeoutRetry, ToolPermissions,
};
use super::limits::Asked;
use super::{RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use crate::agent_registry;
use crate::net::endpoint::Endpoint;
use crate::object::sha256;
use crate::tier::Tier;

#[derive(Debug, Clone, Default)]
pub struct Typed {
    /// The instruction for the agent.
    pub objective: String,
    /// Where the agent may write.
    pub allow: Vec<String>,
    /// Where it may not write, even inside of `allow`.
    pub forbid: Vec<String>,
    /// The commands that must pass.
    pub accept: Vec<String>,
    /// The revision to start from, instead of HEAD.
    pub base: Option<String>,
    /// The branch the result is for, instead of the one that is checked out.
    pub target: Option<String>,
    /// When the agent, or one acceptance command, is ended.
    pub timeout_sec: u64,
    /// How often another attempt may fix what was refused.
    pub max_retries: u32,
    /// The other limits at which it is ended.
    pub limits: Asked,
    /// The tier of the sandboxes, instead of the strongest.
    pub tier: Option<Tier>,
    /// The network endpoints that the agent may reach.
    pub net: Vec<Endpoint>,
    /// Kinds of change that are refused otherwise.
    pub permit: Permissions,
    /// What the acceptance commands have to show, instead of that they pass.
    pub accept_mode: Option<AcceptMode>,
    /// Whether the agent may ask for more while it works.
    pub may_ask: bool,
    /// Why the agent needs the user's files and any place, if it does.
    pub full_access: Option<String>,
}

impl Typed {
    /// The contract of the run `run_id` that begins at `now`, in milliseconds.
    pub fn document(self, run_id: &str, now: i64) -> Document {
        let agent = |role, id: &str| Agent {
            role,
            agent_id: id.to_owned(),
            codex_thread_id: None,
        };
        let test = |(number, cmd)| AcceptanceTest {
            name: format!("accept-{}", number + 1),
            cmd,
            must_pass: true,
        };
        let network = if self.net.is_empty() {
            Network::Deny
        } else {
            Network::Allow
        };
        Document {
            task_id: format!("task-{now}"),
            task_type: Some(TaskType::Implement),
            parent_task_id: None,
            owner_agent: agent(Role::Pm, agent_registry::OWNER),
            assigned_agent: agent(Role::Worker, agent_registry::WORKER),
            inputs: inputs(self.objective),
            required_outputs: vec![patch()],
            allowed_paths: self.allow,
            forbidden_actions: Vec::new(),
            acceptance_tests: self.accept.into_iter().enumerate().map(test).collect(),
            tool_permissions: ToolPermissions {
                filesystem: Filesystem::WorkspaceWrite,
                shell: Shell::Never,
                network,
                mcp_tools: Vec::new(),
            },
            mcp_tool_set: vec!["none".to_owned()],
            timeout_retry: TimeoutRetry {
                timeout_sec: self.timeout_sec,
                max_retries: self.max_retries,
                retry_backoff_sec: 0,
            },
            rollback: Rollback {
                strategy: RollbackStrategy::WorktreeDrop,
                baseline_ref: self.base.unwrap_or_else(|| "HEAD".to_owned()),
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
            x_provost: Some(Extension {
                forbid: self.forbid,
                shares: Vec::new(),
                tier: self.tier.map(|tier| tier.name().to_owned()),
                net: self.net.iter().map(ToString::to_string).collect(),
                loopback: None,
                permit: (self.permit != Permissions::default()).then_some(self.permit),
                target: self.target,
                author: Some("person".to_owned()),
                accept_mode: self.accept_mode,
                limits: (!self.limits.is_empty()).then_some(self.limits),
                children: None,
                may_ask: self.may_ask.then_some(true),
                full_access: self.full_access,
            }),
        }
    }
}

fn patch() -> RequiredOutput {
    RequiredOutput {
        name: "patch".to_owned(),
        r#type: OutputType::Patch,
        acceptance: "every acceptance command passes".to_owned(),
    }
}

fn inputs(spec: String) -> Inputs {
    Inputs {
        spec,
        artifacts: vec![Artifact {
            name: "output_schema".to_owned(),
            uri: RESULT_SCHEMA.to_owned(),
            sha256: sha256(RESULT_SCHEMA_TEXT.as_bytes()),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::resolve;
    use crate::gate::command::{CommandPolicy, Trust};

    const NOW: i64 = 1_767_225_600_000;

    #[test]
    fn what_is_typed_is_a_contract_that_can_be_run() {
        let typed = Typed {
            objective: "Fix it".to_owned(),
            allow: vec!["src".to_owned()],
            accept: vec!["my-test --all".to_owned(), "true".to_owned()],
            timeout_sec: 60,
            net: vec!["api.example.com:443".parse().unwrap()],
            ..Typed::default()
        };
        let policy = CommandPolicy::shipped().unwrap();
        let document = typed.document("run-1", NOW);
        assert_eq!(document.task_id, "task-1767225600000");
        assert_eq!(document.rollback.baseline_ref, "HEAD");
        assert!(document.x_provost.as_ref().unwrap().permit.is_none());
        let contract = resolve(document.clone(), &policy, Trust::TypedByPerson).unwrap();
        assert_eq!(contract.tests[0].argv, ["my-test", "--all"]);
        assert_eq!(contract.net.len(), 1);
        // Only the user who typed it may have any command.
        assert!(resolve(document, &policy, Trust::FromFile).is_err());
    }

    #[test]
    fn what_is_typed_without_a_command_is_no_contract() {
        let typed = Typed {
            objective: "Fix it".to_owned(),
            allow: vec!["src".to_owned()],
            timeout_sec: 60,
            ..Typed::default()
        };
        let policy = CommandPolicy::shipped().unwrap();
        let document = typed.document("run-1", NOW);
        let problems = resolve(document, &policy, Trust::TypedByPerson).unwrap_err();
        assert_eq!(problems[0].path, "/acceptance_tests");
    }
}
