//! The agent registry of the format: which agents may be given a task.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle::report::one_or_more;
use crate::closed::closed;
use crate::contract::document::{Network, Role};
use crate::json;

const TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../policies/agent_registry.json"
));

/// The agent of a run that was started from flags.
pub const WORKER: &str = "agent-worker";

/// The agent that represents the user.
pub const OWNER: &str = "agent-pm";

closed! {
    /// `agent_registry.v1`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct AgentRegistry {
        /// The version of the format.
        pub version: RegistryVersion,
        /// All agents that may be given a task; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub agents: Vec<RegisteredAgent>,
        /// What each role is for, by the name of the role.
        pub role_contracts?: std::collections::BTreeMap<Role, RoleTerms>,
    }
}

/// The one version of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RegistryVersion {
    V1,
}

closed! {
    /// An agent that may be given a task.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct RegisteredAgent {
        /// Its name.
        pub agent_id: String,
        /// Its role.
        pub role: Role,
        /// Path of its own settings; empty if it has none.
        pub codex_home: String,
        /// What it may use unless a contract says less.
        pub defaults: Defaults,
        /// A description for people.
        pub description?: String,
        /// What it can do.
        pub capabilities?: Capabilities,
    }
}

/// What an agent may use unless a contract says less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// File access.
    pub sandbox: Sandbox,
    /// When it must ask for approval.
    pub approval_policy: ApprovalPolicy,
    /// Network access.
    pub network: Network,
}

/// What an agent may do to files. A registry can name the last one; a contract cannot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

/// When an agent has to ask; later ones let more happen without a person.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    Untrusted,
    OnRequest,
    Never,
}

closed! {
    /// What an agent can do.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Capabilities {
        /// The tools it can be given.
        pub mcp_tools?: Vec<String>,
        /// Further notes.
        pub notes?: String,
    }
}

closed! {
    /// What a role is for.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct RoleTerms {
        pub purpose?: String,
        pub system_prompt_ref?: String,
        pub skills_bundle_ref?: String,
        pub mcp_bundle_ref?: String,
        pub handoff_eligible?: bool,
        pub required_downstream_roles?: Vec<Role>,
        pub fail_closed_conditions?: Vec<String>,
    }
}

/// The agents of the shipped registry.
pub(crate) fn agents() -> &'static [RegisteredAgent] {
    static AGENTS: OnceLock<Vec<RegisteredAgent>> = OnceLock::new();
    // A registry that does not parse has no agents; a test keeps it parsing.
    let read = || {
        json::parse_as::<AgentRegistry>(TEXT.as_bytes()).map_or_else(|_| Vec::new(), |r| r.agents)
    };
    AGENTS.get_or_init(read)
}

/// Whether `bytes` are the shipped registry.
pub(crate) fn is_shipped(bytes: &[u8]) -> bool {
    bytes == TEXT.as_bytes()
}

pub fn knows(agent_id: &str, role: Role) -> bool {
    agents()
        .iter()
        .any(|agent| agent.agent_id == agent_id && agent.role == role)
}

pub fn names(agent_id: &str) -> bool {
    agents().iter().any(|agent| agent.agent_id == agent_id)
}

/// The tools that the registry lists for this agent; `None` if it lists none.
pub fn tools(agent_id: &str) -> Option<&'static [String]> {
    let agent = agents().iter().find(|agent| agent.agent_id == agent_id)?;
    agent.capabilities.as_ref()?.mcp_tools.as_deref()
}

/// The most that the shipped registry grants to any agent of this role.
pub fn defaults(role: Role) -> Option<&'static Defaults> {
    let found = agents().iter().find(|agent| agent.role == role);
    found.map(|agent| &agent.defaults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_an_agent() {
        let registry: AgentRegistry = json::parse_as(TEXT.as_bytes()).unwrap();
        let mut roles: Vec<Role> = registry.agents.iter().map(|agent| agent.role).collect();
        roles.sort();
        roles.dedup();
        assert_eq!(roles.len(), 15);
        assert!(roles.into_iter().all(|role| defaults(role).is_some()));
        assert!(knows(WORKER, Role::Worker) && knows(OWNER, Role::Pm));
        assert!(!knows(WORKER, Role::Reviewer) && !knows("agent-unknown", Role::Worker));
    }

    #[test]
    fn no_agent_is_shipped_with_full_access() {
        let all = agents().iter();
        let full = all.filter(|agent| agent.defaults.sandbox == Sandbox::DangerFullAccess);
        assert_eq!(full.count(), 0);
    }
}
