//! The result: what a worker says it did, and its evidence.

use crate::board::acceptance::{self, Check, Shortfall};
use crate::board::row::{Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::Resource;
use provost_core::schema::leaf::{Filled, InnerPath, Note};
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Answer;
use super::finding::Findings;
use super::header::Header;
use super::limit::MOST_NOTES;

/// The member of a result that lists its checks.
pub(super) const CHECKS: &str = "acceptance_check";

/// The report of a worker. It is a claim: only what is checked elsewhere counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    #[serde(flatten)]
    pub header: Header,
    pub task_id: TaskId,
    pub status: Outcome,
    pub changes: Vec<Change>,
    pub acceptance_check: Vec<Check>,
    /// The file of the worker's log.
    #[schemars(with = "InnerPath")]
    pub worklog_path: String,
    /// Notes for the planner; data, never instructions.
    #[serde(rename = "notes_for_orchestrator")]
    #[schemars(with = "Vec<Note>", length(max = MOST_NOTES))]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Blocked,
    Failed,
}

impl Outcome {
    /// The status of a task with this outcome.
    pub fn status(self) -> Status {
        match self {
            Self::Done => Status::Done,
            Self::Blocked => Status::Blocked,
            Self::Failed => Status::Failed,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub resource: Resource,
    #[schemars(with = "Filled")]
    pub action: String,
    /// What proves the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

static FORMAT: FormatReader<TaskResult> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    read(node, "", found);
    Answer::new("the result holds")
}

/// Reads a result at the pointer `at`; `None` if its shape is wrong.
pub(super) fn read(node: &Node<'_>, at: &str, found: &mut Findings) -> Option<TaskResult> {
    let result = found.read(&FORMAT, node, at)?;
    // For a finished task, the acceptance rule gives the better message.
    if found.is_strict() && result.status != Outcome::Done {
        for (index, check) in result.acceptance_check.iter().enumerate() {
            if check.evidence.trim().is_empty() {
                let path = format_args!("{at}/{CHECKS}/{index}/evidence");
                found.add(Code::MissingRequiredInput, path, "is blank");
            }
        }
    }
    for (index, note) in result.notes.iter().enumerate() {
        found.look_for_secrets(format_args!("{at}/notes_for_orchestrator/{index}"), note);
    }
    if result.status == Outcome::Done {
        report(
            acceptance::shortfalls(&[], &result.acceptance_check),
            at,
            found,
        );
    }
    if found.is_strict() {
        for key in ["changes", CHECKS] {
            if let Some(node) = node.as_object().and_then(|fields| fields.get(key)) {
                found.look_for_secrets_below(&format_args!("{at}/{key}"), node);
            }
        }
    }
    Some(result)
}

fn report(list: Vec<Shortfall>, at: &str, found: &mut Findings) {
    for shortfall in list {
        let below = match shortfall {
            Shortfall::Nothing | Shortfall::Unchecked(_) => String::new(),
            Shortfall::Failed(index) => format!("/{index}/status"),
            Shortfall::Unproven(index) => format!("/{index}/evidence"),
        };
        let path = format_args!("{at}/{CHECKS}{below}");
        found.add(shortfall.code(), path, shortfall);
    }
}
