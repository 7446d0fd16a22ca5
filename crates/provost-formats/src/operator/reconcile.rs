//! A whole board: rows, locks and events that must fit together.

use provost_core::board::lock::Lock;
use provost_core::board::reconcile::{self, Cycles};
use provost_core::board::row::{Row, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::{Value, json};

use super::finding::{Findings, Place};
use super::object::Object;
use super::{Answer, ledger, shape};

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    let mut answer = Answer::new("the board is consistent");
    let Some(payload) = Object::payload(value, found) else {
        return answer;
    };
    let rows = payload.list("ledger", found);
    let locks = payload.optional_list("active_locks", found);
    let events = payload.optional_list("events", found);
    payload.close(&["ledger", "active_locks", "events"], found);
    let (Some(rows), Some(locks), Some(events)) = (rows, locks, events) else {
        return answer;
    };
    // A row that cannot be read makes the board inconsistent; the others are still judged.
    let rows = each(rows, payload.at("ledger"), ledger::row, found);
    let locks = each(locks, payload.at("active_locks"), shape::lock, found);
    let events = each(events, payload.at("events"), event, found);
    judge(&rows, &locks, &events, *payload.place(), found);
    if !found.is_empty() {
        answer.code = Some(Code::LedgerInconsistent);
        let issues = found.list().iter();
        let issues = issues.map(|one| json!({ "code": one.code, "message": one.problem }));
        let issues = issues.collect();
        answer.details.push(("issues", Value::Array(issues)));
    }
    answer
}

fn each<T>(
    items: &[Node<'_>],
    place: Place<'_>,
    read: impl Fn(&Node<'_>, Place<'_>, &mut Findings) -> Option<T>,
    found: &mut Findings,
) -> Vec<T> {
    let items = items.iter().enumerate();
    items
        .filter_map(|(at, item)| read(item, place.index(at), found))
        .collect()
}

fn event(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<TaskId> {
    let object = Object::of(value, place, found)?;
    shape::task_id(object, "task_id", found)
}

/// Adds a finding for everything that does not fit together.
pub(super) fn judge(
    rows: &[Row],
    locks: &[Lock],
    events: &[TaskId],
    place: Place<'_>,
    found: &mut Findings,
) {
    let cycles = if found.is_strict() {
        Cycles::Find
    } else {
        Cycles::Ignore
    };
    for issue in reconcile::issues(rows, locks, events, cycles) {
        found.add(issue.code(), place, issue);
    }
}
