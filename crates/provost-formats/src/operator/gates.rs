//! The gates around a task: what it changed, and whether it may count as done.

use crate::board::acceptance::{self, Check, Mark, Shortfall};
use crate::board::row::TaskId;
use provost_core::bundle::report::Nullable;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::Resource;
use provost_core::schema::leaf::{Filled, RunUuid};
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::finding::Findings;
use super::header::take_header;
use super::result::{self, CHECKS, Change, Outcome, TaskResult};
use super::{Answer, Surroundings, assignment, field};

/// A result, and the scope of its task.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct PostExecution {
    task_id: TaskId,
    #[expect(dead_code, reason = "it is read by its own type")]
    #[schemars(with = "Value")]
    result: IgnoredAny,
    #[expect(dead_code, reason = "it is read by its own type")]
    #[schemars(with = "Value")]
    assignment: IgnoredAny,
}

static POST_EXECUTION: FormatReader<PostExecution> = FormatReader::new();

/// Compares a result with the scope of its task.
pub(super) fn check_result(
    node: &Node<'_>,
    found: &mut Findings,
    surroundings: Surroundings<'_>,
) -> Answer {
    let answer = Answer::new("the result stays inside what its task may touch");
    judge_result(node, found, surroundings);
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
    node: &Node<'_>,
    found: &mut Findings,
    surroundings: Surroundings<'_>,
) -> Option<()> {
    let payload = found.read(&POST_EXECUTION, node, "")?;
    let result = result::read(field(node, "result")?, "/result", found);
    let scope = Bounds::read(field(node, "assignment")?, "/assignment", found);
    let (result, scope) = (result?, scope?);
    if payload.task_id != result.task_id {
        let problem = "is about another task";
        found.add(Code::SchemaInvalid, "/result/task_id", problem);
    }
    scope.judge(&result, "/result", found);
    if !(surroundings.file_exists)(&result.worklog_path) {
        let problem = "names a file that is not there";
        found.add(Code::MissingRequiredInput, WORKLOG, problem);
    }
    Some(())
}

/// What an assignment says about its result: all of a packet, or only the scope.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(super) struct Bounds {
    lock_scope: Vec<Resource>,
    #[serde(default)]
    forbidden_scope: Vec<Resource>,
    #[schemars(with = "Option<RunUuid>")]
    run_id: Option<String>,
    task_id: Option<TaskId>,
    #[serde(default)]
    #[schemars(with = "Vec<Filled>")]
    acceptance_criteria: Vec<String>,
}

static BOUNDS: FormatReader<Bounds> = FormatReader::new();

impl Bounds {
    pub(super) fn read(node: &Node<'_>, at: &str, found: &mut Findings) -> Option<Self> {
        if field(node, "task").is_some() {
            let packet = assignment::read(node, at, found)?;
            return Some(Self {
                lock_scope: packet.task.lock_scope,
                forbidden_scope: packet.task.forbidden_scope,
                run_id: Some(packet.header.run_id),
                task_id: Some(packet.task.task_id),
                acceptance_criteria: packet.task.acceptance_criteria,
            });
        }
        let bounds = found.read(&BOUNDS, node, at)?;
        if bounds.lock_scope.is_empty() {
            found.add(
                Code::SchemaInvalid,
                format_args!("{at}/lock_scope"),
                "is empty",
            );
        }
        Some(bounds)
    }

    pub(super) fn judge(&self, result: &TaskResult, at: &str, found: &mut Findings) {
        let run_id = self.run_id.as_ref();
        if run_id.is_some_and(|run_id| *run_id != result.header.run_id) {
            let problem = "is not the run of the assignment";
            found.add(Code::SchemaInvalid, format_args!("{at}/run_id"), problem);
        }
        let task_id = self.task_id.as_ref();
        if task_id.is_some_and(|task| *task != result.task_id) {
            let problem = "is not the task of the assignment";
            found.add(Code::SchemaInvalid, format_args!("{at}/task_id"), problem);
        }
        let resource = |change: &Change| change.resource.clone();
        let changed: Vec<Resource> = result.changes.iter().map(resource).collect();
        let forbidden = &self.forbidden_scope;
        for (index, why) in acceptance::trespasses(&changed, &self.lock_scope, forbidden) {
            let path = format_args!("{at}/changes/{index}/resource");
            found.add(why.code(), path, why);
        }
        if result.status == Outcome::Done {
            let required = self.acceptance_criteria.iter();
            let required: Vec<&str> = required.map(String::as_str).collect();
            for shortfall in acceptance::shortfalls(&required, &result.acceptance_check) {
                if let Shortfall::Unchecked(index) = shortfall {
                    let problem = format!("`{}` was not checked", required[index]);
                    let path = format_args!("{at}/{CHECKS}");
                    found.add(shortfall.code(), path, problem);
                }
            }
        }
    }
}

/// The checks of a task, and the criteria that it needs.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct PreComplete {
    #[expect(dead_code, reason = "only its shape is judged")]
    task_id: TaskId,
    #[schemars(with = "Vec<Filled>")]
    required_criteria: Vec<String>,
    acceptance_check: Vec<ReportedCheck>,
}

/// A check; missing evidence counts as empty.
#[derive(Deserialize, JsonSchema)]
struct ReportedCheck {
    #[schemars(with = "Filled")]
    criterion: String,
    status: Mark,
    #[serde(default)]
    #[schemars(with = "Nullable<String>")]
    evidence: Option<String>,
}

static PRE_COMPLETE: FormatReader<PreComplete> = FormatReader::new();

/// Compares the checks of a task with the required criteria.
pub(super) fn check_completion(node: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("every required criterion passed, with evidence");
    let rule = if let Some(payload) = found.read(&PRE_COMPLETE, node, "") {
        judge_completion(payload, found)
    } else {
        let of_check = |path: &str| {
            path.strip_prefix('/')
                .is_some_and(|it| it.starts_with(CHECKS))
        };
        let is_misread = found.list().iter().any(|one| of_check(&one.path));
        is_misread.then_some("R-PC-002")
    };
    match rule {
        Some(rule) => answer.with("hook_rule", json!(rule)),
        None => answer,
    }
}

fn judge_completion(payload: PreComplete, found: &mut Findings) -> Option<&'static str> {
    let required = payload.required_criteria.iter();
    let required: Vec<&str> = required.map(String::as_str).collect();
    if found.is_strict() && required.is_empty() {
        let problem = "is empty: nothing says what done means";
        found.add(Code::AcceptanceFailed, "/required_criteria", problem);
    }
    let check = |one: ReportedCheck| Check {
        criterion: one.criterion,
        mark: one.status,
        evidence: one.evidence.unwrap_or_default(),
    };
    let checks: Vec<Check> = payload.acceptance_check.into_iter().map(check).collect();
    let list = acceptance::shortfalls(&required, &checks);
    let rule = list.first().map(|first| match first {
        Shortfall::Nothing | Shortfall::Unchecked(_) => "R-PC-001",
        Shortfall::Failed(_) => "R-PC-002",
        Shortfall::Unproven(_) => "R-PC-003",
    });
    for shortfall in list {
        let path = match shortfall {
            Shortfall::Nothing => format!("/{CHECKS}"),
            Shortfall::Unchecked(at) => format!("/required_criteria/{at}"),
            Shortfall::Failed(at) | Shortfall::Unproven(at) => format!("/{CHECKS}/{at}"),
        };
        found.add(shortfall.code(), path, shortfall);
    }
    rule
}
