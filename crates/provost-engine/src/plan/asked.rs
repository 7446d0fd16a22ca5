//! Defines what a planner is asked, what it has to answer, and the document made from the answer.
//!
//! A request becomes a contract; a contract becomes a chain of smaller ones. Neither is executed:
//! the result is a document that the user reads first.
//!
//! # Invariants
//!
//! - An answer is data: it decides nothing but the texts, paths and commands of a document. That
//!   document is judged by the rules of every other one.
//! - A planner gets a tree to read and its model, and nothing else.
//! - Nothing in the tree instructs a planner: the instruction comes from Provost and the user.

use std::time::Duration;

use crate::bundle::sealed::RecordKind;
use provost_core::agent::launch::{self, Answer};
use provost_core::code::Code;
use provost_core::contract::Problem;
use provost_core::contract::document::Document;
use provost_core::contract::limits::Limits;
use provost_core::json;
use provost_core::net::endpoint::Endpoint;
use provost_core::object::Oid;
use provost_core::run::effect::{Adaptation, Base, InputFile, NamedBy, ReadOnlyRun};
use provost_core::run::fact::{ReviewRun, Reviewer, WorkspaceChoice};
use provost_core::run::judge::ReadOnlyAgent;
use provost_core::schema;
use provost_core::tier::Tier;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{contract, instruction, split};

/// The working directory of a planner; it is empty.
const START: &str = "/plan";

/// Where the request lies in its sandbox.
pub const REQUEST: &str = "/run/provost/plan/request.json";

/// The files of a record.
pub mod layout {
    pub use provost_core::bundle::layout::REQUEST;
    /// How the planner ended.
    pub const LOOKED: &str = "planner.json";
    /// The answer as the planner left it.
    pub const ANSWER: &str = "answer.json";
    /// The verdict on the answer.
    pub const VERDICT: &str = "verdict.json";
    /// The contract that a request became.
    pub const CONTRACT: &str = "contract.json";
    /// The chain that a contract became.
    pub const CHAIN: &str = "chain.json";
    pub const STDOUT: &str = "stdout.log";
    pub const STDERR: &str = "stderr.log";
    /// The agent stream, if the format of its program is known.
    pub const EVENTS: &str = "events.jsonl";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// Make a contract from a request of a user.
    Plan {
        /// The text of the user.
        request: String,
    },
    /// Divide a contract into several.
    Split { contract: Box<Document> },
}

impl Task {
    /// The format that the answer of a planner is bound to.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Plan { .. } => Answer::ReadOnly(contract::schema()),
            Self::Split { .. } => Answer::ReadOnly(split::schema()),
        }
    }

    pub fn record(&self) -> RecordKind {
        match self {
            Self::Plan { .. } => RecordKind::Plan,
            Self::Split { .. } => RecordKind::Split,
        }
    }
}

/// Everything that a plan follows from, as its record holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub plan_id: String,
    pub task: Task,
    /// The revision that was named.
    pub revision: String,
    /// The commit of that revision.
    pub base_commit: Oid,
    /// Its tree, which the planner reads.
    pub base_tree: Oid,
    pub planner: Reviewer,
    /// The granted network endpoints.
    pub net: Vec<String>,
    pub workspace: WorkspaceChoice,
    /// When the planner is ended, in seconds.
    pub timeout_sec: u64,
    pub began: String,
    pub version: String,
}

impl Asked {
    /// The recorded author of the resulting document.
    pub fn author(&self) -> String {
        format!("agent:{}", self.planner.name)
    }

    /// How the planner is started.
    pub fn look(&self, limits: Limits) -> ReadOnlyRun {
        let planner = &self.planner;
        let adaptation = planner.adapted.clone().map(|adapted| Adaptation {
            instruction: instruction::render(&self.task)
                + &launch::binding(adapted.adapter, self.task.answer()),
            adapted,
            answer: self.task.answer(),
            task_id: self.plan_id.clone(),
            events: layout::EVENTS.to_owned(),
            forbidden: Vec::new(),
            shapes: Vec::new(),
            thread: None,
        });
        // A known program needs its model and nothing else; a command may need anything.
        let net = match &adaptation {
            Some(known) => known.model().into_iter().cloned().collect(),
            None => self
                .net
                .iter()
                .filter_map(|it| Endpoint::parse(it).ok())
                .collect(),
        };
        ReadOnlyRun {
            run_id: self.plan_id.clone(),
            who: "planner",
            base: Base {
                commit: self.base_commit.clone(),
                tree: self.base_tree.clone(),
            },
            tree: self.base_tree.clone(),
            choice: self.workspace,
            start: START,
            argv: planner.argv.clone(),
            named_by: NamedBy::of(planner.typed),
            adaptation,
            tier: Tier::Namespaces,
            time_limit: Duration::from_secs(self.timeout_sec),
            limits,
            net,
            loopback: true,
            credentials: planner.credentials.clone(),
            stdout: layout::STDOUT.to_owned(),
            stderr: layout::STDERR.to_owned(),
        }
    }

    /// The request for a command agent: on its standard input, and as a file.
    pub fn paper(&self) -> InputFile {
        let request = PlannerRequest {
            plan_id: &self.plan_id,
            task: &self.task,
            base: &self.base_commit,
            instruction: instruction::render(&self.task),
            answer_schema: self.task.answer().schema(),
        };
        InputFile {
            place: REQUEST,
            variable: "PROVOST_REQUEST",
            // Texts and documents, which are always JSON.
            bytes: json::pretty(&request).unwrap_or_default().into_bytes(),
        }
    }

    /// The text that the planner left, or why it is not accepted.
    pub fn answer_text<'a>(&self, looked: &'a ReviewRun) -> Result<&'a str, Verdict> {
        let planner = ReadOnlyAgent {
            who: "planner",
            leaves: "plan",
            code: Code::PlanInvalid,
            adapted: self.planner.adapted.as_ref(),
        };
        if looked.tree != self.base_tree {
            let reason = "the planner read another tree than it was given";
            return Err(Verdict::deny(Code::PlanInvalid, reason));
        }
        planner.report_text(looked)
    }
}

/// The input of a planner that is a plain command.
#[derive(Serialize)]
struct PlannerRequest<'a> {
    plan_id: &'a str,
    task: &'a Task,
    base: &'a Oid,
    instruction: String,
    answer_schema: Option<Value>,
}

/// Whether a planner has a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Word {
    Plan,
    Blocked,
}

/// Reads an answer of the type `T`, which `schema` describes.
///
/// Every mismatch is named by its place.
pub(super) fn read<T: serde::de::DeserializeOwned>(
    text: &str,
    schema: &Value,
) -> Result<T, Verdict> {
    schema::read::read(text.as_bytes(), schema).map_err(|unfit| {
        let verdict = Verdict::deny(Code::PlanInvalid, format!("the planner's plan {unfit}"));
        unfit.details().into_iter().fold(verdict, Verdict::with)
    })
}

/// The refusal of a planner that has no plan, with its own text.
pub(super) fn blocked(summary: &str) -> Verdict {
    let line = summary.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().take(400).collect();
    Verdict::deny(
        Code::PlanRefused,
        format!("the planner has no plan: {line}"),
    )
    .with(BlockedPlan { summary })
}

#[derive(Serialize)]
struct BlockedPlan<'a> {
    summary: &'a str,
}

/// The refusal of a document, whose places lie below `place`.
pub(super) fn broken(code: Code, place: &str, problems: Vec<Problem>) -> Option<Verdict> {
    let problems: Vec<Problem> = problems
        .into_iter()
        .map(|problem| Problem {
            path: format!("{place}{}", problem.path),
            ..problem
        })
        .collect();
    let first = problems.first()?;
    let reason = match problems.len() {
        1 => format!("`{}` {}", first.path, first.problem),
        count => format!(
            "{count} rules are broken; `{}` {}",
            first.path, first.problem
        ),
    };
    Some(Verdict::deny(code, reason).with_findings(problems))
}
