//! A whole board: rows, locks and events that must fit together.

use crate::board::lock::Lock;
use crate::board::reconcile::{self, Cycles};
use crate::board::row::{Row, TaskId};
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::finding::Findings;
use super::header::take_header;
use super::ledger::LedgerRow;
use super::{Answer, field};

/// A whole board; each row, lock and event is read by its own type.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
#[expect(dead_code, reason = "only the lists are judged here")]
struct WholeBoard {
    #[schemars(with = "Vec<Value>")]
    ledger: Vec<IgnoredAny>,
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    active_locks: Vec<IgnoredAny>,
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    events: Vec<IgnoredAny>,
}

/// An event of a board; it may have other fields.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct BoardEvent {
    task_id: TaskId,
}

const LISTS: [&str; 3] = ["/ledger", "/active_locks", "/events"];

static BOARD: FormatReader<WholeBoard> = FormatReader::new();
static ROW: FormatReader<LedgerRow> = FormatReader::new();
static LOCK: FormatReader<Lock> = FormatReader::new();
static EVENT: FormatReader<BoardEvent> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    let mut answer = Answer::new("the board is consistent");
    found.read(&BOARD, node, "");
    let decides = |path: &str| matches!(path, "" | "/schema_version") || LISTS.contains(&path);
    if found.list().iter().any(|one| decides(&one.path)) {
        return answer;
    }
    // Anything else that cannot be read makes the board inconsistent; the rest is still judged.
    let rows = each(&ROW, node, "ledger", found);
    let rows: Vec<Row> = rows.into_iter().map(Row::from).collect();
    let locks = each(&LOCK, node, "active_locks", found);
    let events = each(&EVENT, node, "events", found);
    let events: Vec<TaskId> = events.into_iter().map(|event| event.task_id).collect();
    judge(&rows, &locks, &events, found);
    if !found.is_empty() {
        answer.code = Some(Code::LedgerInconsistent);
        let issues = found.list().iter();
        let issues = issues.map(|one| json!({ "code": one.code, "message": one.problem }));
        let issues = issues.collect();
        answer.details.push(("issues", Value::Array(issues)));
    }
    answer
}

/// The elements of the list `key` that can be read.
fn each<T: JsonSchema + DeserializeOwned>(
    format: &FormatReader<T>,
    payload: &Node<'_>,
    key: &str,
    found: &mut Findings,
) -> Vec<T> {
    let items = field(payload, key).and_then(Node::as_list);
    let items = items.unwrap_or_default().iter().enumerate();
    items
        .filter_map(|(at, item)| found.read(format, item, format_args!("/{key}/{at}")))
        .collect()
}

/// Adds a finding for everything that does not fit together.
pub(super) fn judge(rows: &[Row], locks: &[Lock], events: &[TaskId], found: &mut Findings) {
    let cycles = if found.is_strict() {
        Cycles::Find
    } else {
        Cycles::Ignore
    };
    for issue in reconcile::issues(rows, locks, events, cycles) {
        found.add(issue.code(), "", issue);
    }
}
