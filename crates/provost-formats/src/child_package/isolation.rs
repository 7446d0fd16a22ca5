//! What a run requires of its runtime. File, network and secret rules are hashes only.

use std::collections::BTreeSet;

use provost_core::package::Id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::{PolicyRef, SidecarRef};

/// One requirement, with everything that counts for the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Isolation {
    pub(super) requirement_ref: Id,
    sidecar_ref: SidecarRef,
    pub(super) schema_version: u16,
    requirement: Requirement,
    lifecycle_defaults: Lifecycle,
    process_defaults: Process,
    redaction_policy_ref: PolicyRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed_downgrade_policy_refs: Vec<PolicyRef>,
    cleanup_policy_ref: PolicyRef,
    child_lifecycle_policy_ref: Id,
    fingerprint_fields: FingerprintFields,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Class {
    HostProcess,
    Sandbox,
    Container,
    LightweightVm,
    RemoteSandbox,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Requirement {
    minimum_class: Class,
    trust: TrustRequirement,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preferred_adapters: Vec<Id>,
    fallback: Fallback,
    required_capabilities: Features,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Features {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    capabilities: BTreeSet<Feature>,
}

/// What an isolating runtime can do; always written in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Feature {
    ReadOnlyRoot,
    WritableLayer,
    MountReadOnlyEnforcement,
    SingleFileMountExpansionAudit,
    NoNetworkGuarantee,
    EgressAllowlist,
    SecretIsolation,
    SecretMount,
    SecretRedaction,
    ProcessTimeout,
    ProcessSignal,
    ProcessRlimits,
    ContentRefIo,
    IoRedaction,
    ProcessStats,
    Cleanup,
    Detach,
    Reclaim,
    AuditLog,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Fallback {
    Deny,
    AllowIfPackageAndPolicyApprove {
        accepted_classes: Vec<Class>,
        accepted_capability_downgrades: Vec<Feature>,
        accepted_trust_downgrades: Vec<TrustField>,
        required_policy_refs: Vec<PolicyRef>,
    },
    TestOnlyHostProcess,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TrustField {
    Locality,
    Tenancy,
    Auditability,
    Cleanup,
    DataResidency,
    SecretIsolation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct TrustRequirement {
    locality: Locality,
    tenancy: Tenancy,
    auditability: Degree,
    cleanup: Guarantee,
    data_residency: Residency,
    secret_isolation: Degree,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Locality {
    Any,
    Local,
    Remote,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tenancy {
    SharedAllowed,
    Dedicated,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Degree {
    None,
    BestEffort,
    Required,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Guarantee {
    BestEffort,
    Required,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Residency {
    Any,
    LocalOnly,
    Region(String),
}

/// Spelled in Pascal case, unlike the other enumerations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Lifecycle {
    EphemeralCleanupRequired { cleanup_mode: CleanupMode },
    ReusableIfPolicyAllows { cleanup_mode: CleanupMode },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CleanupMode {
    Always,
    OnSuccess,
    HostPolicy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Process {
    child_artifact_id: Id,
    owner_run_id: Id,
    ownership_class: Ownership,
    on_parent_cancel: ParentEnd,
    on_parent_complete: ParentEnd,
    detach_policy: Detach,
    reclaim_policy: Reclaim,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ownership {
    AgentOwned,
    HostManaged,
    DetachedByIntent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParentEnd {
    TerminateAfterGrace { grace_ms: u64 },
    RequireExitOrCleanup,
    PreserveByPolicy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Detach {
    allowed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    required_policy_refs: Vec<PolicyRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Reclaim {
    required: bool,
    policy_ref: PolicyRef,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct FingerprintFields {
    minimum_class: Class,
    trust: TrustRequirement,
    required_capabilities_hash: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preferred_adapter_refs: Vec<Id>,
    fallback_policy: Fallback,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_policy_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rootfs_policy_hash: Option<String>,
    mount_policy_hash: String,
    network_policy_hash: String,
    secret_policy_hash: String,
    resource_policy_hash: String,
    cleanup_policy_ref: PolicyRef,
    child_lifecycle_policy_ref: Id,
    redaction_policy_ref: PolicyRef,
}
