//! The capabilities that a package can grant to an agent.

use provost_core::package::{Id, IdError, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::{PolicyKind, PolicyRef, Privacy, SidecarRef, SourceRef};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CapabilitySourceKind {
    SdkBuiltIn,
    HostProvided,
    ToolPack,
    McpServer,
    Extension,
    Subagent,
    DiscoveryIndex,
    TestOnlyFake,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct CapabilitySource {
    kind: CapabilitySourceKind,
    source_ref: SourceRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter_ref: Option<Id>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Visibility {
    Active,
    Hidden,
}

/// What the model sees of a capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Projection {
    NotProjected,
    DescriptorOnly,
    ProviderToolSchema { schema_ref: SidecarRef },
    ProducesContextItems { allowed_kinds: Vec<String> },
    ProjectsContextRefs { allowed_ref_kinds: Vec<String> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReadinessStatus {
    Active,
    ReservedInactive,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Readiness {
    status: ReadinessStatus,
    pub(super) owner_role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    typed_sidecar_contract: Option<String>,
    #[serde(default)]
    fingerprint_fields: Vec<String>,
    #[serde(default)]
    emitted_events: Vec<String>,
    #[serde(default)]
    journal_records: Vec<String>,
    #[serde(default)]
    acceptance_tests: Vec<String>,
}

/// One capability, as the format declares it. It says nothing about effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Capability {
    pub(super) capability_id: Id,
    pub(super) kind: Kind,
    source: CapabilitySource,
    namespace: Id,
    version: Id,
    visibility: Visibility,
    projection: Projection,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) executor_ref: Option<Id>,
    pub(super) policy_ref: PolicyRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sidecar_refs: Vec<SidecarRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation_ref: Option<SidecarRef>,
    privacy: Privacy,
    pub(super) readiness: Readiness,
}

impl Capability {
    /// A tool that the host provides and executes.
    pub(super) fn host_tool(capability_id: Id, kind: Kind) -> Result<Self, IdError> {
        let id = |text: &str| Id::try_from(text.to_owned());
        let version = id("v1")?;
        let schema_ref = SidecarRef {
            sidecar_id: format!("schema.{capability_id}"),
            kind: "tool_schema".to_owned(),
            version: version.to_string(),
            content_hash: None,
        };
        Ok(Self {
            executor_ref: Some(id(&format!("executor.{capability_id}"))?),
            capability_id,
            kind,
            source: CapabilitySource {
                kind: CapabilitySourceKind::HostProvided,
                source_ref: SourceRef::of_host(id("source.provost")?),
                adapter_ref: None,
            },
            namespace: id("provost")?,
            version,
            visibility: Visibility::Active,
            projection: Projection::ProviderToolSchema { schema_ref },
            policy_ref: PolicyRef {
                kind: PolicyKind::Permission,
                id: id("policy.provost.contract")?,
                version: None,
            },
            sidecar_refs: Vec::new(),
            isolation_ref: None,
            privacy: Privacy::ContentRefsOnly,
            readiness: Readiness {
                status: ReadinessStatus::Active,
                owner_role: "host".to_owned(),
                typed_sidecar_contract: None,
                fingerprint_fields: Vec::new(),
                emitted_events: Vec::new(),
                journal_records: Vec::new(),
                acceptance_tests: Vec::new(),
            },
        })
    }

    /// Whether the kind is one that the format reserves for later.
    pub(super) fn is_reserved(&self) -> bool {
        self.kind != Kind::Tool
    }

    /// Whether it is marked as ready for use.
    pub(super) fn is_active(&self) -> bool {
        self.readiness.status == ReadinessStatus::Active
    }

    /// Whether the model sees anything of it when it is visible.
    pub(super) fn is_projected(&self) -> bool {
        self.projection != Projection::NotProjected
    }

    pub(super) fn is_visible(&self) -> bool {
        self.visibility == Visibility::Active && self.is_projected()
    }

    /// Sorts the lists that are sets into the order that is hashed.
    pub(super) fn sort(&mut self) {
        self.sidecar_refs.sort_by_key(SidecarRef::key);
        match &mut self.projection {
            Projection::ProducesContextItems { allowed_kinds } => allowed_kinds.sort(),
            Projection::ProjectsContextRefs { allowed_ref_kinds } => allowed_ref_kinds.sort(),
            Projection::NotProjected
            | Projection::DescriptorOnly
            | Projection::ProviderToolSchema { .. } => {}
        }
    }
}
