//! Locks: held at the same time, and taken and released in order.

use std::collections::BTreeMap;

use crate::board::lock::{Lock, Locks, Release};
use crate::board::row::{Status, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::resource::Resource;
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::finding::Findings;
use super::header::{conflicts, take_header};
use super::{Answer, field};

/// The most places that the operations of a lifecycle may name; each is compared with all others.
const MOST_NAMED: usize = 10_000;

/// Locks that are held at the same time.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct HeldLocks {
    locks: Vec<Lock>,
}

static LOCKS: FormatReader<HeldLocks> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    if let Some(payload) = found.read(&LOCKS, node, "") {
        conflicts(&payload.locks, "/locks", found);
    }
    Answer::new("no locks of different tasks overlap")
}

/// Operations in their order.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct Lifecycle {
    #[expect(dead_code, reason = "each is read by its own type")]
    #[schemars(with = "Vec<Value>")]
    ops: Vec<IgnoredAny>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct Operation {
    #[schemars(with = "ActionName")]
    op: Action,
    task_id: TaskId,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Acquire,
    Release,
    SetStatus,
}

enum ActionName {}

text_schema!(ActionName, {
    "type": "string", "pattern": r"\S", "enum": ["acquire", "release", "set_status"]
});

#[derive(Deserialize, JsonSchema)]
struct AcquireLocks {
    #[serde(flatten)]
    _operation: OperationFields,
    resources: Vec<Resource>,
}

#[derive(Deserialize, JsonSchema)]
struct ReleaseLocks {
    #[serde(flatten)]
    _operation: OperationFields,
    resources: Option<Vec<Resource>>,
}

#[derive(Deserialize, JsonSchema)]
struct SetStatus {
    #[serde(flatten)]
    _operation: OperationFields,
    status: Status,
}

/// The fields that [`Operation`] reads.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "they are read before")]
struct OperationFields {
    #[schemars(with = "Value")]
    op: IgnoredAny,
    #[schemars(with = "Value")]
    task_id: IgnoredAny,
}

static LIFECYCLE: FormatReader<Lifecycle> = FormatReader::new();
static OPERATION: FormatReader<Operation> = FormatReader::new();
static ACQUIRE: FormatReader<AcquireLocks> = FormatReader::new();
static RELEASE: FormatReader<ReleaseLocks> = FormatReader::new();
static SET_STATUS: FormatReader<SetStatus> = FormatReader::new();

pub(super) fn check_lifecycle(node: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("every operation was carried out");
    match live(node, found) {
        Some(steps) => answer.with("steps", json!(steps)),
        None => answer,
    }
}

/// The result of each operation: `ok`, or the code of its refusal.
fn live(node: &Node<'_>, found: &mut Findings) -> Option<Vec<&'static str>> {
    found.read(&LIFECYCLE, node, "")?;
    let items = field(node, "ops").and_then(Node::as_list)?;
    let names = |item: &Node<'_>| {
        let resources = field(item, "resources").and_then(Node::as_list);
        1 + resources.map_or(0, <[_]>::len)
    };
    if items.iter().map(names).sum::<usize>() > MOST_NAMED {
        let problem = format!("names more than {MOST_NAMED} places");
        found.add(Code::SchemaInvalid, "/ops", problem);
        return None;
    }
    let mut board = Board::default();
    let mut steps = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut own = found.fresh();
        board.act(item, &format!("/ops/{at}"), &mut own);
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
    fn act(&mut self, node: &Node<'_>, at: &str, found: &mut Findings) -> Option<()> {
        let Operation { op, task_id } = found.read(&OPERATION, node, at)?;
        match op {
            Action::Acquire => {
                let wanted = found.read(&ACQUIRE, node, at)?.resources;
                let known = self.statuses.get(&task_id);
                let status = known.copied().unwrap_or(Status::Todo);
                if let Err(why) = self.locks.acquire(&task_id, status, &wanted) {
                    found.add(why.code(), at, why);
                }
            }
            Action::Release => {
                let named = found.read(&RELEASE, node, at)?.resources;
                let release = named.as_deref().map_or(Release::All, Release::Only);
                self.locks.release(&task_id, release);
            }
            Action::SetStatus => {
                let status = found.read(&SET_STATUS, node, at)?.status;
                self.statuses.insert(task_id, status);
            }
        }
        Some(())
    }
}
