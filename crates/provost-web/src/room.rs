//! What the pages need from outside: a port.

use provost_core::record::Record;
use provost_engine::bundle::verify::Report;
use provost_engine::ports::PortError;
use provost_engine::query::{
    LiveView, QuestionView, RunSummary, RunView, TranscriptEntry, WhyView, describe,
};
use serde::Serialize;

use crate::token::TokenRow;

/// The runs of the repositories that the user registered.
///
/// A call may read many files; it is made from a thread that may block. Readers change nothing.
/// `repository` is the `id` of a [`RepositoryRow`]; a `run` is the whole id of a run there, and any
/// other text is `NOT_FOUND`.
pub trait ControlRoom: Send + Sync + 'static {
    fn repositories(&self) -> Vec<RepositoryRow>;

    /// The newest runs, at most `most` after the first `skip`, newest first.
    fn rows(&self, repository: &str, skip: usize, most: usize) -> Result<Vec<RoomRow>, PortError>;

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
    fn patch(&self, repository: &str, run: &str) -> Result<Vec<u8>, PortError>;

    fn evidence(&self, repository: &str, run: &str) -> Result<EvidenceView, PortError>;

    /// The bytes of a file that [`ControlRoom::evidence`] lists; any other name is `NOT_FOUND`.
    fn file(&self, repository: &str, run: &str, name: &str) -> Result<Vec<u8>, PortError>;

    /// Carries out a command, recorded as asked by a session of this server. What drives a run is
    /// started as a process of its own; the answer says what was done or started.
    fn carry_out(
        &self,
        repository: &str,
        run: &str,
        command: &RoomCommand,
    ) -> Result<String, PortError>;

    /// A number that differs once something has changed that pages show.
    fn stamp(&self) -> u64;

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
#[derive(Debug, Serialize)]
pub struct RoomRow {
    #[serde(flatten)]
    pub summary: RunSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveView>,
    /// What a person has to approve, if the run waits.
    #[serde(skip)]
    pub question: Option<QuestionView>,
    /// The run that this one retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The command line of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Everything about one run.
#[derive(Debug, Serialize)]
pub struct RunPage {
    pub view: RunView,
    /// Absent if the ledger cannot be explained.
    pub why: Option<WhyView>,
    pub events: Vec<LedgerLine>,
    /// The contract as it was resolved, for a person.
    #[serde(skip)]
    pub contract: String,
}

/// One event, in one line.
#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
pub struct EvidenceFile {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
