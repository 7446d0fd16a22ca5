//! The heartbeats of tasks.

use provost_core::board::row::Status;
use provost_core::board::watchdog::{self, Late, WatchError, Watched};
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::{Value, json};

use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::{Answer, shape};

const NANOS_PER_MILLI: i128 = 1_000_000;

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("every task in progress gave a sign of life in time");
    let Some(payload) = Object::payload(value, found) else {
        return answer;
    };
    let now = payload.text("now", Length::Filled, found);
    let now = now.and_then(|text| shape::moment(text, payload.at("now"), found));
    let tasks = payload.list("tasks", found);
    payload.close(&["now", "tasks"], found);
    let (Some(now), Some(tasks)) = (now, tasks) else {
        return answer;
    };
    let mut late = Vec::new();
    let mut rule = None;
    for (at, item) in tasks.iter().enumerate() {
        let list = payload.at("tasks");
        let place = list.index(at);
        let Some(watched) = read(item, place, found) else {
            continue;
        };
        match watchdog::look(now.nanos, &watched) {
            Ok(None) => {}
            Ok(Some(one)) => {
                let problem = format!("{} has been silent for too long", one.task_id);
                found.add(Code::TaskTimeout, place, problem);
                late.push(render(&one, item));
                rule.get_or_insert("R-WD-001");
            }
            Err(why) => {
                if matches!(why, WatchError::Future(_)) {
                    rule.get_or_insert("R-WD-002");
                }
                found.add(why.code(), place, why);
            }
        }
    }
    let mut answer = answer;
    if !late.is_empty() {
        answer = answer.with("timed_out", Value::Array(late));
    }
    if let Some(rule) = rule {
        answer = answer.with("hook_rule", json!(rule));
    }
    answer
}

fn read(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Watched> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let status = shape::status(object, "status", found)?;
    if status != Status::InProgress {
        return None;
    }
    let timeout = object.count("timeout_seconds", watchdog::SHORTEST_TIMEOUT, found);
    let heartbeat = object.text("last_heartbeat_at", Length::Filled, found);
    let heartbeat =
        heartbeat.and_then(|text| shape::moment(text, object.at("last_heartbeat_at"), found));
    Some(Watched {
        task_id: task_id?,
        status,
        timeout_seconds: timeout?,
        last_heartbeat: heartbeat?.nanos,
    })
}

fn render(late: &Late, item: &Node<'_>) -> Value {
    let fields = item.as_object();
    let heartbeat = fields.and_then(|fields| fields.get("last_heartbeat_at"));
    let millis = i64::try_from(late.silence / NANOS_PER_MILLI).unwrap_or(i64::MAX);
    json!({
        "task_id": late.task_id,
        "silent_ms": millis,
        "timeout_seconds": late.timeout_seconds,
        "last_heartbeat_at": heartbeat.and_then(Node::as_str),
    })
}
