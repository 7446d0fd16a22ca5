//! The formats of files in sealed directories that are no reports of a run.
//!
//! A part whose type is not described by a schema yet is an open object there: `OpenObject`.

use provost_core::agent::event::Event as AgentEvent;
use provost_core::object::Oid;
use provost_core::review::Report as ReviewerAnswer;
use provost_core::schema::{self, Format};
use provost_evidence::dsse::Envelope;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::case::CaseReport;
use crate::chain;
use crate::chain::report::ChainReport;
use crate::seal::children::ChildFile;

/// An object of any fields.
pub type OpenObject = Map<String, Value>;

/// The schema of a verdict.
#[derive(Debug, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "it only describes; `Verdict` is the type that is written"
)]
pub struct VerdictFile {
    /// Whether the judged action may proceed.
    allow: bool,
    /// `provost explain CODE` prints its page.
    code: String,
    reason: String,
    /// The facts behind it.
    details: Option<Value>,
}

/// The schema of what a planner was asked.
#[derive(Debug, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "it only describes; `Asked` is the type that is written"
)]
struct PlanRequestFile {
    plan_id: String,
    /// The request, or the contract that has to be divided.
    task: OpenObject,
    revision: String,
    base_commit: Oid,
    base_tree: Oid,
    planner: OpenObject,
    net: Vec<String>,
    workspace: String,
    timeout_sec: u64,
    began: String,
    version: String,
}

/// The schema of how a planner ended.
#[derive(Debug, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "it only describes; `ReviewRun` is the type that is written"
)]
struct PlannerRunFile {
    tree: Oid,
    ended_at: String,
    /// Paths of the tree that the planner changed.
    #[serde(default)]
    altered: Vec<Value>,
    /// The probes of its sandbox.
    probed: OpenObject,
    /// How it ended.
    run: OpenObject,
}

/// The schema of the record of a request that was refused before there was a run.
#[derive(Debug, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "it only describes; `Refused` is the type that is written"
)]
struct RefusedRequestFile {
    run_id: String,
    refused_at: String,
    document_sha256: String,
    document_bytes: u64,
    verdict: VerdictFile,
}

/// The schema of a row about requests to models.
#[derive(Debug, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "it only describes; the gateway has the type that is written"
)]
enum ModelRequestFile {
    /// The first one: what one attempt may spend.
    Opened { grant: OpenObject },
    /// Written before the request is forwarded.
    Reserved {
        number: u64,
        model: String,
        reserved: OpenObject,
        /// The most tokens of the answer.
        output: u64,
        /// What was left to the run and the day.
        left: OpenObject,
    },
    /// The request ended; bodies are there by length and digest.
    Settled {
        number: u64,
        /// The status of the answer; 0 if there was none.
        status: u16,
        spent: OpenObject,
        request: OpenObject,
        answer: OpenObject,
    },
    /// The reserved request was not forwarded.
    Released { number: u64 },
    /// A request that was not forwarded, and why.
    Refused {
        code: String,
        reason: String,
        request: OpenObject,
    },
}

/// The formats, by the names of their schemas.
pub const FORMATS: &[Format] = &[
    Format::of::<AgentEvent>("agent_event.v1"),
    Format::of::<CaseReport<'static>>("case_report.v1"),
    Format::of::<chain::Document>("chain.v1"),
    Format::of::<ChainReport<'static>>("chain_report.v1"),
    Format::of::<ChildFile<'static>>("child_run.v1"),
    Format::of::<Envelope>("dsse_envelope.v1"),
    Format::of::<ModelRequestFile>("model_request.v1"),
    Format::of::<PlanRequestFile>("plan_request.v1"),
    Format::of::<PlannerRunFile>("planner_run.v1"),
    Format::of::<RefusedRequestFile>("refused_request.v1"),
    Format::of::<ReviewerAnswer>("reviewer_answer.v1"),
    Format::of::<VerdictFile>("verdict.v1"),
];

/// All formats of files in sealed directories, with those of the reports.
pub fn all() -> impl Iterator<Item = &'static Format> {
    schema::formats().chain(FORMATS)
}

/// The format called `name`, with or without its version.
pub fn find(name: &str) -> Option<&'static Format> {
    all().find(|format| format.is_called(name))
}
