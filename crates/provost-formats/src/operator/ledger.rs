//! Changes of a board: one batch, or streams of several writers.

use crate::board::delta::{Delta, DeltaError, Ledger, Reuse};
use crate::board::row::{Pulse, Row, Status, TaskId};
use provost_core::bundle::report::Nullable;
use provost_core::json::Node;
use provost_core::schema::leaf::{Filled, UtcTime};
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelope::{LedgerDelta, look_for_secrets};
use super::finding::Findings;
use super::header::take_header;
use super::{Answer, field};

/// A row of a board; it may have other fields.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(super) struct LedgerRow {
    task_id: TaskId,
    status: Status,
    /// `null` is another spelling of "no owner".
    #[serde(default)]
    #[schemars(with = "Nullable<String>")]
    owner: Option<String>,
    #[serde(default)]
    dependencies: Vec<TaskId>,
    #[serde(default)]
    #[schemars(with = "Nullable<UtcTime>")]
    last_heartbeat_at: Option<String>,
    timed_out: Option<bool>,
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    retry_after_ms: Option<i64>,
}

impl From<LedgerRow> for Row {
    fn from(row: LedgerRow) -> Self {
        Self {
            task_id: row.task_id,
            status: row.status,
            owner: row.owner.unwrap_or_default(),
            dependencies: row.dependencies,
            pulse: Pulse {
                last_heartbeat_at: row.last_heartbeat_at,
                timed_out: row.timed_out,
                retry_after_ms: row.retry_after_ms,
            },
        }
    }
}

/// One batch.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct Batch {
    base_ledger: Vec<LedgerRow>,
    #[serde(default)]
    #[schemars(with = "Vec<Filled>")]
    applied_delta_ids: Vec<String>,
    deltas: Vec<LedgerDelta>,
}

static BATCH: FormatReader<Batch> = FormatReader::new();

pub(super) fn check(node: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("the batch was applied");
    match apply(node, found) {
        Some(rows) => answer.with("ledger", rows),
        None => answer,
    }
}

/// The rows after the batch; after a refusal, the rows before it.
fn apply(node: &Node<'_>, found: &mut Findings) -> Option<Value> {
    let batch = found.read(&BATCH, node, "")?;
    look_for_secrets(&batch.deltas, "/deltas", found);
    if !found.is_empty() {
        return None;
    }
    let board = open(batch.base_ledger, 0, batch.applied_delta_ids, found)?;
    let deltas: Vec<Delta> = batch.deltas.into_iter().map(Delta::from).collect();
    match board.apply(&deltas, reuse(found)) {
        Ok(after) => Some(render(node, &after)),
        Err(why) => {
            report(&why, "/deltas", found);
            Some(render(node, &board))
        }
    }
}

/// The batches of several writers.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = take_header)]
struct SeveralWriters {
    base_ledger: Vec<LedgerRow>,
    base_version: u64,
    streams: Vec<WriterStream>,
}

#[derive(Deserialize, JsonSchema)]
struct WriterStream {
    base_version: u64,
    deltas: Vec<LedgerDelta>,
    #[expect(dead_code, reason = "no rule uses it")]
    stream_id: Option<Value>,
}

static STREAMS: FormatReader<SeveralWriters> = FormatReader::new();

pub(super) fn check_streams(node: &Node<'_>, found: &mut Findings) -> Answer {
    let mut answer = Answer::new("every stream was applied");
    answer.details = apply_streams(node, found).unwrap_or_default();
    answer
}

/// The result of each stream, and the board after those that were applied.
fn apply_streams(node: &Node<'_>, found: &mut Findings) -> Option<Vec<(&'static str, Value)>> {
    let payload = found.read(&STREAMS, node, "")?;
    for (at, stream) in payload.streams.iter().enumerate() {
        look_for_secrets(&stream.deltas, &format!("/streams/{at}/deltas"), found);
    }
    if !found.is_empty() {
        return None;
    }
    let mut board = open(payload.base_ledger, payload.base_version, Vec::new(), found)?;
    let mut steps = Vec::new();
    for (at, stream) in payload.streams.into_iter().enumerate() {
        let at = format!("/streams/{at}/deltas");
        let deltas: Vec<Delta> = stream.deltas.into_iter().map(Delta::from).collect();
        match board.apply_on(stream.base_version, &deltas, reuse(found)) {
            Ok(after) => {
                board = after;
                steps.push("ok");
            }
            Err(why) => {
                steps.push(why.code().name());
                report(&why, &at, found);
            }
        }
    }
    Some(vec![
        ("ledger", render(node, &board)),
        ("version", json!(board.version())),
        ("steps", json!(steps)),
    ])
}

fn reuse(found: &Findings) -> Reuse {
    if found.is_strict() {
        Reuse::Refuse
    } else {
        Reuse::Ignore
    }
}

fn open(
    rows: Vec<LedgerRow>,
    version: u64,
    applied: Vec<String>,
    found: &mut Findings,
) -> Option<Ledger> {
    match Ledger::new(version, rows.into_iter().map(Row::from).collect(), applied) {
        Ok(board) => Some(board),
        Err(why) => {
            found.add(why.code(), "/base_ledger", why);
            None
        }
    }
}

fn report(why: &DeltaError, at: &str, found: &mut Findings) {
    match why {
        DeltaError::Refused { at: index, .. } => {
            found.add(why.code(), format_args!("{at}/{index}"), why);
        }
        DeltaError::TwoRows(_) | DeltaError::Stale { .. } => found.add(why.code(), at, why),
    }
}

/// The rows of `board` as `payload` writes rows: fields that deltas do not touch stay the same.
fn render(payload: &Node<'_>, board: &Ledger) -> Value {
    let written = field(payload, "base_ledger").and_then(Node::as_list);
    let written = written.unwrap_or_default();
    let render = |(at, row): (usize, &Row)| {
        let before = written.get(at).cloned().map(Node::into_value);
        let mut fields = match before {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        fields.insert("task_id".to_owned(), json!(row.task_id));
        fields.insert("status".to_owned(), json!(row.status));
        fields.insert("owner".to_owned(), json!(row.owner));
        if let Ok(Value::Object(pulse)) = serde_json::to_value(&row.pulse) {
            fields.extend(pulse);
        }
        Value::Object(fields)
    };
    board.rows().iter().enumerate().map(render).collect()
}
