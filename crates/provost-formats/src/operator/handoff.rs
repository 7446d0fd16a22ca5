//! The hand-off bundle: what a planner needs to continue after losing its memory.

use std::collections::BTreeMap;

use provost_core::board::lock::Lock;
use provost_core::board::resource::Resource;
use provost_core::board::row::{Priority, Pulse, Row, Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::{Value, json};

use super::assignment::{self, SCHEMA_VERSION, render_lock, render_resources};
use super::finding::{Findings, Place};
use super::limit::LONGEST_TITLE;
use super::object::{Length, Object};
use super::shape::Blocker;
use super::{Answer, reconcile, shape};

/// A board as it is handed to a planner that knows nothing about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    pub run_id: String,
    pub objective: String,
    /// Rules that the planner must follow, in its own shape.
    pub constraints: Value,
    pub ledger: Vec<HandoffRow>,
    pub active_locks: Vec<Lock>,
    /// Pairs of a task and the task that it waits for.
    pub dependencies: Vec<(TaskId, TaskId)>,
    pub open_blockers: Vec<Blocker>,
    /// The criteria of each task.
    pub acceptance_targets: Vec<(TaskId, Vec<String>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HandoffRow {
    pub task_id: TaskId,
    pub title: String,
    pub status: Status,
    /// Empty if the task has no owner.
    pub owner: String,
    pub lock_scope: Vec<Resource>,
    /// How many seconds may pass without a heartbeat.
    pub timeout_seconds: u64,
    pub heartbeat_interval_seconds: u64,
    pub priority: Priority,
    /// The time of the last heartbeat.
    pub last_heartbeat_at: Option<String>,
}

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    parse(value, found);
    Answer::new("the hand-off holds")
}

pub(super) fn parse(value: &Node<'_>, found: &mut Findings) -> Option<Handoff> {
    let payload = Object::payload(value, found)?;
    let run_id = shape::header(payload, found)?;
    let objective = payload.text("objective", Length::Filled, found);
    let constraints = payload.required("constraints", found);
    if constraints.is_some_and(|value| value.as_object().is_none() && value.as_list().is_none()) {
        let problem = "is not an object or a list";
        found.add(Code::SchemaInvalid, payload.at("constraints"), problem);
    }
    let ledger = payload.all("ledger", read_row, found);
    let active_locks = payload.all("active_locks", shape::lock, found);
    let dependencies = payload.all("dependencies", read_dependency, found);
    let open_blockers = payload.all("open_blockers", shape::blocker, found);
    let acceptance_targets = payload.all("acceptance_targets", read_target, found);
    payload.close(
        &[
            "schema_version",
            "run_id",
            "generated_at",
            "objective",
            "constraints",
            "ledger",
            "active_locks",
            "dependencies",
            "open_blockers",
            "acceptance_targets",
        ],
        found,
    );
    let handoff = Handoff {
        run_id: run_id.to_owned(),
        objective: objective?.to_owned(),
        constraints: constraints?.clone().into_value(),
        ledger: ledger?,
        active_locks: active_locks?,
        dependencies: dependencies?,
        open_blockers: open_blockers?,
        acceptance_targets: acceptance_targets?,
    };
    judge(&handoff, payload, found);
    Some(handoff)
}

fn read_row(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<HandoffRow> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let title = object.text("title", Length::UpTo(LONGEST_TITLE), found);
    let status = shape::status(object, "status", found);
    let owner = object.text("owner", Length::Any, found);
    let lock_scope = shape::resources(object, "lock_scope", found);
    let (timeout, interval) = assignment::rhythm(object, found);
    let priority = object.word("priority", Priority::parse, shape::PRIORITIES, found);
    let last_heartbeat_at = match object.optional("last_heartbeat_at") {
        None | Some(Node::Null) => None,
        Some(_) => shape::heartbeat(object, found),
    };
    object.close(
        &[
            "task_id",
            "title",
            "status",
            "owner",
            "lock_scope",
            "timeout_seconds",
            "heartbeat_interval_seconds",
            "priority",
            "last_heartbeat_at",
        ],
        found,
    );
    Some(HandoffRow {
        task_id: task_id?,
        title: title?.to_owned(),
        status: status?,
        owner: owner?.to_owned(),
        lock_scope: lock_scope?,
        timeout_seconds: timeout?,
        heartbeat_interval_seconds: interval?,
        priority: priority?,
        last_heartbeat_at,
    })
}

fn read_dependency(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<(TaskId, TaskId)> {
    let object = Object::of(value, place, found)?;
    let task = shape::task_id(object, "task_id", found);
    let on = shape::task_id(object, "depends_on_task_id", found);
    object.close(&["task_id", "depends_on_task_id"], found);
    Some((task?, on?))
}

fn read_target(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<(TaskId, Vec<String>)> {
    let object = Object::of(value, place, found)?;
    let task = shape::task_id(object, "task_id", found);
    let criteria = object.texts("criteria", Length::Filled, found);
    object.close(&["task_id", "criteria"], found);
    let criteria = criteria?.into_iter().map(str::to_owned).collect();
    Some((task?, criteria))
}

fn judge(handoff: &Handoff, payload: Object<'_, '_>, found: &mut Findings) {
    shape::conflicts(&handoff.active_locks, payload.at("active_locks"), found);
    let mut tasks: Vec<&TaskId> = handoff.ledger.iter().map(|row| &row.task_id).collect();
    tasks.sort();
    for pair in tasks.windows(2) {
        if pair[0] == pair[1] {
            let problem = format!("{} has two rows", pair[0]);
            found.add(Code::LedgerInconsistent, payload.at("ledger"), problem);
        }
    }
    // The contract permits a bundle that is not reconciled.
    if found.is_strict() && found.is_empty() {
        let rows = handoff.rows();
        let locks = &handoff.active_locks;
        reconcile::judge(&rows, locks, &[], *payload.place(), found);
    }
}

impl Handoff {
    pub fn rows(&self) -> Vec<Row> {
        let mut waits: BTreeMap<&TaskId, Vec<TaskId>> = BTreeMap::new();
        for (task, on) in &self.dependencies {
            waits.entry(task).or_default().push(on.clone());
        }
        let row = |row: &HandoffRow| Row {
            task_id: row.task_id.clone(),
            status: row.status,
            owner: row.owner.clone(),
            dependencies: waits.get(&row.task_id).cloned().unwrap_or_default(),
            pulse: Pulse {
                last_heartbeat_at: row.last_heartbeat_at.clone(),
                ..Pulse::default()
            },
        };
        self.ledger.iter().map(row).collect()
    }

    pub fn render(&self) -> Value {
        let row = |row: &HandoffRow| {
            json!({
                "task_id": row.task_id,
                "title": row.title,
                "status": row.status,
                "owner": row.owner,
                "lock_scope": render_resources(&row.lock_scope),
                "timeout_seconds": row.timeout_seconds,
                "heartbeat_interval_seconds": row.heartbeat_interval_seconds,
                "priority": row.priority,
                "last_heartbeat_at": row.last_heartbeat_at,
            })
        };
        let dependency =
            |(task, on): &(TaskId, TaskId)| json!({ "task_id": task, "depends_on_task_id": on });
        let target = |target: &(TaskId, Vec<String>)| {
            let (task, criteria) = target;
            json!({ "task_id": task, "criteria": criteria })
        };
        let blocker = |one: &Blocker| {
            let mut blocker = json!({
                "task_id": one.task_id,
                "code": one.code,
                "reason": one.reason,
            });
            if let Some(details) = &one.details {
                blocker["details"] = details.clone();
            }
            blocker
        };
        json!({
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "objective": self.objective,
            "constraints": self.constraints,
            "ledger": self.ledger.iter().map(row).collect::<Vec<_>>(),
            "active_locks": self.active_locks.iter().map(render_lock).collect::<Vec<_>>(),
            "dependencies": self.dependencies.iter().map(dependency).collect::<Vec<_>>(),
            "open_blockers": self.open_blockers.iter().map(blocker).collect::<Vec<_>>(),
            "acceptance_targets": self.acceptance_targets.iter().map(target).collect::<Vec<_>>(),
        })
    }
}
