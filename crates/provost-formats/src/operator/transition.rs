//! One step of one task, with the facts that decide about it.

use provost_core::board::row::Status;
use provost_core::board::transition::{self, Dependency, Facts, Request};
use provost_core::json::Node;
use serde_json::json;

use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::{Answer, shape};

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("the step may be taken");
    let Some(request) = read(value, found) else {
        return answer;
    };
    if !found.is_empty() {
        return answer;
    }
    match transition::judge(&request) {
        Err(why) => {
            found.add(why.code(), *Place::root(), why);
            answer
        }
        Ok(step) => {
            let mut event = json!({
                "task_id": step.event.task_id,
                "from_state": step.event.from,
                "to_state": step.event.to,
                "actor": step.event.actor,
                "reason": step.event.reason,
            });
            if let Some(code) = step.event.code {
                event["code"] = json!(code);
            }
            answer
                .with("event", event)
                .with("version", json!(step.version))
        }
    }
}

fn read(value: &Node<'_>, found: &mut Findings) -> Option<Request> {
    let payload = Object::payload(value, found)?;
    let task = payload.required("task", found);
    let task = task.and_then(|value| read_task(value, payload.at("task"), found));
    let to = shape::status(payload, "to", found);
    let expected_version = payload.count("expected_version", 0, found);
    let actor = payload.text("actor", Length::Filled, found);
    let reason = payload.text("reason", Length::Filled, found);
    let code = shape::optional_code(payload, "code", found);
    let new_owner = payload.optional_text("owner", found);
    let facts = Facts {
        lock_scope_active: payload.optional_flag("lock_scope_active", found),
        assignment_valid: payload.optional_flag("assignment_valid", found),
        result_valid: payload.optional_flag("result_valid", found),
        reconcile_ok: payload.optional_flag("reconcile_ok", found),
    };
    payload.close(
        &[
            "task",
            "to",
            "expected_version",
            "actor",
            "reason",
            "code",
            "owner",
            "lock_scope_active",
            "assignment_valid",
            "result_valid",
            "reconcile_ok",
        ],
        found,
    );
    let task = task?;
    Some(Request {
        to: to?,
        expected_version: expected_version?,
        new_owner: new_owner.map(str::to_owned),
        actor: actor?.to_owned(),
        reason: reason?.to_owned(),
        code,
        facts,
        ..task
    })
}

/// The fields of a request that describe the task itself.
fn read_task(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Request> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let from = shape::status(object, "status", found);
    let version = object.count("version", 0, found);
    let owner = match object.optional("owner") {
        None | Some(Node::Null) => "",
        Some(_) => object.text("owner", Length::Any, found)?,
    };
    let dependencies = object.optional_all("dependencies", read_dependency, found);
    object.close(
        &["task_id", "status", "version", "owner", "dependencies"],
        found,
    );
    Some(Request {
        task_id: task_id?,
        from: from?,
        to: Status::Todo,
        version: version?,
        expected_version: 0,
        owner: owner.to_owned(),
        new_owner: None,
        actor: String::new(),
        reason: String::new(),
        code: None,
        dependencies: dependencies?,
        facts: Facts::default(),
    })
}

fn read_dependency(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Dependency> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let status = shape::status(object, "status", found);
    object.close(&["task_id", "status"], found);
    Some(Dependency {
        task_id: task_id?,
        status: status?,
    })
}
