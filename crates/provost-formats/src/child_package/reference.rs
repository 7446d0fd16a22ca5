//! The small values that packages are made of: references to policies, sources and sidecars.

use provost_core::package::Id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PolicyKind {
    Approval,
    Permission,
    Sandbox,
    Context,
    Privacy,
    Retention,
    Redaction,
    RuntimePackage,
    Host,
}

impl PolicyKind {
    /// The name in the sort key, which differs from the one on the wire.
    fn key(self) -> &'static str {
        match self {
            Self::Approval => "Approval",
            Self::Permission => "Permission",
            Self::Sandbox => "Sandbox",
            Self::Context => "Context",
            Self::Privacy => "Privacy",
            Self::Retention => "Retention",
            Self::Redaction => "Redaction",
            Self::RuntimePackage => "RuntimePackage",
            Self::Host => "Host",
        }
    }
}

/// Names a policy that the host resolves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PolicyRef {
    pub(super) kind: PolicyKind,
    pub(super) id: Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
}

impl PolicyRef {
    /// The sort key of lists of policies. Parts may contain colons; the format joins them all the
    /// same.
    pub(super) fn key(&self) -> String {
        let version = self.version.as_deref().unwrap_or_default();
        format!("{}:{}:{version}", self.kind.key(), self.id)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SidecarRef {
    pub(super) sidecar_id: String,
    pub(super) kind: String,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_hash: Option<String>,
}

impl SidecarRef {
    /// The sort key of lists of sidecar references.
    pub(super) fn key(&self) -> String {
        let hash = self.content_hash.as_deref().unwrap_or_default();
        let Self {
            sidecar_id,
            kind,
            version,
            ..
        } = self;
        format!("{sidecar_id}:{kind}:{version}:{hash}")
    }
}

/// A document beside the package, by its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Sidecar {
    pub(super) sidecar_id: String,
    pub(super) kind: String,
    pub(super) version: String,
    pub(super) refs: Vec<SidecarRef>,
    pub(super) policy_refs: Vec<PolicyRef>,
    pub(super) content_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) redacted_payload: Option<serde_json::Value>,
}

impl Sidecar {
    /// Sorts the lists that are sets into the order that is hashed.
    pub(super) fn sort(&mut self) {
        self.refs.sort_by_key(SidecarRef::key);
        self.policy_refs.sort_by_key(PolicyRef::key);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Trust {
    Trusted,
    SdkGenerated,
    HostProvided,
    UserProvided,
    External,
    Untrusted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Privacy {
    Public,
    Internal,
    ContentRefsOnly,
    Sensitive,
    Secret,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SourceKind {
    Sdk,
    Host,
    User,
    System,
    Developer,
    Memory,
    Compaction,
    Hook,
    Extension,
    Tool,
    RemoteChannel,
    ScheduledTask,
    Subagent,
    ExternalRuntime,
    Replay,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SourceRef {
    kind: SourceKind,
    id: Id,
    trust: Trust,
    privacy: Privacy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    correlation: Vec<Correlation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted_summary: Option<String>,
}

impl SourceRef {
    /// What the host itself provides.
    pub(super) fn of_host(id: Id) -> Self {
        Self {
            kind: SourceKind::Host,
            id,
            trust: Trust::HostProvided,
            privacy: Privacy::ContentRefsOnly,
            correlation: Vec::new(),
            redacted_summary: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Correlation {
    key: Id,
    value: Id,
}
