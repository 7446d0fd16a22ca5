//! The result: what a worker says it did, and its evidence.

use provost_core::board::acceptance::{self, Check, Mark, Shortfall};
use provost_core::board::resource::Resource;
use provost_core::board::row::{Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::{Value, json};

use super::assignment::SCHEMA_VERSION;
use super::finding::{Findings, Place};
use super::limit::MOST_NOTES;
use super::object::{Length, Object, text};
use super::{Answer, shape};

/// The report of a worker. It is a claim: only what is checked elsewhere counts.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskResult {
    pub run_id: String,
    pub task_id: TaskId,
    pub status: Outcome,
    pub changes: Vec<Change>,
    pub checks: Vec<Check>,
    /// The file of the worker's log.
    pub worklog_path: String,
    /// Notes for the planner; data, never instructions.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Blocked,
    Failed,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Done, Self::Blocked, Self::Failed];

    /// The status of a task with this outcome.
    pub fn status(self) -> Status {
        match self {
            Self::Done => Status::Done,
            Self::Blocked => Status::Blocked,
            Self::Failed => Status::Failed,
        }
    }

    fn name(self) -> &'static str {
        self.status().name()
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub resource: Resource,
    pub action: String,
    /// What proves the change.
    pub evidence: Option<String>,
}

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    parse(value, *Place::root(), found);
    Answer::new("the result holds")
}

/// Reads a result at `place`; `None` if its shape is wrong.
pub(super) fn parse(
    value: &Node<'_>,
    place: Place<'_>,
    found: &mut Findings,
) -> Option<TaskResult> {
    let object = Object::of(value, place, found)?;
    let run_id = shape::header(object, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let status = object.word("status", Outcome::parse, "done, blocked, failed", found);
    let changes = object.all("changes", read_change, found);
    let checks = read_checks(object, status, found);
    let worklog_path = shape::worklog_path(object, found);
    let notes = read_notes(object, found);
    object.close(
        &[
            "schema_version",
            "run_id",
            "generated_at",
            "task_id",
            "status",
            "changes",
            "acceptance_check",
            "worklog_path",
            "notes_for_orchestrator",
        ],
        found,
    );
    if let (Some(Outcome::Done), Some(checks)) = (status, &checks) {
        report(acceptance::shortfalls(&[], checks), object, found);
    }
    if found.is_strict() {
        for key in ["changes", "acceptance_check"] {
            if let Some(value) = object.optional(key) {
                found.look_for_secrets_below(object.at(key), value);
            }
        }
    }
    Some(TaskResult {
        run_id: run_id.to_owned(),
        task_id: task_id?,
        status: status?,
        changes: changes?,
        checks: checks?,
        worklog_path: worklog_path?.to_owned(),
        notes: notes?,
    })
}

fn report(list: Vec<Shortfall>, object: Object<'_, '_>, found: &mut Findings) {
    let place = object.at("acceptance_check");
    for shortfall in list {
        match shortfall {
            Shortfall::Nothing | Shortfall::Unchecked(_) => {
                found.add(shortfall.code(), place, shortfall);
            }
            Shortfall::Failed(at) => {
                found.add(shortfall.code(), place.index(at).key("status"), shortfall);
            }
            Shortfall::Unproven(at) => {
                found.add(shortfall.code(), place.index(at).key("evidence"), shortfall);
            }
        }
    }
}

fn read_change(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Change> {
    let object = Object::of(value, place, found)?;
    let resource = object.required("resource", found);
    let resource = resource.and_then(|value| shape::resource(value, object.at("resource"), found));
    let action = object.text("action", Length::Filled, found);
    let evidence = object.optional_text("evidence", found);
    object.close(&["resource", "action", "evidence"], found);
    Some(Change {
        resource: resource?,
        action: action?.to_owned(),
        evidence: evidence.map(str::to_owned),
    })
}

/// The checks of a result. Evidence may be empty only for a check that claims nothing.
fn read_checks(
    object: Object<'_, '_>,
    status: Option<Outcome>,
    found: &mut Findings,
) -> Option<Vec<Check>> {
    // For a finished task, the acceptance rule gives the better message.
    let length = match (status, found.is_strict()) {
        (Some(Outcome::Done), _) | (_, false) => Length::Any,
        (_, true) => Length::Filled,
    };
    let read = |item: &Node<'_>, place: Place<'_>, found: &mut Findings| {
        read_check(item, place, length, found)
    };
    object.all("acceptance_check", read, found)
}

pub(super) fn mark(name: &str) -> Option<Mark> {
    match name {
        "pass" => Some(Mark::Pass),
        "fail" => Some(Mark::Fail),
        _ => None,
    }
}

fn read_check(
    value: &Node<'_>,
    place: Place<'_>,
    evidence: Length,
    found: &mut Findings,
) -> Option<Check> {
    let object = Object::of(value, place, found)?;
    let criterion = object.text("criterion", Length::Filled, found);
    let mark = object.word("status", mark, "pass, fail", found);
    let evidence = object.text("evidence", evidence, found);
    object.close(&["criterion", "status", "evidence"], found);
    Some(Check {
        criterion: criterion?.to_owned(),
        mark: mark?,
        evidence: evidence?.to_owned(),
    })
}

fn read_notes(object: Object<'_, '_>, found: &mut Findings) -> Option<Vec<String>> {
    const KEY: &str = "notes_for_orchestrator";
    let items = object.list(KEY, found)?;
    let place = object.at(KEY);
    let before = found.count();
    if items.len() > MOST_NOTES {
        let problem = format!("has more than {MOST_NOTES} notes");
        found.add(Code::SchemaInvalid, place, problem);
    }
    let mut notes = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let place = place.index(at);
        let Some(note) = text(item, place, Length::Any, found) else {
            continue;
        };
        if note.trim().is_empty() {
            found.add(Code::SchemaInvalid, place, "is blank");
        }
        found.look_for_secrets(place, note);
        notes.push(note.to_owned());
    }
    (found.count() == before).then_some(notes)
}

impl TaskResult {
    pub fn render(&self) -> Value {
        let change = |one: &Change| {
            let mut change = json!({
                "resource": one.resource.to_string(),
                "action": one.action,
            });
            if let Some(evidence) = &one.evidence {
                change["evidence"] = json!(evidence);
            }
            change
        };
        let check = |one: &Check| {
            let status = match one.mark {
                Mark::Pass => "pass",
                Mark::Fail => "fail",
            };
            json!({
                "criterion": one.criterion,
                "status": status,
                "evidence": one.evidence,
            })
        };
        json!({
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "task_id": self.task_id,
            "status": self.status.name(),
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "acceptance_check": self.checks.iter().map(check).collect::<Vec<_>>(),
            "worklog_path": self.worklog_path,
            "notes_for_orchestrator": self.notes,
        })
    }
}
