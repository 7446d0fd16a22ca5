//! The heartbeats of tasks.

use crate::board::row::{Status, TaskId};
use crate::board::watchdog::{self, SHORTEST_TIMEOUT, WatchError, Watched};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::schema::leaf::AnyTime;
use provost_core::schema::read::FormatReader;
use provost_core::time;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::finding::Findings;
use super::header::take_header;
use super::{Answer, field};

const NANOS_PER_MILLI: i128 = 1_000_000;

/// The heartbeats of tasks at one moment.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct Tick {
    #[schemars(with = "AnyTime")]
    now: String,
    #[expect(dead_code, reason = "each is read by its own type")]
    #[schemars(with = "Vec<Value>")]
    tasks: Vec<IgnoredAny>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct TaskOfTick {
    task_id: TaskId,
    status: Status,
}

/// What only a task in progress must have.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct LastSign {
    #[schemars(range(min = SHORTEST_TIMEOUT))]
    timeout_seconds: u64,
    #[schemars(with = "AnyTime")]
    last_heartbeat_at: String,
}

/// A task whose owner is silent.
#[derive(Serialize)]
struct Silence {
    task_id: TaskId,
    silent_ms: i64,
    timeout_seconds: u64,
    last_heartbeat_at: String,
}

static TICK: FormatReader<Tick> = FormatReader::new();
static TASK: FormatReader<TaskOfTick> = FormatReader::new();
static SIGN: FormatReader<LastSign> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    let mut answer = Answer::new("every task in progress gave a sign of life in time");
    let Some(tick) = found.read(&TICK, node, "") else {
        return answer;
    };
    let now = time::read(&tick.now).map_or(0, |now| now.nanos);
    let tasks = field(node, "tasks").and_then(Node::as_list);
    let mut late = Vec::new();
    let mut rule = None;
    for (at, node) in tasks.unwrap_or_default().iter().enumerate() {
        let at = format!("/tasks/{at}");
        match look(now, node, &at, found) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(silence))) => {
                let problem = format!("{} has been silent for too long", silence.task_id);
                found.add(Code::TaskTimeout, at, problem);
                late.push(json!(silence));
                rule.get_or_insert("R-WD-001");
            }
            Some(Err(why)) => {
                if matches!(why, WatchError::Future(_)) {
                    rule.get_or_insert("R-WD-002");
                }
                found.add(why.code(), at, why);
            }
        }
    }
    if !late.is_empty() {
        answer = answer.with("timed_out", Value::Array(late));
    }
    if let Some(rule) = rule {
        answer = answer.with("hook_rule", json!(rule));
    }
    answer
}

/// Judges one task; `None` if it is not in progress, or if its shape is wrong.
fn look(
    now: i128,
    node: &Node<'_>,
    at: &str,
    found: &mut Findings,
) -> Option<Result<Option<Silence>, WatchError>> {
    let task = found.read(&TASK, node, at)?;
    if task.status != Status::InProgress {
        return None;
    }
    let sign = found.read(&SIGN, node, at)?;
    let watched = Watched {
        task_id: task.task_id,
        status: task.status,
        timeout_seconds: sign.timeout_seconds,
        last_heartbeat: time::read(&sign.last_heartbeat_at).map_or(0, |sign| sign.nanos),
    };
    let late = watchdog::look(now, &watched);
    let silence = |late: watchdog::Late| Silence {
        task_id: late.task_id,
        silent_ms: i64::try_from(late.silence / NANOS_PER_MILLI).unwrap_or(i64::MAX),
        timeout_seconds: late.timeout_seconds,
        last_heartbeat_at: sign.last_heartbeat_at,
    };
    Some(late.map(|late| late.map(silence)))
}
