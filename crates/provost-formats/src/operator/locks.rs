//! Locks: held at the same time, and taken and released in order.

use std::collections::BTreeMap;

use provost_core::board::lock::{Locks, Release};
use provost_core::board::resource::Resource;
use provost_core::board::row::{Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::json;

use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::{Answer, shape};

/// The most places that the operations of a lifecycle may name; each is compared with all others.
const MOST_NAMED: usize = 10_000;

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    if let Some(payload) = Object::payload(value, found) {
        let locks = payload.all("locks", shape::lock, found);
        payload.close(&["locks"], found);
        if let Some(locks) = locks {
            shape::conflicts(&locks, payload.at("locks"), found);
        }
    }
    Answer::new("no locks of different tasks overlap")
}

pub(super) fn check_lifecycle(value: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("every operation was carried out");
    match Object::payload(value, found).and_then(|payload| live(payload, found)) {
        Some(steps) => answer.with("steps", json!(steps)),
        None => answer,
    }
}

/// The result of each operation: `ok`, or the code of its refusal.
fn live(payload: Object<'_, '_>, found: &mut Findings) -> Option<Vec<&'static str>> {
    let items = payload.list("ops", found)?;
    payload.close(&["ops"], found);
    let place = payload.at("ops");
    let names = |item: &Node<'_>| {
        let resources = item.as_object().and_then(|fields| fields.get("resources"));
        1 + resources.and_then(Node::as_list).map_or(0, <[_]>::len)
    };
    if items.iter().map(names).sum::<usize>() > MOST_NAMED {
        let problem = format!("names more than {MOST_NAMED} places");
        found.add(Code::SchemaInvalid, place, problem);
        return None;
    }
    let mut board = Board::default();
    let mut steps = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut own = found.fresh();
        board.act(item, place.index(at), &mut own);
        let refusal = own.list().first();
        steps.push(refusal.map_or("ok", |finding| finding.code.name()));
        found.absorb(own);
    }
    Some(steps)
}

#[derive(Default)]
struct Board {
    locks: Locks,
    statuses: BTreeMap<TaskId, Status>,
}

impl Board {
    /// Carries out one operation; a refused one changes nothing.
    fn act(&mut self, item: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<()> {
        let object = Object::of(item, place, found)?;
        let action = object.text("op", Length::Filled, found)?;
        let task = shape::task_id(object, "task_id", found)?;
        match action {
            "acquire" => {
                let wanted = shape::resources(object, "resources", found)?;
                object.close(&["op", "task_id", "resources"], found);
                let status = self.statuses.get(&task).copied().unwrap_or(Status::Todo);
                if let Err(why) = self.locks.acquire(&task, status, &wanted) {
                    found.add(why.code(), place, why);
                }
            }
            "release" => {
                object.close(&["op", "task_id", "resources"], found);
                let named: Option<Vec<Resource>> = match object.optional("resources") {
                    None => None,
                    Some(_) => Some(shape::resources(object, "resources", found)?),
                };
                let release = named.as_deref().map_or(Release::All, Release::Only);
                self.locks.release(&task, release);
            }
            "set_status" => {
                let status = shape::status(object, "status", found)?;
                object.close(&["op", "task_id", "status"], found);
                self.statuses.insert(task, status);
            }
            _ => {
                let problem = "is not one of acquire, release, set_status";
                found.add(Code::SchemaInvalid, object.at("op"), problem);
            }
        }
        Some(())
    }
}
