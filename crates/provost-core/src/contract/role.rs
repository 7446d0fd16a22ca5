//! The parts of a contract that say how a task is run: its chain of roles, its browser, its runtime,
//! and the resolved view of its role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Filesystem, Network, Role, Shell};
use crate::bundle::report::{Nullable, nullable};
use crate::json::closed;

closed! {
    /// Roles a task passes through.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct HandoffChain {
        /// Whether it does.
        pub enabled?: bool,
        /// Which ones, in order.
        pub roles?: Vec<Role>,
        /// How often it is passed on at most.
        #[schemars(range(min = 1, max = 10))]
        pub max_handoffs?: u32,
    }
}

closed! {
    /// What a browser may do.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct BrowserPolicy {
        /// Whose profile it uses.
        pub profile_mode?: ProfileMode,
        /// That profile.
        pub profile_ref?: ProfileRef,
        /// Its cookies.
        pub cookie_ref?: CookieRef,
        /// Whether it hides what it is.
        pub stealth_mode?: StealthMode,
        /// Whether it behaves like a person.
        pub human_behavior?: HumanBehavior,
    }
}

/// Whose profile a browser uses.
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
        /// Where it lies.
        pub profile_dir?: String,
        /// What it is called.
        pub profile_name?: String,
    }
}

closed! {
    /// A file of cookies.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct CookieRef {
        /// Where it lies.
        pub cookie_path?: String,
    }
}

/// Whether a browser hides what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StealthMode {
    None,
    Lite,
    Plugin,
}

closed! {
    /// Whether a browser behaves like a person.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct HumanBehavior {
        /// Whether it does.
        pub enabled?: bool,
        /// How much.
        pub level?: BehaviorLevel,
    }
}

/// How much a browser behaves like a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BehaviorLevel {
    Low,
    Medium,
    High,
}

closed! {
    /// What runs the agent.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct RuntimeOptions {
        /// The way it is run.
        pub runner?: RunnerKind,
        /// Who answers for the model.
        #[schemars(regex(pattern = r"^[A-Za-z0-9._-]+$"))]
        pub provider?: String,
        /// How tools are reached.
        pub execution?: Execution,
        /// Whether commands that prove nothing are refused.
        pub strict_acceptance?: bool,
    }
}

/// The way an agent is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
    Agents,
    #[serde(rename = "app-server")]
    AppServer,
    /// The same, as older documents write it.
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
    /// Whom it is about.
    pub identity: RoleIdentity,
    /// What the role is for.
    pub purpose: String,
    /// Its prompt.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub system_prompt_ref: Option<String>,
    /// Its skills.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub skills_bundle_ref: Option<String>,
    /// Its tools.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub mcp_bundle_ref: Option<String>,
    /// What runs it.
    pub runtime_binding: RuntimeBinding,
    /// What it may use.
    pub tool_permissions: RolePermissions,
    /// The tools it is given.
    pub resolved_mcp_tool_set: Vec<String>,
    /// Whom it passes work to.
    pub handoff: RoleHandoff,
    /// What makes it stop.
    #[schemars(length(min = 1))]
    pub fail_closed_conditions: Vec<String>,
}

/// Whom a resolved view is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleIdentity {
    /// The role.
    pub role: Role,
    /// The agent.
    pub agent_id: String,
}

/// What runs a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeBinding {
    /// The way it is run.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub runner: Option<String>,
    /// Who answers for the model.
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
    /// Of files.
    pub filesystem: Filesystem,
    /// Of a shell.
    pub shell: Shell,
    /// Of the network.
    pub network: Network,
}

/// Whom a role passes work to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleHandoff {
    /// Whether it may.
    pub eligible: bool,
    /// Who must come after it.
    pub required_downstream_roles: Vec<Role>,
    /// Everybody, in order.
    pub chain_roles: Vec<Role>,
    /// How often it is passed on at most.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<std::num::NonZeroU32>")]
    pub max_handoffs: Option<u32>,
}
