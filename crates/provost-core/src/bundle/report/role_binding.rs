//! How the role of a contract was bound to the agent that ran: for readers, never an authority.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::{Nullable, nullable};
use crate::closed::closed;
use crate::contract::role::RuntimeBinding;

/// `role_binding_summary` of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleBinding {
    /// The authority of this summary.
    pub authority: BindingAuthority,
    /// What it was derived from.
    pub source: String,
    /// The document that decides instead of it.
    pub execution_authority: ExecutionAuthority,
    /// The skills of the role.
    pub skills_bundle_ref: SkillsBundle,
    /// The tools of the role.
    pub mcp_bundle_ref: McpBundle,
    /// The runtime of the role.
    pub runtime_binding: Binding,
}

/// The only value: a summary has no authority of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BindingAuthority {
    /// Derived from the contract, for reading.
    #[serde(rename = "contract-derived-read-model")]
    ContractDerivedReadModel,
}

/// The only value: the contract decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutionAuthority {
    /// The contract.
    #[serde(rename = "task_contract")]
    TaskContract,
}

/// What happens when a bundle cannot be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Validation {
    /// The contract is refused.
    #[serde(rename = "fail-closed")]
    FailClosed,
}

/// How far a reference was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BindingStatus {
    Unresolved,
    Resolved,
    RegistryBacked,
}

/// The skills of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillsBundle {
    /// How far it was resolved.
    pub status: BindingStatus,
    /// The reference.
    #[serde(rename = "ref", deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub reference: Option<String>,
    /// The id of the bundle.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub bundle_id: Option<String>,
    /// The skills in it.
    pub resolved_skill_set: Vec<String>,
    /// What happens when it cannot be resolved.
    pub validation: Validation,
}

/// The tools of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpBundle {
    /// How far it was resolved.
    pub status: BindingStatus,
    /// The reference.
    #[serde(rename = "ref", deserialize_with = "nullable")]
    #[schemars(with = "Nullable<String>")]
    pub reference: Option<String>,
    /// The tools in it.
    pub resolved_mcp_tool_set: Vec<String>,
    /// What happens when it cannot be resolved.
    pub validation: Validation,
}

closed! {
    /// The runtime of a role.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Binding {
        /// How far it was resolved.
        pub status: RuntimeStatus,
        /// The authority of this summary.
        pub authority_scope: BindingAuthority,
        /// The source of each part.
        pub source: BindingSource,
        /// The values.
        pub summary: RuntimeBinding,
        /// Its capabilities.
        pub capability?: Capability,
    }
}

/// How far a runtime was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeStatus {
    Unresolved,
    PartiallyResolved,
    ContractDerived,
}

/// The sources of a binding's parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingSource {
    pub runner: String,
    pub provider: String,
    pub model: String,
}

/// What a runtime can do. The format defines the names of these fields and not their types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    pub status: CapabilityStatus,
    pub lane: Value,
    pub compat_api_mode: Value,
    pub provider_status: Value,
    pub provider_inventory_id: Value,
    pub tool_execution: Value,
    pub notes: Value,
}

/// The only status of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityStatus {
    /// It can be shown before it is used.
    Previewable,
}
