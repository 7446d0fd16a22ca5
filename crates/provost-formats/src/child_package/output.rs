//! What a run has to deliver: schemas, how they are checked, and where the result goes.

use provost_core::package::Id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::PolicyRef;

/// A schema that the result must fit, and what happens when it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct OutputContract {
    pub(super) schema_id: Id,
    schema_version: SchemaVersion,
    pub(super) schema_fingerprint: String,
    dialect: SchemaDialect,
    mode: Mode,
    validation_policy_ref: PolicyRef,
    repair_policy_ref: PolicyRef,
    local_validator_version: String,
    provider_hint_policy: ProviderHint,
    validation: Validation,
    repair: Repair,
    retry_budget: RetryBudget,
    content_policy: ContentPolicy,
    projection_hint: ProjectionHint,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct SchemaVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SchemaDialect {
    #[serde(rename = "json_schema2020_12_subset")]
    JsonSchema,
    RustSerdeTypeName,
    HostRegistered,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    FinalOnly,
    IncrementalPreview,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ProviderHint {
    SchemaRequired,
    SchemaOptional,
    ProviderNativeHint,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Validation {
    validator_ref: Id,
    max_candidate_bytes: u64,
    max_errors_returned: u16,
    allow_additional_properties: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    semantic_validators: Vec<Id>,
    timeout_ms: u64,
    failure_visibility: FailureVisibility,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FailureVisibility {
    RedactedSummary,
    ErrorCodesOnly,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Repair {
    repair_adapter_ref: Id,
    max_repair_attempts: u8,
    include_schema_in_prompt: bool,
    include_redacted_errors: bool,
    include_candidate_content: CandidateContent,
    backoff: Backoff,
    on_exhausted: OnExhausted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CandidateContent {
    ContentRefOnly,
    RedactedCandidate,
    OmitCandidate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Backoff {
    None,
    Linear,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnExhausted {
    FailRun,
    ReturnValidationError,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct RetryBudget {
    max_attempts: u8,
}

/// Spelled in Pascal case, like the lifecycle and unlike the other enumerations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum ContentMode {
    Off,
    MetadataOnly,
    RedactedSummary,
    RawContent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the format has five flags here"
)]
struct ContentPolicy {
    policy_ref: PolicyRef,
    mode: ContentMode,
    source_permits_content: bool,
    sink_permits_content: bool,
    redaction_required: bool,
    retention_required: bool,
    sampling_required: bool,
    byte_limit: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct ProjectionHint {
    provider_hint_policy: ProviderHint,
    include_schema_ref: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct OutputSink {
    pub(super) sink_id: String,
    delivery_policy_ref: PolicyRef,
    dedupe_policy: String,
    sink_capability_version: String,
}
