//! The gates around a task: what it changed, and whether it may count as done.

use provost_core::board::acceptance::{self, Check, Mark, Shortfall};
use provost_core::board::resource::Resource;
use provost_core::board::row::TaskId;
use provost_core::code::Code;
use provost_core::json::Node;
use serde_json::json;

use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::result::{self, Outcome, TaskResult};
use super::{Answer, Surroundings, assignment, shape};

/// Compares a result with the scope of its task.
pub(super) fn check_result(
    value: &Node<'_>,
    found: &mut Findings,
    surroundings: Surroundings<'_>,
) -> Answer {
    let answer = Answer::new("the result stays inside what its task may touch");
    if let Some(payload) = Object::payload(value, found) {
        judge_result(payload, found, surroundings);
    }
    let Some(first) = found.list().first() else {
        return answer;
    };
    let rule = match first.code {
        Code::ScopeViolation => "R-PO-002",
        Code::UntrustedContextBlock => "R-PO-004",
        Code::MissingRequiredInput if first.path == WORKLOG => "R-PO-003",
        _ => "R-PO-001",
    };
    answer.with("hook_rule", json!(rule))
}

const WORKLOG: &str = "/result/worklog_path";

fn judge_result(
    payload: Object<'_, '_>,
    found: &mut Findings,
    surroundings: Surroundings<'_>,
) -> Option<()> {
    let task_id = shape::task_id(payload, "task_id", found);
    let place = payload.at("result");
    let result = payload.required("result", found);
    let result = result.and_then(|value| result::parse(value, place, found));
    let scope = payload.required("assignment", found);
    let scope = scope.and_then(|value| Bounds::read(value, payload.at("assignment"), found));
    payload.close(&["task_id", "result", "assignment"], found);
    let (result, scope) = (result?, scope?);
    if task_id.is_some_and(|task_id| task_id != result.task_id) {
        let problem = "is about another task";
        found.add(Code::SchemaInvalid, place.key("task_id"), problem);
    }
    scope.judge(&result, place, found);
    if !(surroundings.file_exists)(&result.worklog_path) {
        let problem = "names a file that is not there";
        found.add(
            Code::MissingRequiredInput,
            place.key("worklog_path"),
            problem,
        );
    }
    Some(())
}

/// What an assignment says about its result: all of a packet, or only the scope.
pub(super) struct Bounds {
    lock_scope: Vec<Resource>,
    forbidden_scope: Vec<Resource>,
    run_id: Option<String>,
    task_id: Option<TaskId>,
    criteria: Vec<String>,
}

impl Bounds {
    pub(super) fn read(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Self> {
        let object = Object::of(value, place, found)?;
        if object.optional("task").is_some() {
            let packet = assignment::parse(value, place, found)?;
            return Some(Self {
                lock_scope: packet.task.lock_scope,
                forbidden_scope: packet.task.forbidden_scope,
                run_id: Some(packet.run_id),
                task_id: Some(packet.task.task_id),
                criteria: packet.task.acceptance_criteria,
            });
        }
        let lock_scope = shape::resources(object, "lock_scope", found);
        if lock_scope.as_ref().is_some_and(Vec::is_empty) {
            found.add(Code::SchemaInvalid, object.at("lock_scope"), "is empty");
        }
        let forbidden_scope = match object.optional("forbidden_scope") {
            Some(_) => shape::resources(object, "forbidden_scope", found),
            None => Some(Vec::new()),
        };
        let criteria = match object.optional("acceptance_criteria") {
            Some(_) => object.texts("acceptance_criteria", Length::Filled, found),
            None => Some(Vec::new()),
        };
        let run_id = object.optional("run_id");
        let run_id = run_id.and_then(|_| shape::run_id(object, found));
        let task_id = object.optional("task_id");
        let task_id = task_id.and_then(|_| shape::task_id(object, "task_id", found));
        Some(Self {
            lock_scope: lock_scope?,
            forbidden_scope: forbidden_scope?,
            run_id: run_id.map(str::to_owned),
            task_id,
            criteria: criteria?.into_iter().map(str::to_owned).collect(),
        })
    }

    pub(super) fn judge(&self, result: &TaskResult, place: Place<'_>, found: &mut Findings) {
        if self
            .run_id
            .as_ref()
            .is_some_and(|run_id| *run_id != result.run_id)
        {
            let problem = "is not the run of the assignment";
            found.add(Code::SchemaInvalid, place.key("run_id"), problem);
        }
        if self
            .task_id
            .as_ref()
            .is_some_and(|task| *task != result.task_id)
        {
            let problem = "is not the task of the assignment";
            found.add(Code::SchemaInvalid, place.key("task_id"), problem);
        }
        let changed: Vec<Resource> = result
            .changes
            .iter()
            .map(|change| change.resource.clone())
            .collect();
        let list = place.key("changes");
        let forbidden = &self.forbidden_scope;
        for (at, why) in acceptance::trespasses(&changed, &self.lock_scope, forbidden) {
            let item = list.index(at);
            found.add(why.code(), item.key("resource"), why);
        }
        if result.status == Outcome::Done {
            let required: Vec<&str> = self.criteria.iter().map(String::as_str).collect();
            for shortfall in acceptance::shortfalls(&required, &result.checks) {
                if let Shortfall::Unchecked(at) = shortfall {
                    let problem = format!("`{}` was not checked", required[at]);
                    found.add(shortfall.code(), place.key("acceptance_check"), problem);
                }
            }
        }
    }
}

/// Compares the checks of a task with the required criteria.
pub(super) fn check_completion(value: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("every required criterion passed, with evidence");
    let rule = match Object::payload(value, found) {
        Some(payload) => judge_completion(payload, found),
        None => None,
    };
    match rule {
        Some(rule) => answer.with("hook_rule", json!(rule)),
        None => answer,
    }
}

fn judge_completion(payload: Object<'_, '_>, found: &mut Findings) -> Option<&'static str> {
    shape::task_id(payload, "task_id", found);
    let required = payload.texts("required_criteria", Length::Filled, found);
    let before = found.count();
    let checks = payload.all("acceptance_check", read_check, found);
    let is_misread = found.count() > before;
    payload.close(&["task_id", "required_criteria", "acceptance_check"], found);
    if is_misread {
        return Some("R-PC-002");
    }
    let (required, checks) = (required?, checks?);
    let place = payload.at("acceptance_check");
    if found.is_strict() && required.is_empty() {
        let problem = "is empty: nothing says what done means";
        found.add(
            Code::AcceptanceFailed,
            payload.at("required_criteria"),
            problem,
        );
    }
    let list = acceptance::shortfalls(&required, &checks);
    let rule = list.first().map(|first| match first {
        Shortfall::Nothing | Shortfall::Unchecked(_) => "R-PC-001",
        Shortfall::Failed(_) => "R-PC-002",
        Shortfall::Unproven(_) => "R-PC-003",
    });
    for shortfall in list {
        let (list, at) = match shortfall {
            Shortfall::Nothing => {
                found.add(shortfall.code(), place, shortfall);
                continue;
            }
            Shortfall::Unchecked(at) => (payload.at("required_criteria"), at),
            Shortfall::Failed(at) | Shortfall::Unproven(at) => (place, at),
        };
        found.add(shortfall.code(), list.index(at), shortfall);
    }
    rule
}

/// Reads a check; missing evidence counts as empty.
fn read_check(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Check> {
    let object = Object::of(value, place, found)?;
    let criterion = object.text("criterion", Length::Filled, found);
    let mark: Option<Mark> = object.word("status", result::mark, "pass, fail", found);
    let evidence = match object.optional("evidence") {
        None | Some(Node::Null) => Some(""),
        Some(_) => object.text("evidence", Length::Any, found),
    };
    object.close(&["criterion", "status", "evidence"], found);
    Some(Check {
        criterion: criterion?.to_owned(),
        mark: mark?,
        evidence: evidence?.to_owned(),
    })
}
