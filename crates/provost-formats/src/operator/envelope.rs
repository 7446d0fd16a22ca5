//! The output of the planner: board changes, assignments and blockers.

use std::collections::BTreeMap;

use provost_core::board::delta::{Create, Delta};
use provost_core::board::lock;
use provost_core::board::resource;
use provost_core::board::row::{Pulse, Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;

use super::assignment::{self, Assignment};
use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::shape::Blocker;
use super::{Answer, shape};

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    read(value, found);
    Answer::new("the orchestrator output holds")
}

fn read(value: &Node<'_>, found: &mut Findings) -> Option<()> {
    let payload = Object::payload(value, found)?;
    let run_id = shape::header(payload, found)?;
    let deltas = payload.all("ledger_delta", read_delta, found);
    let assignments = payload.all("assignments", assignment::parse, found);
    let locks = payload.all("active_locks", shape::lock, found);
    let blockers = payload.all("blockers", shape::blocker, found);
    payload.texts("next_actions", Length::Any, found);
    payload.close(
        &[
            "schema_version",
            "run_id",
            "generated_at",
            "ledger_delta",
            "assignments",
            "active_locks",
            "blockers",
            "next_actions",
        ],
        found,
    );
    if let (Some(deltas), Some(blockers)) = (&deltas, &blockers) {
        judge_deltas(deltas, blockers, payload, found);
    }
    if let Some(locks) = &locks {
        shape::conflicts(locks, payload.at("active_locks"), found);
    }
    let assignments = assignments?;
    judge_assignments(run_id, &assignments, payload, found);
    for (at, assignment) in assignments.iter().enumerate() {
        let task = &assignment.task;
        let locks = locks.as_deref().unwrap_or_default();
        for (lock, wanted) in lock::hindrances(&task.task_id, &task.lock_scope, locks) {
            let held = &locks[lock];
            let problem = format!(
                "`{wanted}` of {} overlaps `{}`, which {} holds",
                task.task_id, held.resource, held.task_id
            );
            found.add(
                Code::LockConflict,
                payload.at("assignments").index(at),
                problem,
            );
        }
    }
    Some(())
}

/// Reads a delta at `place`; `None` if its shape is wrong.
pub(super) fn read_delta(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Delta> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let status = shape::status(object, "status", found);
    let owner = object.text("owner", Length::Any, found);
    let reason = object.text("reason", Length::Filled, found);
    let delta_id = object.text("delta_id", Length::Filled, found);
    let create = match object.optional_flag("x_create", found) {
        None => Create::Unsaid,
        Some(true) => Create::Yes,
        Some(false) => Create::No,
    };
    let pulse = read_pulse(object, found);
    object.close(
        &[
            "task_id",
            "status",
            "owner",
            "reason",
            "delta_id",
            "last_heartbeat_at",
            "timed_out",
            "retry_after_ms",
        ],
        found,
    );
    let reason = reason?;
    if found.is_strict() {
        found.look_for_secrets(object.at("reason"), reason);
    }
    Some(Delta {
        delta_id: delta_id?.to_owned(),
        task_id: task_id?,
        status: status?,
        owner: owner?.to_owned(),
        reason: reason.to_owned(),
        create,
        pulse,
    })
}

/// The heartbeat fields of an object.
pub(super) fn read_pulse(object: Object<'_, '_>, found: &mut Findings) -> Pulse {
    let retry = object.optional("retry_after_ms");
    let retry_after_ms = retry.and_then(Node::as_i64);
    let is_bad = retry_after_ms.is_none_or(|wait| found.is_strict() && wait < 0);
    if retry.is_some() && is_bad {
        let problem = "is not a whole number of milliseconds";
        found.add(Code::SchemaInvalid, object.at("retry_after_ms"), problem);
    }
    Pulse {
        last_heartbeat_at: shape::heartbeat(object, found),
        timed_out: object.optional_flag("timed_out", found),
        retry_after_ms,
    }
}

fn judge_deltas(
    deltas: &[Delta],
    blockers: &[Blocker],
    payload: Object<'_, '_>,
    found: &mut Findings,
) {
    let place = payload.at("ledger_delta");
    let mut tasks: Vec<&TaskId> = blockers.iter().map(|blocker| &blocker.task_id).collect();
    tasks.sort();
    let mut seen: BTreeMap<&str, &Delta> = BTreeMap::new();
    for (at, delta) in deltas.iter().enumerate() {
        if let Some(first) = seen.get(&*delta.delta_id) {
            if found.is_strict() && *first != delta {
                let problem = "stands for another change above";
                found.add(
                    Code::ConcurrencyConflict,
                    place.index(at).key("delta_id"),
                    problem,
                );
            }
            continue;
        }
        seen.insert(&delta.delta_id, delta);
        if delta.status == Status::Blocked && tasks.binary_search(&&delta.task_id).is_err() {
            let problem = format!(
                "{} gets blocked without an entry in `blockers`",
                delta.task_id
            );
            found.add(Code::SchemaInvalid, place.index(at), problem);
        }
        let ownerless = delta.status == Status::InProgress && delta.owner.trim().is_empty();
        if found.is_strict() && ownerless {
            let problem = "is blank, but a task in progress needs an owner";
            found.add(
                Code::LedgerInconsistent,
                place.index(at).key("owner"),
                problem,
            );
        }
    }
}

/// Judges the rules between assignments: each may be valid alone, and in conflict with another.
fn judge_assignments(
    run_id: &str,
    assignments: &[Assignment],
    payload: Object<'_, '_>,
    found: &mut Findings,
) {
    let place = payload.at("assignments");
    let mut tasks: BTreeMap<&TaskId, usize> = BTreeMap::new();
    let mut held = Vec::new();
    let mut owners = Vec::new();
    for (at, assignment) in assignments.iter().enumerate() {
        if assignment.run_id != run_id {
            let problem = "belongs to another run";
            found.add(Code::SchemaInvalid, place.index(at).key("run_id"), problem);
        }
        let task = &assignment.task;
        if tasks.insert(&task.task_id, at).is_some() {
            let problem = format!("{} is assigned twice", task.task_id);
            found.add(Code::LockConflict, place.index(at), problem);
        }
        for resource in &task.lock_scope {
            held.push((resource, Some(&task.task_id)));
            owners.push(at);
        }
    }
    for (one, two) in resource::clashes(&held) {
        let (first, second) = (
            &assignments[owners[one]].task,
            &assignments[owners[two]].task,
        );
        let problem = format!(
            "`{}` of {} overlaps `{}` of {}",
            held[two].0, second.task_id, held[one].0, first.task_id
        );
        found.add(Code::LockConflict, place.index(owners[two]), problem);
    }
}
