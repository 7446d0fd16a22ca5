//! The hand-off bundle: what a planner needs to continue after losing its memory.

use std::collections::BTreeMap;

use crate::board::lock::Lock;
use crate::board::row::{Priority, Pulse, Row, Status, TaskId};
use crate::board::watchdog::SHORTEST_TIMEOUT;
use provost_core::bundle::report::Nullable;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::Resource;
use provost_core::schema::leaf::{Filled, UtcTime};
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assignment::judge_rhythm;
use super::finding::Findings;
use super::header::{Blocker, Header, conflicts};
use super::limit::{LONGEST_TITLE, SHORTEST_HEARTBEAT};
use super::{Answer, reconcile};

/// A board as it is handed to a planner that knows nothing about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    #[serde(flatten)]
    pub header: Header,
    #[schemars(with = "Filled")]
    pub objective: String,
    /// Rules that the planner must follow, in its own shape.
    #[schemars(with = "Constraints")]
    pub constraints: Value,
    pub ledger: Vec<HandoffRow>,
    pub active_locks: Vec<Lock>,
    pub dependencies: Vec<HandoffDependency>,
    pub open_blockers: Vec<Blocker>,
    /// The criteria of each task.
    pub acceptance_targets: Vec<AcceptanceTarget>,
}

enum Constraints {}

text_schema!(Constraints, { "type": ["object", "array"] });

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffRow {
    pub task_id: TaskId,
    #[schemars(with = "Filled", length(max = LONGEST_TITLE))]
    pub title: String,
    pub status: Status,
    /// Empty if the task has no owner.
    pub owner: String,
    pub lock_scope: Vec<Resource>,
    /// How many seconds may pass without a heartbeat.
    #[schemars(range(min = SHORTEST_TIMEOUT))]
    pub timeout_seconds: u64,
    #[schemars(range(min = SHORTEST_HEARTBEAT))]
    pub heartbeat_interval_seconds: u64,
    pub priority: Priority,
    /// The time of the last heartbeat.
    #[serde(default)]
    #[schemars(with = "Nullable<UtcTime>")]
    pub last_heartbeat_at: Option<String>,
}

/// A task, and a task that it waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffDependency {
    pub task_id: TaskId,
    pub depends_on_task_id: TaskId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptanceTarget {
    pub task_id: TaskId,
    #[schemars(with = "Vec<Filled>")]
    pub criteria: Vec<String>,
}

static FORMAT: FormatReader<Handoff> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    read(node, found);
    Answer::new("the hand-off holds")
}

pub(super) fn read(node: &Node<'_>, found: &mut Findings) -> Option<Handoff> {
    let handoff = found.read(&FORMAT, node, "")?;
    for (at, row) in handoff.ledger.iter().enumerate() {
        let (timeout, interval) = (row.timeout_seconds, row.heartbeat_interval_seconds);
        judge_rhythm(timeout, interval, &format!("/ledger/{at}"), found);
    }
    conflicts(&handoff.active_locks, "/active_locks", found);
    let mut tasks: Vec<&TaskId> = handoff.ledger.iter().map(|row| &row.task_id).collect();
    tasks.sort();
    for pair in tasks.windows(2) {
        if pair[0] == pair[1] {
            let problem = format!("{} has two rows", pair[0]);
            found.add(Code::LedgerInconsistent, "/ledger", problem);
        }
    }
    // The contract permits a bundle that is not reconciled.
    if found.is_strict() && found.is_empty() {
        reconcile::judge(&handoff.rows(), &handoff.active_locks, &[], found);
    }
    Some(handoff)
}

impl Handoff {
    pub fn rows(&self) -> Vec<Row> {
        let mut waits: BTreeMap<&TaskId, Vec<TaskId>> = BTreeMap::new();
        for one in &self.dependencies {
            let on = one.depends_on_task_id.clone();
            waits.entry(&one.task_id).or_default().push(on);
        }
        let row = |row: &HandoffRow| Row {
            task_id: row.task_id.clone(),
            status: row.status,
            owner: row.owner.clone(),
            dependencies: waits.get(&row.task_id).cloned().unwrap_or_default(),
            pulse: Pulse {
                last_heartbeat_at: row.last_heartbeat_at.clone(),
                ..Pulse::default()
            },
        };
        self.ledger.iter().map(row).collect()
    }
}
