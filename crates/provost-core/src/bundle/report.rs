//! The types of a run's reports: the v1 tables, field by field.
//!
//! Objects are closed, and a document with an invalid field is refused; an optional field is left
//! out, never `null`. Provost's additions are in one optional object `x_provost`, so a plain v1
//! document stays valid.

mod evidence_bundle;
mod evidence_report;
mod manifest;
mod meta;
mod orchestrator_event;
mod reexec_report;
mod review_report;
mod role_binding;
mod shape;
mod surroundings;
mod task_result;
mod test_report;
mod work_report;

#[cfg(test)]
mod tests;

pub use evidence_bundle::{
    Claim, ClaimStatus, Consensus, EvidenceBundle, Query, Requester, RequesterRole, Risk, Source,
    SourceKind,
};
pub use evidence_report::{EvidenceReport, EvidenceStatus};
pub use manifest::{
    Integrity, ManifestExtra, REQUIRED_HASHES, RunManifest, RunStatus, TaskEntry, TaskState,
};
pub use meta::{NetworkUse, RunMeta, ToolCalls};
pub use orchestrator_event::{OrchestratorEvent, Step};
pub use reexec_report::{Difference, ReexecReport, ReexecStatus};
pub use review_report::{ReviewReport, ReviewVerdict, Reviewer, ReviewerRole, ScopeCheck};
pub use role_binding::{
    Binding, BindingAuthority, BindingSource, BindingStatus, Capability, CapabilityStatus,
    ExecutionAuthority, McpBundle, RoleBinding, RuntimeStatus, SkillsBundle, Validation,
};
pub use shape::Nullable;
pub use shape::{ArtifactRef, BadShape, Failure, GateResult, Judged, Sha256, Time};
pub(crate) use shape::{nullable, one_or_more};
pub use surroundings::{Model, Observability, Repo, Runner, Trace, Versions, Workflow};
pub use task_result::{Gates, GitState, NextSteps, Producer, ProducerRole, TaskResult, TaskStatus};
pub use test_report::{
    CommandResult, TestReport, TestRunner, TestRunnerRole, TestStatus, TestSummary,
};
pub use work_report::{
    EvidenceFiles, FileRef, NextActions, PartialGate, Timestamps, WorkGates, WorkReport, WorkRole,
    WorkStatus,
};
