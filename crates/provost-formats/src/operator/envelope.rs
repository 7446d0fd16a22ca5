//! The output of the planner: board changes, assignments and blockers.

use std::collections::BTreeMap;

use crate::board::delta::{Create, Delta};
use crate::board::lock::{self, Lock};
use crate::board::row::{Pulse, Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource;
use provost_core::schema::leaf::Filled;
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Answer;
use super::assignment::{self, Assignment};
use super::finding::Findings;
use super::header::{Blocker, Header, conflicts};

/// The decisions of the planner in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    #[serde(flatten)]
    pub header: Header,
    pub ledger_delta: Vec<LedgerDelta>,
    pub assignments: Vec<Assignment>,
    pub active_locks: Vec<Lock>,
    pub blockers: Vec<Blocker>,
    pub next_actions: Vec<String>,
    /// The version of the board that the deltas were built on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_base_version: Option<u64>,
}

/// One change of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerDelta {
    pub task_id: TaskId,
    pub status: Status,
    pub owner: String,
    #[schemars(with = "Filled")]
    pub reason: String,
    /// The same id is the same change.
    #[schemars(with = "Filled")]
    pub delta_id: String,
    /// Whether the delta creates the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_create: Option<bool>,
    #[serde(flatten)]
    pub pulse: Pulse,
}

impl From<LedgerDelta> for Delta {
    fn from(delta: LedgerDelta) -> Self {
        Self {
            delta_id: delta.delta_id,
            task_id: delta.task_id,
            status: delta.status,
            owner: delta.owner,
            reason: delta.reason,
            create: match delta.x_create {
                None => Create::Unsaid,
                Some(true) => Create::Yes,
                Some(false) => Create::No,
            },
            pulse: delta.pulse,
        }
    }
}

static FORMAT: FormatReader<Envelope> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    read(node, found);
    Answer::new("the orchestrator output holds")
}

pub(super) fn read(node: &Node<'_>, found: &mut Findings) -> Option<Envelope> {
    let envelope = found.read(&FORMAT, node, "")?;
    look_for_secrets(&envelope.ledger_delta, "/ledger_delta", found);
    for (at, assignment) in envelope.assignments.iter().enumerate() {
        assignment::judge(assignment, &format!("/assignments/{at}"), found);
    }
    judge_deltas(&envelope, found);
    conflicts(&envelope.active_locks, "/active_locks", found);
    judge_assignments(&envelope, found);
    for (at, assignment) in envelope.assignments.iter().enumerate() {
        let task = &assignment.task;
        let locks = &envelope.active_locks;
        for (lock, wanted) in lock::hindrances(&task.task_id, &task.lock_scope, locks) {
            let held = &locks[lock];
            let problem = format!(
                "`{wanted}` of {} overlaps `{}`, which {} holds",
                task.task_id, held.resource, held.task_id
            );
            found.add(
                Code::LockConflict,
                format_args!("/assignments/{at}"),
                problem,
            );
        }
    }
    Some(envelope)
}

/// In strict mode, looks for secrets in the reasons of `deltas`, which are at the pointer `at`.
pub(super) fn look_for_secrets(deltas: &[LedgerDelta], at: &str, found: &mut Findings) {
    if found.is_strict() {
        for (index, delta) in deltas.iter().enumerate() {
            found.look_for_secrets(format_args!("{at}/{index}/reason"), &delta.reason);
        }
    }
}

fn judge_deltas(envelope: &Envelope, found: &mut Findings) {
    let blockers = envelope.blockers.iter();
    let mut tasks: Vec<&TaskId> = blockers.map(|blocker| &blocker.task_id).collect();
    tasks.sort();
    let mut seen: BTreeMap<&str, &LedgerDelta> = BTreeMap::new();
    for (at, delta) in envelope.ledger_delta.iter().enumerate() {
        let place = format_args!("/ledger_delta/{at}");
        if let Some(first) = seen.get(&*delta.delta_id) {
            if found.is_strict() && *first != delta {
                let problem = "stands for another change above";
                let path = format_args!("{place}/delta_id");
                found.add(Code::ConcurrencyConflict, path, problem);
            }
            continue;
        }
        seen.insert(&delta.delta_id, delta);
        if delta.status == Status::Blocked && tasks.binary_search(&&delta.task_id).is_err() {
            let problem = format!(
                "{} gets blocked without an entry in `blockers`",
                delta.task_id
            );
            found.add(Code::SchemaInvalid, place, problem);
        }
        let ownerless = delta.status == Status::InProgress && delta.owner.trim().is_empty();
        if found.is_strict() && ownerless {
            let problem = "is blank, but a task in progress needs an owner";
            let path = format_args!("{place}/owner");
            found.add(Code::LedgerInconsistent, path, problem);
        }
    }
}

/// Judges the rules between assignments: each may be valid alone, and in conflict with another.
fn judge_assignments(envelope: &Envelope, found: &mut Findings) {
    let assignments = &envelope.assignments;
    let mut tasks: BTreeMap<&TaskId, usize> = BTreeMap::new();
    let mut held = Vec::new();
    let mut owners = Vec::new();
    for (at, assignment) in assignments.iter().enumerate() {
        if assignment.header.run_id != envelope.header.run_id {
            let path = format_args!("/assignments/{at}/run_id");
            found.add(Code::SchemaInvalid, path, "belongs to another run");
        }
        let task = &assignment.task;
        if tasks.insert(&task.task_id, at).is_some() {
            let problem = format!("{} is assigned twice", task.task_id);
            let path = format_args!("/assignments/{at}");
            found.add(Code::LockConflict, path, problem);
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
        let path = format_args!("/assignments/{}", owners[two]);
        found.add(Code::LockConflict, path, problem);
    }
}
