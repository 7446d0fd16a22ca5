//! The package as the format declares it.

use provost_core::package::{Id, IdError, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capability::{Capability, CapabilitySourceKind};
use super::fingerprint::manifest;
use super::hook::Hook;
use super::isolation::Isolation;
use super::output::{OutputContract, OutputSink};
use super::reference::{PolicyKind, PolicyRef, Sidecar, SourceRef, Trust};

/// The frozen capabilities of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Package {
    pub(super) schema_version: u16,
    pub(super) package_id: Id,
    pub(super) agent: Agent,
    pub(super) provider_route: Route,
    provider_capabilities: ProviderCapabilities,
    #[serde(default)]
    pub(super) output_contracts: Vec<OutputContract>,
    #[serde(default)]
    pub(super) output_sinks: Vec<OutputSink>,
    #[serde(default)]
    pub(super) capabilities: Vec<Capability>,
    #[serde(default)]
    pub(super) sidecars: Vec<Sidecar>,
    #[serde(default)]
    pub(super) hooks: Vec<Hook>,
    #[serde(default)]
    pub(super) isolation_requirements: Vec<Isolation>,
    #[serde(default)]
    pub(super) catalogs: Vec<Catalog>,
    pub(super) child_lifecycle: ChildLifecycle,
    pub(super) policies: Policies,
    pub(super) fingerprint_manifest: FingerprintManifest,
    #[serde(default, skip_serializing_if = "Volatile::is_empty")]
    volatile: Volatile,
}

/// The agent that the package is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Agent {
    pub(super) agent_id: Id,
    pub(super) name: String,
    #[serde(default)]
    pub(super) default_behavior_refs: Vec<PolicyRef>,
}

/// The model that answers, and the route to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Route {
    pub(super) route_id: String,
    pub(super) model_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider_policy_ref: Option<PolicyRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct ProviderCapabilities {
    capability_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    realtime_capability_version: Option<String>,
}

/// Capabilities that can be discovered later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Catalog {
    pub(super) catalog_id: String,
    source_kind: CapabilitySourceKind,
    source_ref: SourceRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hash: Option<String>,
    trust_state: Trust,
    activation_policy_ref: PolicyRef,
    #[serde(default)]
    pub(super) candidates: Vec<Id>,
}

/// What happens to children when their parent ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChildLifecycle {
    pub(super) policy_ref: PolicyRef,
    manual_cancel: String,
    pub(super) detach_policy_ref: PolicyRef,
    cleanup_timeout_ms: u64,
}

/// The policies of the package as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Policies {
    #[serde(default)]
    pub(super) policy_refs: Vec<PolicyRef>,
}

/// How ready the features of the package are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReadinessProfile {
    P0Text,
    P1TypedOutput,
    P2SideEffects,
}

/// What the fingerprint covers; computed anew for every hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct FingerprintManifest {
    pub(super) algorithm: String,
    pub(super) canonical_schema_version: u16,
    pub(super) readiness_profile: ReadinessProfile,
    pub(super) included_groups: Vec<Included>,
    pub(super) excluded_groups: Vec<Excluded>,
    pub(super) reserved_feature_status: Vec<ReservedFeature>,
}

/// A part of the package that is hashed; all of them, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Included {
    Agent,
    ProviderRoute,
    OutputContracts,
    OutputSinks,
    Capabilities,
    Sidecars,
    IsolationRequirements,
    Catalogs,
    ChildLifecycle,
    Policies,
}

/// A part of the package that is never hashed; all of them, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Excluded {
    RunIds,
    EventIds,
    Timestamps,
    AdapterHealth,
    TemporaryPaths,
    TelemetrySinkHealth,
}

/// A capability of a kind that is not in use yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ReservedFeature {
    pub(super) capability_id: Id,
    pub(super) kind: Kind,
    pub(super) owner_role: String,
    pub(super) status: String,
    pub(super) reason: String,
}

/// What belongs to one run and is never hashed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Volatile {
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter_health: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temporary_path: Option<String>,
}

impl Volatile {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Package {
    /// A package with only an agent, a route and tools, under the default policies of the format.
    pub(super) fn plain(
        agent: Id,
        route_id: String,
        model_id: String,
        capabilities: Vec<Capability>,
    ) -> Result<Self, IdError> {
        let id = |text: &str| Id::try_from(text.to_owned());
        let policy = |text: &str| {
            Ok(PolicyRef {
                kind: PolicyKind::RuntimePackage,
                id: id(text)?,
                version: None,
            })
        };
        let mut package = Self {
            schema_version: 1,
            package_id: id("package.provost")?,
            agent: Agent {
                name: agent.to_string(),
                agent_id: agent,
                default_behavior_refs: Vec::new(),
            },
            provider_route: Route {
                route_id,
                model_id,
                provider_policy_ref: None,
            },
            provider_capabilities: ProviderCapabilities {
                capability_version: "provost.v1".to_owned(),
                realtime_capability_version: None,
            },
            output_contracts: Vec::new(),
            output_sinks: Vec::new(),
            capabilities,
            sidecars: Vec::new(),
            hooks: Vec::new(),
            isolation_requirements: Vec::new(),
            catalogs: Vec::new(),
            child_lifecycle: ChildLifecycle {
                policy_ref: policy("policy.child.safe-defaults")?,
                manual_cancel: "cancel_agent_owned_children".to_owned(),
                detach_policy_ref: policy("policy.detach.deny-by-default")?,
                cleanup_timeout_ms: 30_000,
            },
            policies: Policies {
                policy_refs: Vec::new(),
            },
            fingerprint_manifest: FingerprintManifest {
                algorithm: String::new(),
                canonical_schema_version: 1,
                readiness_profile: ReadinessProfile::P2SideEffects,
                included_groups: Vec::new(),
                excluded_groups: Vec::new(),
                reserved_feature_status: Vec::new(),
            },
            volatile: Volatile::default(),
        };
        package.fingerprint_manifest = manifest(&package);
        Ok(package)
    }
}
