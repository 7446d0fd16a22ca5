//! Hooks: code that is called at fixed points of a run, and what it may answer there.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use provost_core::code::Code;
use provost_core::package::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hash;
use super::reference::{PolicyRef, Sidecar, SidecarRef};

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Point {
    RunStarting,
    BeforeContextAssembly,
    AfterContextAssembly,
    BeforeProviderProjection,
    BeforeModelCall,
    OnModelDelta,
    AfterModelCall,
    BeforeStructuredOutputValidation,
    AfterStructuredOutputValidation,
    BeforeToolCall,
    AfterToolCall,
    BeforeApprovalRequest,
    AfterApprovalDecision,
    BeforeSubagentStart,
    AfterSubagentTerminal,
    BeforeIsolationProcessStart,
    AfterIsolationProcessExit,
    OnRunCancelRequested,
    BeforeRunComplete,
    AfterRunTerminal,
    BeforeCompaction,
    AfterCompaction,
}

/// What a hook may do; always written in this order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
enum Right {
    Observe,
    InjectContext,
    ModifyProjection,
    RequestCompaction,
    ModifyValidationHints,
    ModifyToolRequest,
    ModifyApprovalRequest,
    Deny,
    RequestApproval,
    RequestRetry,
    RewriteToolResult,
    ModifySubagentRequest,
    ModifyProcessRequest,
    ValidateDetach,
    RequestUsageRollupRepair,
    RequestCleanupRepair,
    MarkProtectedContext,
    RequestProjectionAuditRepair,
    StopCompletionWithRepairNeeded,
    StopRun,
}

impl Point {
    /// What may be done here; observing is allowed everywhere.
    fn rights(self) -> &'static [Right] {
        match self {
            Self::RunStarting => &[Right::InjectContext, Right::StopRun],
            Self::BeforeContextAssembly => &[Right::InjectContext],
            Self::AfterContextAssembly => &[Right::RequestCompaction, Right::StopRun],
            Self::BeforeProviderProjection => &[Right::ModifyProjection, Right::StopRun],
            Self::BeforeModelCall => &[
                Right::ModifyProjection,
                Right::RequestApproval,
                Right::StopRun,
            ],
            Self::AfterModelCall => &[Right::RequestRetry, Right::StopRun],
            Self::BeforeStructuredOutputValidation => &[Right::ModifyValidationHints],
            Self::AfterStructuredOutputValidation => &[Right::RequestRetry],
            Self::BeforeToolCall => &[
                Right::Deny,
                Right::ModifyToolRequest,
                Right::RequestApproval,
            ],
            Self::AfterToolCall => &[Right::RequestRetry, Right::RewriteToolResult],
            Self::BeforeApprovalRequest => &[Right::ModifyApprovalRequest, Right::Deny],
            Self::BeforeSubagentStart => &[Right::Deny, Right::ModifySubagentRequest],
            Self::AfterSubagentTerminal => &[Right::RequestUsageRollupRepair],
            Self::BeforeIsolationProcessStart => &[Right::Deny, Right::ModifyProcessRequest],
            Self::AfterIsolationProcessExit | Self::OnRunCancelRequested => {
                &[Right::RequestCleanupRepair]
            }
            Self::BeforeRunComplete => &[
                Right::RequestRetry,
                Right::ValidateDetach,
                Right::StopCompletionWithRepairNeeded,
            ],
            Self::BeforeCompaction => &[Right::MarkProtectedContext],
            Self::AfterCompaction => &[Right::RequestProjectionAuditRepair],
            Self::OnModelDelta | Self::AfterApprovalDecision | Self::AfterRunTerminal => &[],
        }
    }

    /// Whether a failure of a hook must not be ignored here.
    fn is_critical(self) -> bool {
        matches!(
            self,
            Self::BeforeToolCall
                | Self::BeforeApprovalRequest
                | Self::BeforeSubagentStart
                | Self::BeforeIsolationProcessStart
                | Self::BeforeRunComplete
        )
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HookSource {
    HostConfig,
    InProcess,
    Extension,
    SdkDefault,
    TestOnlyFake,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Early,
    Normal,
    Late,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Ordering {
    phase: Phase,
    order: i32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
enum Execution {
    Blocking,
    NonBlocking { queue: Queue, overflow: Overflow },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Queue {
    capacity: NonZeroUsize,
    terminal_reserve: NonZeroUsize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Overflow {
    DropObserveOnly,
    SummarizeAndContinue,
    FailHookInvocation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Timeout {
    timeout_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Failure {
    FailOpenObserveOnly,
    Deny,
    InterruptRun,
    FailRun,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Rights {
    rights: BTreeSet<Right>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HookPrivacy {
    EnvelopeAndRedactedSummary,
    ContentRefsOnly,
    ContentCaptureAllowed,
}

/// One hook; its hash covers the fields in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Hook {
    pub(super) hook_id: String,
    point: Point,
    source: HookSource,
    ordering: Ordering,
    execution: Execution,
    timeout: Timeout,
    failure: Failure,
    mutation_rights: Rights,
    privacy: HookPrivacy,
    policy_ref: PolicyRef,
    executor_ref: String,
}

impl Hook {
    /// Checks that the rights of the hook fit the point where it is called.
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        let refuse = |code, what: &str| {
            Err(Refusal::rule(
                code,
                format!("hook `{}` {what}", self.hook_id),
            ))
        };
        if self.timeout.timeout_ms == 0 {
            return refuse(Code::HookTimeoutZero, "has no time to answer");
        }
        let changes = |right: &&Right| **right != Right::Observe;
        let mut acting = self.mutation_rights.rights.iter().filter(changes);
        let acts = acting.clone().next().is_some();
        if let Some(right) = acting.find(|right| !self.point.rights().contains(right)) {
            let what = format!("may {right:?}, which {:?} does not allow", self.point);
            return refuse(Code::HookRightNotAllowed, &what);
        }
        if acts && self.execution != Execution::Blocking {
            return refuse(
                Code::HookNonblockingMutates,
                "does not block and may still change something",
            );
        }
        let matters = acts || self.point.is_critical();
        if matters && self.failure == Failure::FailOpenObserveOnly {
            return refuse(
                Code::HookFailOpenSecurity,
                "guards something and lets it pass when it fails",
            );
        }
        Ok(())
    }

    /// The name of the sidecar that stands for this hook in the fingerprint.
    pub(super) fn sidecar_id(&self) -> String {
        format!("hook.{}", self.hook_id)
    }

    /// The sidecar that must stand for this hook.
    pub(super) fn sidecar(&self) -> Result<Sidecar, Refusal> {
        let content_hash = hash(self)?;
        let own = SidecarRef {
            sidecar_id: self.sidecar_id(),
            kind: "hook_spec".to_owned(),
            version: "v1".to_owned(),
            content_hash: Some(content_hash.clone()),
        };
        Ok(Sidecar {
            sidecar_id: own.sidecar_id.clone(),
            kind: own.kind.clone(),
            version: own.version.clone(),
            refs: vec![own],
            policy_refs: vec![self.policy_ref.clone()],
            content_hash,
            redacted_payload: None,
        })
    }
}
