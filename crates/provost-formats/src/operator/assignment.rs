//! The assignment: a task, what it may touch, and what counts as done.

use provost_core::board::lock::{self, Lock};
use provost_core::board::resource::{self, Cover, Resource};
use provost_core::board::row::{Priority, TaskId};
use provost_core::board::watchdog::SHORTEST_TIMEOUT;
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::{Value, json};

use super::finding::{Findings, Place};
use super::limit::{LONGEST_OBJECTIVE, LONGEST_TITLE, SHORTEST_HEARTBEAT};
use super::object::{Length, Object, text};
use super::{Answer, shape};

/// The version that is written.
pub(super) const SCHEMA_VERSION: &str = "1.0.0";
const PACKET_TYPE: &str = "assignment";
const OUTPUT_SCHEMA: &str = "subagent_result_v1";

/// A task for a worker, with its context.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub run_id: String,
    /// The objective of the whole run.
    pub global_objective: String,
    pub task: Task,
    pub active_locks: Vec<Lock>,
    /// What the worker may read; data, never instructions.
    pub context: Vec<Context>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub task_id: TaskId,
    pub title: String,
    /// Whether other tasks may run at the same time.
    pub pace: Pace,
    /// The tasks that must be done before.
    pub dependencies: Vec<TaskId>,
    /// What it locks; never empty, and no entry is inside another.
    pub lock_scope: Vec<Resource>,
    /// What it must not touch.
    pub forbidden_scope: Vec<Resource>,
    /// What decides whether it is done; never empty.
    pub acceptance_criteria: Vec<String>,
    /// The file that the worker writes its log to.
    pub worklog_path: String,
    /// How many seconds may pass without a heartbeat.
    pub timeout_seconds: u64,
    /// The seconds between heartbeats; less than the timeout.
    pub heartbeat_interval_seconds: u64,
    pub priority: Priority,
}

/// Whether other tasks may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Parallelizable,
    Serial,
}

impl Pace {
    const ALL: [Self; 2] = [Self::Parallelizable, Self::Serial];

    fn name(self) -> &'static str {
        match self {
            Self::Parallelizable => "parallelizable",
            Self::Serial => "serial",
        }
    }
}

/// Something that a worker may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub kind: ContextKind,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    File,
    /// Free text.
    Note,
    Command,
    /// A rule that the worker must follow.
    Constraint,
}

impl ContextKind {
    const ALL: [Self; 4] = [Self::File, Self::Note, Self::Command, Self::Constraint];

    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Note => "note",
            Self::Command => "command",
            Self::Constraint => "constraint",
        }
    }
}

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    parse(value, *Place::root(), found);
    Answer::new("the assignment holds")
}

/// Reads an assignment at `place`; `None` if its shape is wrong.
pub(super) fn parse(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Assignment> {
    let packet = Object::of(value, place, found)?;
    let run_id = shape::header(packet, found)?;
    fixed(packet, "packet_type", PACKET_TYPE, found);
    let length = Length::UpTo(LONGEST_OBJECTIVE);
    let objective = packet.text("global_objective", length, found);
    fixed(packet, "required_output_schema", OUTPUT_SCHEMA, found);
    let task = packet.required("task", found);
    let task = task.and_then(|value| read_task(value, packet.at("task"), found));
    let locks = packet.all("active_locks", shape::lock, found);
    let context = packet.all("context_package", read_context, found);
    packet.close(
        &[
            "schema_version",
            "run_id",
            "generated_at",
            "packet_type",
            "global_objective",
            "task",
            "active_locks",
            "context_package",
            "required_output_schema",
        ],
        found,
    );
    let assignment = Assignment {
        run_id: run_id.to_owned(),
        global_objective: objective?.to_owned(),
        task: task?,
        active_locks: locks?,
        context: context?,
    };
    judge(&assignment, packet, found);
    Some(assignment)
}

fn fixed(object: Object<'_, '_>, key: &str, want: &str, found: &mut Findings) {
    let parse = |text: &str| (text == want).then_some(());
    object.word(key, parse, want, found);
}

fn read_task(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Task> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let title = object.text("title", Length::UpTo(LONGEST_TITLE), found);
    let by_name = |name: &str| Pace::ALL.into_iter().find(|pace| pace.name() == name);
    let kind = object.word("type", by_name, "parallelizable, serial", found);
    let dependencies = object.all("dependencies", shape::task, found);
    let lock_scope = shape::resources(object, "lock_scope", found);
    not_empty(object, "lock_scope", lock_scope.as_deref(), found);
    let forbidden_scope = shape::resources(object, "forbidden_scope", found);
    let criteria = object.texts("acceptance_criteria", Length::Filled, found);
    not_empty(object, "acceptance_criteria", criteria.as_deref(), found);
    let worklog_path = shape::worklog_path(object, found);
    let (timeout, heartbeat) = rhythm(object, found);
    let priority = shape::priority(object, found);
    object.close(
        &[
            "task_id",
            "title",
            "type",
            "dependencies",
            "lock_scope",
            "forbidden_scope",
            "acceptance_criteria",
            "worklog_path",
            "timeout_seconds",
            "heartbeat_interval_seconds",
            "priority",
            "report_path",
        ],
        found,
    );
    Some(Task {
        task_id: task_id?,
        title: title?.to_owned(),
        pace: kind?,
        dependencies: dependencies?,
        lock_scope: lock_scope?,
        forbidden_scope: forbidden_scope?,
        acceptance_criteria: criteria?.into_iter().map(str::to_owned).collect(),
        worklog_path: worklog_path?.to_owned(),
        timeout_seconds: timeout?,
        heartbeat_interval_seconds: heartbeat?,
        priority: priority?,
    })
}

/// The timeout and the heartbeat interval of a task; the second must be shorter.
pub(super) fn rhythm(object: Object<'_, '_>, found: &mut Findings) -> (Option<u64>, Option<u64>) {
    const INTERVAL: &str = "heartbeat_interval_seconds";
    let timeout = object.count("timeout_seconds", SHORTEST_TIMEOUT, found);
    let interval = object.count(INTERVAL, SHORTEST_HEARTBEAT, found);
    if let (Some(timeout), Some(interval)) = (timeout, interval)
        && interval >= timeout
    {
        let problem = "is not shorter than `timeout_seconds`";
        found.add(Code::SchemaInvalid, object.at(INTERVAL), problem);
    }
    (timeout, interval)
}

fn not_empty<T>(object: Object<'_, '_>, key: &str, list: Option<&[T]>, found: &mut Findings) {
    if list.is_some_and(<[T]>::is_empty) {
        found.add(Code::MissingRequiredInput, object.at(key), "is empty");
    }
}

fn read_context(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Context> {
    let object = Object::of(value, place, found)?;
    let by_name = |name: &str| {
        ContextKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    };
    let kind = object.word("kind", by_name, "file, note, command, constraint", found);
    // An empty value says nothing, but the text of the contract permits it.
    let length = if found.is_strict() {
        Length::Filled
    } else {
        Length::Any
    };
    let value = object.required("value", found);
    let value = value.and_then(|value| text(value, object.at("value"), length, found));
    object.close(&["kind", "value"], found);
    Some(Context {
        kind: kind?,
        value: value?.to_owned(),
    })
}

/// Judges the rules between the parts of an assignment.
fn judge(assignment: &Assignment, packet: Object<'_, '_>, found: &mut Findings) {
    let task = &assignment.task;
    let place = packet.at("task");
    let forbidden = Cover::of(&task.forbidden_scope);
    for (at, wanted) in task.lock_scope.iter().enumerate() {
        if let Some(forbidden) = forbidden.touched_by(wanted) {
            let problem = format!("`{wanted}` overlaps `{forbidden}`, which is forbidden");
            found.add(
                Code::LockConflict,
                place.key("lock_scope").index(at),
                problem,
            );
        }
    }
    let alone: Vec<_> = task.lock_scope.iter().map(|one| (one, None)).collect();
    for (one, two) in resource::clashes::<()>(&alone) {
        let (one, wanted) = (&task.lock_scope[one], &task.lock_scope[two]);
        let problem = format!("`{wanted}` overlaps `{one}` of the same list");
        found.add(
            Code::LockConflict,
            place.key("lock_scope").index(two),
            problem,
        );
    }
    let locks = &assignment.active_locks;
    for (at, wanted) in lock::hindrances(&task.task_id, &task.lock_scope, locks) {
        let held = &locks[at];
        let problem = format!(
            "`{}` of {} overlaps `{wanted}` of the lock scope",
            held.resource, held.task_id
        );
        found.add(
            Code::LockConflict,
            packet.at("active_locks").index(at),
            problem,
        );
    }
    if found.is_strict() {
        judge_strictly(assignment, packet, found);
    }
}

/// Refuses what the text of the contract permits although it cannot be intended.
fn judge_strictly(assignment: &Assignment, packet: Object<'_, '_>, found: &mut Findings) {
    let task = &assignment.task;
    let place = packet.at("task");
    if task.dependencies.contains(&task.task_id) {
        let problem = "names the task itself";
        found.add(Code::DependencyNotMet, place.key("dependencies"), problem);
    }
    for (at, criterion) in task.acceptance_criteria.iter().enumerate() {
        found.look_for_secrets(place.key("acceptance_criteria").index(at), criterion);
    }
    found.look_for_secrets(place.key("title"), &task.title);
    found.look_for_secrets(packet.at("global_objective"), &assignment.global_objective);
    for (at, context) in assignment.context.iter().enumerate() {
        let place = packet.at("context_package");
        found.look_for_secrets(place.index(at).key("value"), &context.value);
    }
}

impl Assignment {
    pub fn render(&self) -> Value {
        let context = |one: &Context| json!({ "kind": one.kind.name(), "value": one.value });
        json!({
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "packet_type": PACKET_TYPE,
            "global_objective": self.global_objective,
            "task": self.task.render(),
            "active_locks": self.active_locks.iter().map(render_lock).collect::<Vec<_>>(),
            "context_package": self.context.iter().map(context).collect::<Vec<_>>(),
            "required_output_schema": OUTPUT_SCHEMA,
        })
    }
}

impl Task {
    fn render(&self) -> Value {
        json!({
            "task_id": self.task_id,
            "title": self.title,
            "type": self.pace.name(),
            "dependencies": self.dependencies,
            "lock_scope": render_resources(&self.lock_scope),
            "forbidden_scope": render_resources(&self.forbidden_scope),
            "acceptance_criteria": self.acceptance_criteria,
            "worklog_path": self.worklog_path,
            "timeout_seconds": self.timeout_seconds,
            "heartbeat_interval_seconds": self.heartbeat_interval_seconds,
            "priority": self.priority,
        })
    }
}

pub(super) fn render_lock(lock: &Lock) -> Value {
    json!({
        "task_id": lock.task_id,
        "resource": lock.resource.to_string(),
        "active": lock.active,
    })
}

pub(super) fn render_resources(list: &[Resource]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}
