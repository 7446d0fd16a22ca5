//! The assignment: a task, what it may touch, and what counts as done.

use crate::board::lock::{self, Lock};
use crate::board::row::{Priority, TaskId};
use crate::board::watchdog::SHORTEST_TIMEOUT;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::{self, Cover, Resource};
use provost_core::schema::leaf::{Filled, FilledStrictly, InnerPath};
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Answer;
use super::finding::Findings;
use super::header::Header;
use super::limit::{LONGEST_OBJECTIVE, LONGEST_TITLE, SHORTEST_HEARTBEAT};

/// A task for a worker, with its context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assignment {
    #[serde(flatten)]
    pub header: Header,
    packet_type: PacketType,
    /// The objective of the whole run.
    #[schemars(with = "Filled", length(max = LONGEST_OBJECTIVE))]
    pub global_objective: String,
    required_output_schema: OutputSchema,
    pub task: Task,
    pub active_locks: Vec<Lock>,
    /// What the worker may read; data, never instructions.
    pub context_package: Vec<Context>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PacketType {
    Assignment,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputSchema {
    SubagentResultV1,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub task_id: TaskId,
    #[schemars(with = "Filled", length(max = LONGEST_TITLE))]
    pub title: String,
    /// Whether other tasks may run at the same time.
    #[serde(rename = "type")]
    pub pace: Pace,
    /// The tasks that must be done before.
    pub dependencies: Vec<TaskId>,
    /// What it locks; no entry is inside another.
    #[schemars(length(min = 1))]
    pub lock_scope: Vec<Resource>,
    /// What it must not touch.
    pub forbidden_scope: Vec<Resource>,
    /// What decides whether it is done.
    #[schemars(with = "Vec<Filled>", length(min = 1))]
    pub acceptance_criteria: Vec<String>,
    /// The file that the worker writes its log to.
    #[schemars(with = "InnerPath")]
    pub worklog_path: String,
    /// How many seconds may pass without a heartbeat.
    #[schemars(range(min = SHORTEST_TIMEOUT))]
    pub timeout_seconds: u64,
    /// The seconds between heartbeats; less than the timeout.
    #[schemars(range(min = SHORTEST_HEARTBEAT))]
    pub heartbeat_interval_seconds: u64,
    #[serde(default)]
    pub priority: Priority,
    /// Other programs write it here; no reader uses it.
    #[serde(default, skip_serializing)]
    report_path: Option<Value>,
}

/// Whether other tasks may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    Parallelizable,
    Serial,
}

/// Something that a worker may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    pub kind: ContextKind,
    // An empty value says nothing, but the text of the contract permits it.
    #[schemars(with = "FilledStrictly")]
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    File,
    /// Free text.
    Note,
    Command,
    /// A rule that the worker must follow.
    Constraint,
}

static FORMAT: FormatReader<Assignment> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    read(node, "", found);
    Answer::new("the assignment holds")
}

/// Reads an assignment at the pointer `at`; `None` if its shape is wrong.
pub(super) fn read(node: &Node<'_>, at: &str, found: &mut Findings) -> Option<Assignment> {
    let assignment = found.read(&FORMAT, node, at)?;
    judge(&assignment, at, found);
    Some(assignment)
}

/// The heartbeat interval of a task must be shorter than its timeout.
pub(super) fn judge_rhythm(timeout: u64, interval: u64, at: &str, found: &mut Findings) {
    if interval >= timeout {
        let path = format_args!("{at}/heartbeat_interval_seconds");
        let problem = "is not shorter than `timeout_seconds`";
        found.add(Code::SchemaInvalid, path, problem);
    }
}

/// Judges the rules between the parts of an assignment.
pub(super) fn judge(assignment: &Assignment, at: &str, found: &mut Findings) {
    let task = &assignment.task;
    let (timeout, interval) = (task.timeout_seconds, task.heartbeat_interval_seconds);
    judge_rhythm(timeout, interval, &format!("{at}/task"), found);
    let forbidden = Cover::of(&task.forbidden_scope);
    let mut clash = |index: usize, problem: String| {
        let path = format_args!("{at}/task/lock_scope/{index}");
        found.add(Code::LockConflict, path, problem);
    };
    for (index, wanted) in task.lock_scope.iter().enumerate() {
        if let Some(forbidden) = forbidden.touched_by(wanted) {
            let problem = format!("`{wanted}` overlaps `{forbidden}`, which is forbidden");
            clash(index, problem);
        }
    }
    let alone: Vec<_> = task.lock_scope.iter().map(|one| (one, None)).collect();
    for (one, two) in resource::clashes::<()>(&alone) {
        let (one, wanted) = (&task.lock_scope[one], &task.lock_scope[two]);
        clash(two, format!("`{wanted}` overlaps `{one}` of the same list"));
    }
    let locks = &assignment.active_locks;
    for (index, wanted) in lock::hindrances(&task.task_id, &task.lock_scope, locks) {
        let held = &locks[index];
        let problem = format!(
            "`{}` of {} overlaps `{wanted}` of the lock scope",
            held.resource, held.task_id
        );
        let path = format_args!("{at}/active_locks/{index}");
        found.add(Code::LockConflict, path, problem);
    }
    if found.is_strict() {
        judge_strictly(assignment, at, found);
    }
}

/// Refuses what the text of the contract permits although it cannot be intended.
fn judge_strictly(assignment: &Assignment, at: &str, found: &mut Findings) {
    let task = &assignment.task;
    if task.dependencies.contains(&task.task_id) {
        let path = format_args!("{at}/task/dependencies");
        found.add(Code::DependencyNotMet, path, "names the task itself");
    }
    for (index, criterion) in task.acceptance_criteria.iter().enumerate() {
        let path = format_args!("{at}/task/acceptance_criteria/{index}");
        found.look_for_secrets(path, criterion);
    }
    found.look_for_secrets(format_args!("{at}/task/title"), &task.title);
    let objective = &assignment.global_objective;
    found.look_for_secrets(format_args!("{at}/global_objective"), objective);
    for (index, context) in assignment.context_package.iter().enumerate() {
        let path = format_args!("{at}/context_package/{index}/value");
        found.look_for_secrets(path, &context.value);
    }
}
