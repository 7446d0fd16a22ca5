//! Reads the parts that many payloads share: versions, ids, times, places, locks, blockers, codes.

use provost_core::board::lock::Lock;
use provost_core::board::resource::Resource;
use provost_core::board::row::{self, Priority, Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::time::{self, Written, Zone};
use serde_json::Value;

use super::finding::{Findings, Place};
use super::limit::LONGEST_WORKLOG_PATH;
use super::object::{Length, Object, text};

pub(super) const STATUSES: &str = "todo, in_progress, blocked, done, failed, canceled";
pub(super) const PRIORITIES: &str = "low, normal, high, critical";

/// The header of every contract payload; `None` if its version is unknown, because then the meaning
/// of the rest is unknown too.
pub(super) fn header<'v>(payload: Object<'v, '_>, found: &mut Findings) -> Option<&'v str> {
    version(payload, found)?;
    if let Some(written) = payload.optional_text("generated_at", found) {
        utc(written, payload.at("generated_at"), found);
    }
    Some(run_id(payload, found).unwrap_or_default())
}

fn version(payload: Object<'_, '_>, found: &mut Findings) -> Option<()> {
    let written = payload.required("schema_version", found)?;
    let place = payload.at("schema_version");
    let Node::Text(written) = written else {
        found.add(Code::SchemaInvalid, place, "is not text");
        return None;
    };
    let mut parts = written.split('.');
    if parts.next() != Some("1") {
        let problem = "is not a version that begins with `1.`";
        found.add(Code::UnknownSchemaVersion, place, problem);
        return None;
    }
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if found.is_strict() && !(parts.clone().count() == 2 && parts.all(is_number)) {
        found.add(Code::UnknownSchemaVersion, place, "is not like `1.0.0`");
        return None;
    }
    Some(())
}

pub(super) fn run_id<'v>(object: Object<'v, '_>, found: &mut Findings) -> Option<&'v str> {
    let text = object.text("run_id", Length::Filled, found)?;
    let is_good = if found.is_strict() {
        row::is_random_uuid(text)
    } else {
        row::is_loose_uuid(text)
    };
    if is_good {
        return Some(text);
    }
    found.add(Code::SchemaInvalid, object.at("run_id"), "is not a UUID");
    None
}

pub(super) fn task_id(object: Object<'_, '_>, key: &str, found: &mut Findings) -> Option<TaskId> {
    let value = object.required(key, found)?;
    task(value, object.at(key), found)
}

pub(super) fn task(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<TaskId> {
    let text = text(value, place, Length::Filled, found)?;
    let task = TaskId::parse(text);
    if task.is_none() {
        let problem = "is not a task id: `T-` and digits, or a UUID";
        found.add(Code::SchemaInvalid, place, problem);
    }
    task
}

pub(super) fn status(object: Object<'_, '_>, key: &str, found: &mut Findings) -> Option<Status> {
    object.word(key, Status::parse, STATUSES, found)
}

/// The priority; `normal` if the payload does not say it.
pub(super) fn priority(object: Object<'_, '_>, found: &mut Findings) -> Option<Priority> {
    match object.optional("priority") {
        None => Some(Priority::default()),
        Some(_) => object.word("priority", Priority::parse, PRIORITIES, found),
    }
}

/// The code `key`, one of the fourteen of the format.
pub(super) fn code(object: Object<'_, '_>, key: &str, found: &mut Findings) -> Option<Code> {
    let text = object.text(key, Length::Filled, found)?;
    let known = Code::OF_BOARD.into_iter().find(|code| code.name() == text);
    if known.is_none() {
        let problem = "is not one of the fourteen codes";
        found.add(Code::SchemaInvalid, object.at(key), problem);
    }
    known
}

pub(super) fn optional_code(
    object: Object<'_, '_>,
    key: &str,
    found: &mut Findings,
) -> Option<Code> {
    object.optional(key)?;
    code(object, key, found)
}

/// A time that is marked as UTC.
pub(super) fn utc(text: &str, place: Place<'_>, found: &mut Findings) -> Option<Written> {
    let written = time::read(text).filter(|written| written.zone == Zone::Utc);
    if written.is_none() {
        let problem = "is not a time in UTC like 2026-01-31T12:00:00Z";
        found.add(Code::SchemaInvalid, place, problem);
    }
    written
}

/// A time in any zone; without a zone, UTC. In strict mode only UTC is accepted.
pub(super) fn moment(text: &str, place: Place<'_>, found: &mut Findings) -> Option<Written> {
    if found.is_strict() {
        return utc(text, place, found);
    }
    let written = time::read(text);
    if written.is_none() {
        let problem = "is not a time like 2026-01-31T12:00:00Z";
        found.add(Code::SchemaInvalid, place, problem);
    }
    written
}

/// The time of the last heartbeat, if there was one.
pub(super) fn heartbeat(object: Object<'_, '_>, found: &mut Findings) -> Option<String> {
    let text = object.optional_text("last_heartbeat_at", found)?;
    utc(text, object.at("last_heartbeat_at"), found)?;
    Some(text.to_owned())
}

pub(super) fn resource(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<Resource> {
    let text = text(value, place, Length::Any, found)?;
    let resource = match Resource::parse(text) {
        Ok(resource) => resource,
        Err(why) => {
            found.add(Code::SchemaInvalid, place, why);
            return None;
        }
    };
    if found.is_strict() && resource.looks_like_pattern() {
        let problem = "looks like a pattern, but is read by the letter and would lock nothing";
        found.add(Code::SchemaInvalid, place, problem);
        return None;
    }
    if found.is_strict() && resource.has_other_spelling() {
        let problem = "is not in the composed spelling of Unicode (NFC)";
        found.add(Code::SchemaInvalid, place, problem);
        return None;
    }
    Some(resource)
}

/// The list `key` of places; `None` if one of them is invalid.
pub(super) fn resources(
    object: Object<'_, '_>,
    key: &str,
    found: &mut Findings,
) -> Option<Vec<Resource>> {
    object.all(key, resource, found)
}

pub(super) fn lock(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Lock> {
    let object = Object::of(value, place, found)?;
    let task_id = task_id(object, "task_id", found);
    let named = object.required("resource", found);
    let resource = named.and_then(|value| resource(value, object.at("resource"), found));
    let active = object.flag("active", found);
    object.close(&["task_id", "resource", "active"], found);
    Some(Lock {
        task_id: task_id?,
        resource: resource?,
        active: active?,
    })
}

/// Adds a finding for locks of different tasks that overlap.
pub(super) fn conflicts(locks: &[Lock], place: Place<'_>, found: &mut Findings) {
    for (one, two) in provost_core::board::lock::conflicts(locks) {
        let (held, other) = (&locks[one], &locks[two]);
        let problem = format!(
            "`{}` of {} overlaps `{}` of {}",
            other.resource, other.task_id, held.resource, held.task_id
        );
        found.add(Code::LockConflict, place.index(two), problem);
    }
}

/// What keeps a task from continuing.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocker {
    pub task_id: TaskId,
    pub code: Code,
    pub reason: String,
    pub details: Option<Value>,
}

pub(super) fn blocker(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Blocker> {
    let object = Object::of(value, place, found)?;
    let task_id = task_id(object, "task_id", found);
    let code = code(object, "code", found);
    let reason = object.text("reason", Length::Filled, found);
    let details = object.optional("details");
    if details.is_some_and(|details| details.as_object().is_none()) {
        found.add(
            Code::SchemaInvalid,
            object.at("details"),
            "is not an object",
        );
    }
    object.close(&["task_id", "code", "reason", "details"], found);
    Some(Blocker {
        task_id: task_id?,
        code: code?,
        reason: reason?.to_owned(),
        details: details.cloned().map(Node::into_value),
    })
}

/// The path to the log of a task.
pub(super) fn worklog_path<'v>(object: Object<'v, '_>, found: &mut Findings) -> Option<&'v str> {
    let length = Length::UpTo(LONGEST_WORKLOG_PATH);
    let path = object.text("worklog_path", length, found)?;
    if found.is_strict() && Resource::parse(path).is_ok_and(|place| !is_outside(path, &place)) {
        return Some(path);
    }
    if found.is_strict() {
        let problem = "leads outside, or is no path";
        found.add(Code::SchemaInvalid, object.at("worklog_path"), problem);
        return None;
    }
    Some(path)
}

/// Whether a path that is valid as a resource leads out of the run's directory.
fn is_outside(path: &str, place: &Resource) -> bool {
    let climbs = path.split(['/', '\\']).any(|part| part == "..");
    climbs || place.to_string().starts_with('/')
}
