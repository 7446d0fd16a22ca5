//! What the pages need from outside: a port.

use std::collections::BTreeSet;
use std::sync::Arc;

use provost_core::agent::Budget;
use provost_core::question::AgentQuestion;
use provost_core::record::Record;
use provost_engine::bundle::verify::Report;
use provost_engine::case;
use provost_engine::ports::PortError;
use provost_engine::query::{
    CaseStatus, CaseSummary, ChangeGroup, ComparisonView, GroundView, LiveView, QuestionView,
    RunSummary, RunView, StepSpan, TranscriptEntry, WaitReason, WhyView, WorkflowCaseModel,
    describe,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::door::OfferedCode;
use crate::token::TokenRow;

/// The runs of the repositories that the user registered.
///
/// A call may read many files; it is made from a thread that may block. Readers change nothing.
/// `repository` is the `id` of a [`RepositoryRow`]; a `run` is the whole id of a run there, and any
/// other text is `NOT_FOUND`.
pub trait ControlRoom: Send + Sync + 'static {
    fn repositories(&self) -> Vec<RepositoryRow>;

    /// All runs and cases, newest first, and what waits for the user.
    fn listing(&self, repository: &str) -> Result<Arc<RoomListing>, PortError>;

    /// What an active run does now.
    fn live(&self, repository: &str, run: &str) -> Option<LiveView>;

    /// These runs side by side.
    fn compare(&self, repository: &str, runs: &[String]) -> Result<ComparisonView, PortError>;

    /// `case` is the whole id of a case there, and any other text is `NOT_FOUND`.
    fn case(&self, repository: &str, case: &str) -> Result<CasePage, PortError>;

    /// What the runs of a repository share.
    fn ground(&self, repository: &str) -> Result<GroundView<ChangeRow>, PortError>;

    /// What the agents of the user spent, in all repositories.
    fn spend(&self) -> Result<SpendView, PortError>;

    fn run(&self, repository: &str, run: &str) -> Result<RunPage, PortError>;

    /// The command that helps after a refusal, as a user types it.
    fn remedy(&self, repository: &str, run: &str) -> Option<String>;

    /// Lines of what the agents said and did, from the line `from`.
    fn transcript(
        &self,
        repository: &str,
        run: &str,
        from: usize,
        most: usize,
    ) -> Result<TranscriptPage, PortError>;

    /// The patch from the base to what the run captured.
    fn patch(&self, repository: &str, run: &str) -> Result<Arc<Vec<u8>>, PortError>;

    fn evidence(&self, repository: &str, run: &str) -> Result<EvidenceView, PortError>;

    /// The key that signed the attestation, if there is one; it is not checked.
    fn signer(&self, repository: &str, run: &str) -> Option<String>;

    /// The bytes of a file that [`ControlRoom::evidence`] lists; any other name is `NOT_FOUND`.
    fn file(&self, repository: &str, run: &str, name: &str) -> Result<Vec<u8>, PortError>;

    /// Carries out a command about a run or a case, recorded with who asked. What drives one is
    /// started as a process of its own; the answer says what was done or started.
    fn carry_out(
        &self,
        repository: &str,
        id: &str,
        command: &RoomCommand,
        asked: &AskedBy,
    ) -> Result<String, PortError>;

    /// The newest commands about a run or a case that came through this control room, and what came
    /// of each.
    fn commands(&self, repository: &str, id: &str) -> Vec<AskedCommand>;

    /// Looks at the ledgers again, and lists what has changed after the change number `after`.
    fn changes(&self, after: u64) -> RoomChanges;

    /// The code that the user was offered by another process for the server with this name, if
    /// there is one.
    fn offered_code(&self, instance: &str) -> Option<OfferedCode>;

    /// Milliseconds since 1970.
    fn now(&self) -> i64;

    /// The tokens of the API that the user made, expired ones too.
    fn tokens(&self) -> Result<Vec<TokenRow>, PortError>;
}

/// What a person asks for on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomCommand {
    /// Approve the question with this digest, and continue the run.
    Approve {
        digest: String,
    },
    /// Reject the question with this digest.
    Reject {
        digest: String,
        reason: String,
    },
    Cancel {
        reason: String,
    },
    /// Start the agent again, from the files that the run left if there are words.
    Retry {
        words: Option<String>,
    },
    /// Judge the same work again, with the widenings that `why` names.
    KeepWork,
    Land,
    /// Continue a run whose driver died.
    Resume,
}

impl RoomCommand {
    /// As paths and records spell it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
            Self::Cancel { .. } => "cancel",
            Self::Retry { .. } => "retry",
            Self::KeepWork => "keep-work",
            Self::Land => "land",
            Self::Resume => "resume",
        }
    }
}

/// A command that came through the control room, and what came of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AskedCommand {
    pub id: String,
    /// As RFC 3339.
    pub at: String,
    /// approve, reject, cancel, retry, keep-work, land or resume.
    pub command: String,
    /// The session or the token.
    pub by: String,
    pub outcome: CommandOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CommandOutcome {
    /// Its process is at work.
    Running,
    Done,
    Refused {
        code: String,
        reason: String,
    },
    /// The server ended before it began.
    NotBegun,
    /// Its process ended without an answer; the run shows what happened.
    NoAnswer,
}

/// Through what a command came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedBy {
    /// A form of a page of the session with this number, which is no secret.
    Session { id: String },
    /// A program with the token of this name. It approves nothing that needs the key of a person.
    Token { name: String },
}

#[derive(Debug, Clone, Serialize)]
pub struct RepositoryRow {
    /// 16 hexadecimal digits.
    pub id: String,
    pub name: String,
    pub path: String,
    /// Why its runs cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One run in a list.
#[derive(Debug, Clone, Serialize)]
pub struct RoomRow {
    #[serde(flatten)]
    pub summary: RunSummary,
    /// What a person has to approve, if the run waits.
    #[serde(skip)]
    pub question: Option<Arc<QuestionView>>,
    /// What its agent asks a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
    /// The run that this one retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The command line of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The digest of the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_sha256: Option<String>,
    /// The branch that the result is meant for, as a full ref name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether that branch is not at the commit that the run began from.
    pub target_moved: bool,
    /// How many agents were lost with their driver.
    pub lost: u32,
    /// The chain or case that it is a part of; such a run lands and is retried with the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
}

impl RoomRow {
    /// Why it waits for a person; `retried` are the runs that another run retries.
    fn waits(&self, retried: &BTreeSet<&str>) -> Option<WaitReason> {
        if !self.questions.is_empty() && !self.summary.is_foreign() {
            return Some(WaitReason::Question);
        }
        WaitReason::of(&self.summary, retried, self.target_moved)
    }

    /// Whether `words` (lower case) are in its objective, id or agent, and it has this status.
    pub(crate) fn matches(&self, words: &str, status: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        let found = words.is_empty()
            || has(&self.summary.objective)
            || has(&self.summary.run_id)
            || self.agent.as_deref().is_some_and(has);
        found && (status.is_empty() || self.summary.status.word() == status)
    }
}

/// The runs and cases of a repository, newest first.
#[derive(Debug, Default)]
pub struct RoomListing {
    pub rows: Vec<Arc<RoomRow>>,
    pub cases: Vec<Arc<CaseSummary>>,
    /// What waits for the user, the most urgent first.
    pub waiting: Vec<(WaitReason, Arc<RoomRow>)>,
    /// How many older runs were found and not read yet: a server that just started reads them.
    pub unread: usize,
}

impl RoomListing {
    pub fn of(rows: Vec<Arc<RoomRow>>, cases: Vec<Arc<CaseSummary>>) -> Self {
        let parents = rows.iter().filter_map(|row| row.parent.as_deref());
        let retried: BTreeSet<&str> = parents.collect();
        let waits = |row: &Arc<RoomRow>| {
            let reason = row.waits(&retried)?;
            let asks = matches!(reason, WaitReason::Approval | WaitReason::Question);
            let alone = row.part_of.is_none() || asks;
            alone.then(|| (reason, Arc::clone(row)))
        };
        let mut waiting: Vec<_> = rows.iter().filter_map(waits).collect();
        waiting.sort_by_key(|(reason, _)| *reason);
        Self {
            rows,
            cases,
            waiting,
            unread: 0,
        }
    }

    /// The cases that wait for the user.
    pub fn waiting_cases(&self) -> impl Iterator<Item = &CaseSummary> {
        let cases = self.cases.iter().map(AsRef::as_ref);
        cases.filter(|case| {
            matches!(
                case.status,
                CaseStatus::Waiting | CaseStatus::Interrupted | CaseStatus::Success
            )
        })
    }
}

/// Everything about one case.
#[derive(Debug)]
pub struct CasePage {
    pub case_id: String,
    pub status: CaseStatus,
    pub state: case::State,
    pub model: WorkflowCaseModel,
    pub events: Vec<LedgerLine>,
    /// The contract of the whole, for a person; empty as long as there is none.
    pub contract: String,
}

/// A declared change of a shared checkout.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangeRow {
    pub intent_id: String,
    /// What its agent calls itself.
    pub agent: String,
    /// Active, queued or another state of its format.
    pub state: String,
    pub intent: String,
    pub paths: Vec<String>,
    /// Whose it is, seen from this machine.
    pub ownership: String,
    pub declared: String,
    pub expires: String,
}

/// What was spent, by day and by model.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SpendView {
    pub days: Vec<SpentRow>,
    pub models: Vec<SpentRow>,
    /// What all agents may spend on one day; open where there is no limit.
    #[schemars(with = "LimitOfSpending")]
    pub day_limit: Budget,
    #[schemars(with = "LimitOfSpending")]
    pub run_limit: Budget,
}

/// The form of a [`Budget`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct LimitOfSpending {
    tokens: Option<u64>,
    micro_usd: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpentRow {
    pub name: String,
    pub requests: u64,
    pub tokens: u64,
    pub micro_usd: u64,
}

/// What changed, oldest first.
#[derive(Debug, Clone, Default)]
pub struct RoomChanges {
    pub changes: Vec<RoomChange>,
    /// The number of the last change.
    pub last: u64,
    /// Whether earlier changes are no longer known, so that everything has to be read again.
    pub lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoomChange {
    /// Grows by one with each change, from 1.
    pub number: u64,
    pub repository: String,
    /// The run or the case; absent if it is about the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub kind: RoomChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomChangeKind {
    Appeared,
    Changed,
    Removed,
    /// Time passed for active runs: their agents may have done something.
    Progress,
}

/// Everything about one run.
#[derive(Debug, Serialize)]
pub struct RunPage {
    pub view: RunView,
    /// Absent if the ledger cannot be explained.
    pub why: Option<WhyView>,
    pub events: Vec<LedgerLine>,
    pub steps: Vec<StepSpan>,
    /// The group of each changed file, in the same order.
    pub groups: Vec<ChangeGroup>,
    /// What an active run does now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveView>,
    /// The contract as it was resolved, for a person.
    #[serde(skip)]
    pub contract: String,
}

/// One event, in one line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LedgerLine {
    pub seq: u64,
    pub ts: String,
    pub event_type: String,
    pub about: String,
}

impl LedgerLine {
    pub fn of(record: &Record) -> Self {
        Self {
            seq: record.seq,
            ts: record.event.ts.clone(),
            event_type: record.event.event_type.clone(),
            about: describe(record),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct TranscriptPage {
    pub entries: Vec<TranscriptEntry>,
    /// The line to ask for next, if there are more.
    pub next: Option<usize>,
}

#[derive(Debug, Serialize)]
pub struct EvidenceView {
    #[serde(flatten)]
    pub report: Report,
    /// Files that the manifest names, and the documents beside it.
    pub files: Vec<EvidenceFile>,
    pub events: Vec<LedgerLine>,
    /// The hash of the last event.
    pub head: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct EvidenceFile {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
