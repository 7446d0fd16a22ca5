//! One step of one task, with the facts that decide about it.

use crate::board::row::{Status, TaskId};
use crate::board::transition::{self, Dependency, Facts, Request};
use provost_core::bundle::report::Nullable;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::schema::leaf::Filled;
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Answer;
use super::finding::Findings;
use super::header::{BoardCode, take_header};

/// A requested step.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct StepRequest {
    task: TaskBefore,
    to: Status,
    expected_version: u64,
    #[schemars(with = "Filled")]
    actor: String,
    #[schemars(with = "Filled")]
    reason: String,
    #[schemars(with = "Option<BoardCode>")]
    code: Option<Code>,
    /// The next owner, when it changes.
    owner: Option<String>,
    #[serde(flatten)]
    facts: Facts,
}

/// The task before the step.
#[derive(Deserialize, JsonSchema)]
struct TaskBefore {
    task_id: TaskId,
    status: Status,
    version: u64,
    #[serde(default)]
    #[schemars(with = "Nullable<String>")]
    owner: Option<String>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

static FORMAT: FormatReader<StepRequest> = FormatReader::new();

impl From<StepRequest> for Request {
    fn from(step: StepRequest) -> Self {
        Self {
            task_id: step.task.task_id,
            from: step.task.status,
            to: step.to,
            version: step.task.version,
            expected_version: step.expected_version,
            owner: step.task.owner.unwrap_or_default(),
            new_owner: step.owner,
            actor: step.actor,
            reason: step.reason,
            code: step.code,
            dependencies: step.task.dependencies,
            facts: step.facts,
        }
    }
}

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("the step may be taken");
    let Some(step) = found.read(&FORMAT, node, "") else {
        return answer;
    };
    match transition::judge(&step.into()) {
        Err(why) => {
            found.add(why.code(), "", why);
            answer
        }
        Ok(step) => answer
            .with("event", json!(step.event))
            .with("version", json!(step.version)),
    }
}
