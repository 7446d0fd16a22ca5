//! Read models of roles: what a contract makes of its role, and how that was bound to an agent, for
//! a run and for a case.
//!
//! They are derived from contracts and decide nothing; each says so.

use provost_core::bundle::report::{BindingAuthority, ExecutionAuthority, RoleBinding};
use provost_core::contract::additions;
use provost_core::contract::document::Role;
use provost_core::contract::role::{
    RoleContract, RoleHandoff, RoleIdentity, RolePermissions, RunnerKind, RuntimeBinding,
};
use provost_core::run::State;
use provost_core::run::fact::Opened;
use serde::Serialize;

use super::archive::RunArchive;
use crate::bundle::compose::role_binding;
use crate::case::CaseReport;

/// `role_contract_summary`: the resolved view of the role of a contract, before a run and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoleContractSummary {
    pub authority: BindingAuthority,
    pub execution_authority: ExecutionAuthority,
    /// Where the view comes from.
    pub source: &'static str,
    #[serde(flatten)]
    pub role: RoleContract,
    pub output_schema: Option<BoundSchema>,
}

/// The schema that the result is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoundSchema {
    pub uri: String,
    pub sha256: String,
    /// Whether the repository wrote it; otherwise it is shipped.
    pub own: bool,
}

impl RoleContractSummary {
    pub fn of(opened: &Opened) -> Self {
        let (contract, additions) = (&opened.contract, &opened.additions);
        let source = match (&contract.role_contract, &additions.registry_sha256) {
            (Some(_), _) => "role_contract of the contract",
            (None, Some(_)) => "the contract, and the registry of the repository",
            (None, None) => "the contract",
        };
        let bound = additions::bound_schema(contract).map(|(_, artifact)| BoundSchema {
            uri: artifact.uri.clone(),
            sha256: artifact.sha256.clone(),
            own: additions.bound(contract).is_some(),
        });
        Self {
            authority: BindingAuthority::ContractDerivedReadModel,
            execution_authority: ExecutionAuthority::TaskContract,
            source,
            role: contract
                .role_contract
                .clone()
                .unwrap_or_else(|| resolved(opened)),
            output_schema: bound,
        }
    }

    /// The role in a line, if it is not the usual one.
    pub fn line(&self) -> Option<String> {
        let RoleContract {
            identity,
            tool_permissions,
            ..
        } = &self.role;
        let schema = self.output_schema.as_ref();
        let own = schema.filter(|schema| schema.own);
        if identity.role == Role::Worker && own.is_none() {
            return None;
        }
        let RolePermissions {
            filesystem,
            shell,
            network,
        } = tool_permissions;
        let mut line = format!(
            "role: {}, {}; {}, shell {}, network {}",
            word(identity.role),
            identity.agent_id,
            word(filesystem),
            word(shell),
            word(network)
        );
        if let Some(schema) = schema {
            line += &format!("; its result fits {}", schema.uri);
        }
        Some(line)
    }
}

/// A value as its format writes it.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// The view that follows from the contract, where it has none of its own.
fn resolved(opened: &Opened) -> RoleContract {
    let (contract, agent) = (&opened.contract, &opened.contract.assigned_agent);
    let terms = opened.additions.terms.clone();
    let terms = terms.as_ref();
    let options = contract.runtime_options.as_ref();
    let runner = options.and_then(|options| options.runner);
    let chain = contract.handoff_chain.as_ref();
    let permissions = &contract.tool_permissions;
    let purpose = terms.and_then(|terms| terms.purpose.clone());
    let conditions = terms.and_then(|terms| terms.fail_closed_conditions.clone());
    RoleContract {
        identity: RoleIdentity {
            role: agent.role,
            agent_id: agent.agent_id.clone(),
        },
        purpose: purpose.unwrap_or_else(|| purpose_of(agent.role).to_owned()),
        system_prompt_ref: terms.and_then(|terms| terms.system_prompt_ref.clone()),
        skills_bundle_ref: terms.and_then(|terms| terms.skills_bundle_ref.clone()),
        mcp_bundle_ref: terms.and_then(|terms| terms.mcp_bundle_ref.clone()),
        runtime_binding: RuntimeBinding {
            runner: runner.map(|runner| runner_word(runner).to_owned()),
            provider: options.and_then(|options| options.provider.clone()),
            model: None,
        },
        tool_permissions: RolePermissions {
            filesystem: permissions.filesystem,
            shell: permissions.shell,
            network: permissions.network,
        },
        resolved_mcp_tool_set: contract.mcp_tool_set.clone(),
        handoff: RoleHandoff {
            eligible: terms.and_then(|terms| terms.handoff_eligible) == Some(true),
            required_downstream_roles: terms
                .and_then(|terms| terms.required_downstream_roles.clone())
                .unwrap_or_default(),
            chain_roles: chain
                .and_then(|chain| chain.roles.clone())
                .unwrap_or_default(),
            max_handoffs: chain.and_then(|chain| chain.max_handoffs),
        },
        fail_closed_conditions: conditions.unwrap_or_else(|| vec![CONDITION.to_owned()]),
    }
}

/// What stops a run whatever its role is.
const CONDITION: &str = "a gate refuses, or lacks what it judges";

fn purpose_of(role: Role) -> &'static str {
    match role {
        Role::Pm => "writes the contract of a request",
        Role::TechLead => "divides a contract into parts",
        Role::Reviewer => "reviews a change, and changes nothing",
        Role::TestRunner | Role::Test => "runs commands and reports how they ended",
        Role::Searcher | Role::Researcher => "finds what a question needs, with its sources",
        Role::Worker
        | Role::UiUx
        | Role::Frontend
        | Role::Backend
        | Role::Ai
        | Role::Security
        | Role::Infra
        | Role::Ops => "changes files inside the scope",
    }
}

fn runner_word(runner: RunnerKind) -> &'static str {
    match runner {
        RunnerKind::Agents => "agents",
        RunnerKind::AppServer | RunnerKind::AppServerOld => "app-server",
        RunnerKind::Codex => "codex",
        RunnerKind::Claude => "claude",
    }
}

/// `workflow_case_read_model`: the binding of the latest run of a case.
#[derive(Debug, Serialize)]
pub struct WorkflowCaseModel {
    pub authority: BindingAuthority,
    pub execution_authority: ExecutionAuthority,
    pub case_id: String,
    /// The run that it was derived from; absent as long as no run can be read.
    pub source_run_id: Option<String>,
    pub role_binding_summary: Option<RoleBinding>,
}

impl WorkflowCaseModel {
    pub fn of(archive: &dyn RunArchive, report: &CaseReport<'_>) -> Self {
        let parts = report.parts.iter().flat_map(|part| &part.runs);
        let runs = parts.chain(&report.whole).map(|run| run.run_id);
        // Names of runs sort by time.
        let read = |run: &str| Some((run.to_owned(), super::state(archive, run).ok()?));
        let latest: Option<(String, State)> = runs.max().and_then(read);
        Self {
            authority: BindingAuthority::ContractDerivedReadModel,
            execution_authority: ExecutionAuthority::TaskContract,
            case_id: report.case_id.to_owned(),
            role_binding_summary: latest.as_ref().map(|(_, state)| role_binding(state)),
            source_run_id: latest.map(|(run, _)| run),
        }
    }
}
