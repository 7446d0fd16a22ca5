//! Answers what surfaces show: read models of runs, as types.
//!
//! The ledger of a run, and facts that a [`RunArchive`] reads beside it, give a view: a row of a
//! list, everything about one run, why it was refused, its log.
//!
//! # Invariants
//!
//! - Nothing is changed, locked or repaired.
//! - A view knows no surface: no width, no colour, and nothing is cut that a surface could show.
//! - The wire form of a view (`--json`) is its `Serialize`. What only people read is marked
//!   `serde(skip)`.

mod acceptance;
mod archive;
mod cases;
mod change_group;
mod changed;
mod children;
mod compare;
mod given;
mod ground;
mod inbox;
mod live;
mod log;
mod logs;
mod missing;
mod question;
mod role_model;
mod run;
mod short_id;
mod spent;
mod status;
mod summary;
mod tail;
mod transcript;
mod waterfall;
mod why;

pub use acceptance::{CommandView, TestsView};
pub use archive::{
    KeptBodies, Landed, LineCount, RecordedBodies, RunArchive, RunFiles, Stage, interrupted,
    is_own, landed, never_began, nothing, project, require_own, stage, state,
};
pub use cases::{CaseStatus, CaseSummary};
pub use change_group::ChangeGroup;
pub use changed::{ChangeKind, ChangedFile, ChangedLines};
pub use children::ChildView;
pub use compare::{ComparedRun, ComparisonView};
pub use given::GivenView;
pub use ground::{DeniedWrite, GroundView, OpenTree, TreeConflict, conflicts};
pub use inbox::WaitReason;
pub use live::LiveView;
pub use log::describe;
pub use logs::{LogFile, RemovedSecrets, SecretsView};
pub use missing::may_lack;
pub use question::QuestionView;
pub use role_model::{BoundSchema, RoleContractSummary, WorkflowCaseModel};
pub use run::{
    EarlierAttemptView, GateView, ReviewView, RunView, SandboxView, Surroundings, changed_tests,
    is_approved, short_branch,
};
pub use short_id::{short_id, with_short_ids};
pub use status::{ChainSummary, DiffView, NodeSummary, OpenRun, StatusView};
pub use summary::{LandingSummary, RunStatus, RunSummary, summaries};
pub use tail::Tail;
pub use transcript::{
    LineKind, Said, TranscriptEntry, TranscriptSource, Worker, event_words, transcripts,
};
pub use waterfall::{StepSpan, waterfall};
pub use why::{ContractLines, WhyView};
