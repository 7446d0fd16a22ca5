//! The parts of a contract that define how a task is run: its chain of roles, its browser, its
//! runtime, and the resolved view of its role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Filesystem, Network, Role, Shell};
use crate::bundle::report::{Nullable, nullable};
use crate::closed::closed;

closed! {
    /// The roles that a task passes through.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct HandoffChain {
        /// Whether the task is passed on.
        pub enabled?: bool,
        /// The roles, in order.
        pub roles?: Vec<Role>,
        /// How often the task is passed on at most.
        #[schemars(range(min = 1, max = 10))]
        pub max_handoffs?: u32,
    }
}

closed! {
    /// What a browser may do.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct BrowserPolicy {
        /// The kind of profile that it uses.
        pub profile_mode?: ProfileMode,
        /// The profile.
        pub profile_ref?: ProfileRef,
        /// The cookies.
        pub cookie_ref?: CookieRef,
        /// Whether it hides that it is automated.
        pub stealth_mode?: StealthMode,
        /// Whether it imitates a person.
        pub human_behavior?: HumanBehavior,
    }
}

/// The kind of profile that a browser uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileMode {
    Ephemeral,
    AllowProfile,
    CookieFile,
}

closed! {
    /// A browser profile.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct ProfileRef {
        /// The directory of the profile.
        pub profile_dir?: String,
        /// The name of the profile.
        pub profile_name?: String,
    }
}

closed! {
    /// A file of cookies.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct CookieRef {
        /// The path of the file.
        pub cookie_path?: String,
    }
}

/// Whether a browser hides that it is automated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StealthMode {
    None,
    Lite,
    Plugin,
}

closed! {
    /// Whether a browser imitates a person.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct HumanBehavior {
        /// Whether it imitates a person.
        pub enabled?: bool,
        /// How closely it imitates a person.
        pub level?: BehaviorLevel,
    }
}

/// How closely a browser imitates a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BehaviorLevel {
    Low,
    Medium,
    High,
}

closed! {
    /// How the agent is run.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct RuntimeOptions {
        /// The kind of runner.
        pub runner?: RunnerKind,
        /// The provider of the model.
        #[schemars(regex(pattern = r"^[A-Za-z0-9._-]+$"))]
        pub provider?: String,
        /// How tools are reached.
        pub execution?: Execution,
        /// Whether commands that prove nothing are refused.
        pub strict_acceptance?: bool,
    }
}

/// The kind of runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
    Agents,
    #[serde(rename = "app-server")]
    AppServer,
    /// The same, in the spelling of older documents.
    #[serde(rename = "app_server")]
    AppServerOld,
    Codex,
    Claude,
}

closed! {
    /// How tools are reached.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Execution {
        /// Whether MCP is tried first.
        pub mcp_first?: bool,
    }
}

/// The resolved view of a role. It decides nothing: where it differs from the rest of the contract,
/// the contract is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleContract {
    /// The role and the agent.
    pub identity: RoleIdentity,
    /// The purpose of the role.
    pub purpose: String,
    /// The file of its system prompt.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub system_prompt_ref: Option<String>,
    /// The file of its skills.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub skills_bundle_ref: Option<String>,
    /// The file of its tools.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub mcp_bundle_ref: Option<String>,
    /// How the role is run.
    pub runtime_binding: RuntimeBinding,
    /// What the role may use.
    pub tool_permissions: RolePermissions,
    /// The tools that the role is given.
    pub resolved_mcp_tool_set: Vec<String>,
    /// The roles that it passes work to.
    pub handoff: RoleHandoff,
    /// The conditions under which it stops.
    #[schemars(length(min = 1))]
    pub fail_closed_conditions: Vec<String>,
}

/// The role and the agent of a resolved view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleIdentity {
    /// The role.
    pub role: Role,
    /// The agent.
    pub agent_id: String,
}

/// How a role is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeBinding {
    /// The kind of runner.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub runner: Option<String>,
    /// The provider of the model.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub provider: Option<String>,
    /// The model.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub model: Option<String>,
}

/// What a role may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePermissions {
    /// Access to files.
    pub filesystem: Filesystem,
    /// Access to a shell.
    pub shell: Shell,
    /// Access to the network.
    pub network: Network,
}

/// The roles that a role passes work to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleHandoff {
    /// Whether it may pass work on.
    pub eligible: bool,
    /// The roles that must follow it.
    pub required_downstream_roles: Vec<Role>,
    /// All roles of the chain, in order.
    pub chain_roles: Vec<Role>,
    /// How often work is passed on at most.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<std::num::NonZeroU32>")]
    pub max_handoffs: Option<u32>,
}
