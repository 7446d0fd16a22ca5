//! Knows what a planner is asked, what it has to answer, and what that becomes.
//!
//! A request becomes a contract; a contract becomes a chain of smaller ones. Neither is executed:
//! what comes out is a document that somebody reads first.
//!
//! # Invariants
//!
//! - An answer is data: it decides nothing but the words, paths and commands of a document, and that
//!   document is judged by the rules of every other one.
//! - A planner gets a tree to read and its model, and nothing else.
//! - Nothing in the tree tells a planner what to do: the instruction is ours and the person's.

pub mod contract;
mod instruction;
pub mod split;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::launch::{self, Answer};
use crate::bundle::sealed::RecordKind;
use crate::code::Code;
use crate::contract::Problem;
use crate::contract::document::Document;
use crate::contract::limits::Limits;
use crate::net::endpoint::Endpoint;
use crate::object::Oid;
use crate::run::effect::{Adaptation, Base, InputFile, NamedBy, ReadOnlyRun};
use crate::run::fact::{ReviewRun, Reviewer, WorkspaceChoice};
use crate::run::judge::ReadOnlyAgent;
use crate::schema;
use crate::tier::Tier;
use crate::verdict::Verdict;

/// Where a planner starts; there is nothing in it.
const START: &str = "/plan";

/// Where what it is asked lies in its sandbox.
pub const REQUEST: &str = "/run/provost/plan/request.json";

/// The files of a record.
pub mod layout {
    /// What was asked, of whom, about what.
    pub const REQUEST: &str = "request.json";
    /// How the planner ended.
    pub const LOOKED: &str = "planner.json";
    /// What it answered, as it left it.
    pub const ANSWER: &str = "answer.json";
    /// What is said about that.
    pub const VERDICT: &str = "verdict.json";
    /// The contract that a request became.
    pub const CONTRACT: &str = "contract.json";
    /// The chain that a contract became.
    pub const CHAIN: &str = "chain.json";
    /// What the planner printed.
    pub const STDOUT: &str = "stdout.log";
    /// What it complained.
    pub const STDERR: &str = "stderr.log";
    /// What it told, if its program is one that is known.
    pub const EVENTS: &str = "events.jsonl";
}

/// What a planner is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// To make a contract of what a person wants.
    Plan {
        /// That, in the person's words.
        request: String,
    },
    /// To make several contracts of one.
    Split { contract: Box<Document> },
}

impl Task {
    /// What the last words of a planner are bound to.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Plan { .. } => Answer::Plan,
            Self::Split { .. } => Answer::Split,
        }
    }

    /// What a record of it is about.
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
    /// What is to be done.
    pub task: Task,
    /// The revision that was named.
    pub revision: String,
    /// The commit that it led to.
    pub base_commit: Oid,
    /// Its tree, which the planner reads.
    pub base_tree: Oid,
    /// Who plans.
    pub planner: Reviewer,
    /// The places of the network that were granted.
    pub net: Vec<String>,
    /// How a workspace is to be made.
    pub workspace: WorkspaceChoice,
    /// When the planner is ended, in seconds.
    pub timeout_sec: u64,
    pub began: String,
    /// The version of Provost.
    pub version: String,
}

impl Asked {
    /// Who is recorded as the author of what comes out.
    pub fn author(&self) -> String {
        format!("agent:{}", self.planner.name)
    }

    /// The planner at its desk.
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
            thread: None,
        });
        // A program that is known needs its model and nothing else; a command may be anything.
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

    /// What a command is told on its standard input, and finds as a file.
    pub fn paper(&self) -> InputFile {
        let mut value = json!({
            "task": self.task,
            "base": self.base_commit,
            "instruction": instruction::render(&self.task),
            "answer_schema": self.task.answer().schema(),
        });
        value["plan_id"] = json!(self.plan_id);
        InputFile {
            place: REQUEST,
            variable: "PROVOST_REQUEST",
            bytes: format!("{value:#}\n").into_bytes(),
        }
    }

    /// The text that the planner left, or why its word cannot be taken.
    pub fn heard<'a>(&self, looked: &'a ReviewRun) -> Result<&'a str, Verdict> {
        let planner = ReadOnlyAgent {
            who: "planner",
            leaves: "plan",
            code: Code::PlanInvalid,
            adapted: self.planner.adapted.as_ref(),
        };
        if looked.tree != self.base_tree {
            let reason = "the planner looked at another tree than it was given";
            return Err(Verdict::deny(Code::PlanInvalid, reason));
        }
        planner.heard(looked)
    }
}

/// Whether a planner has a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Word {
    /// Here it is.
    Plan,
    /// It cannot make one.
    Blocked,
}

/// Reads an answer of the shape `T`, which is what `schema` describes.
///
/// Everything that does not fit is named by its place.
fn read<T: serde::de::DeserializeOwned>(text: &str, schema: &Value) -> Result<T, Verdict> {
    schema::read::read(text.as_bytes(), schema).map_err(|unfit| {
        let verdict = Verdict::deny(Code::PlanInvalid, format!("the planner's plan {unfit}"));
        unfit.details().into_iter().fold(verdict, Verdict::with)
    })
}

/// The refusal of a planner that has no plan, in its own words.
fn blocked(summary: &str) -> Verdict {
    let line = summary.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().take(400).collect();
    Verdict::deny(
        Code::PlanRefused,
        format!("the planner has no plan: {line}"),
    )
    .with(json!({ "summary": summary }))
}

/// What a planner called `it` is asked who is to plan `request`.
#[cfg(test)]
pub(crate) fn sample(request: &str) -> Asked {
    let request = request.to_owned();
    split::tests::asked(Task::Plan { request })
}

/// The refusal of a document, whose places lie below `place`.
fn broken(code: Code, place: &str, problems: Vec<Problem>) -> Option<Verdict> {
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
    Some(Verdict::deny(code, reason).with(json!({ "findings": problems })))
}
