//! Changes of a board: one batch, or streams of several writers.

use provost_core::board::delta::{DeltaError, Ledger, Reuse};
use provost_core::board::row::{Pulse, Row};
use provost_core::json::Node;
use serde_json::{Map, Value, json};

use super::envelope;
use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::{Answer, shape};

pub(super) fn check(value: &Node<'_>, found: &mut Findings) -> Answer {
    let answer = Answer::new("the batch was applied");
    match read(value, found) {
        Some(rows) => answer.with("ledger", rows),
        None => answer,
    }
}

/// The rows after the batch; after a refusal, the rows before it.
fn read(value: &Node<'_>, found: &mut Findings) -> Option<Value> {
    let payload = Object::payload(value, found)?;
    let base = Base::read(payload, found);
    let applied = match payload.optional("applied_delta_ids") {
        Some(_) => payload.texts("applied_delta_ids", Length::Filled, found),
        None => Some(Vec::new()),
    };
    let deltas = payload.all("deltas", envelope::read_delta, found);
    payload.close(&["base_ledger", "applied_delta_ids", "deltas"], found);
    let (base, applied, deltas) = (base?, applied?, deltas?);
    let applied = applied.into_iter().map(str::to_owned);
    let board = open(&base, 0, applied, payload, found)?;
    match board.apply(&deltas, reuse(found)) {
        Ok(after) => Some(base.render(&after)),
        Err(why) => {
            report(&why, payload.at("deltas"), found);
            Some(base.render(&board))
        }
    }
}

pub(super) fn check_streams(value: &Node<'_>, found: &mut Findings) -> Answer {
    let mut answer = Answer::new("every stream was applied");
    if let Some(payload) = Object::payload(value, found) {
        answer.details = read_streams(payload, found).unwrap_or_default();
    }
    answer
}

/// The result of each stream, and the board after those that were applied.
fn read_streams(
    payload: Object<'_, '_>,
    found: &mut Findings,
) -> Option<Vec<(&'static str, Value)>> {
    let base = Base::read(payload, found);
    let version = payload.count("base_version", 0, found);
    let items = payload.list("streams", found);
    payload.close(&["base_ledger", "base_version", "streams"], found);
    let base = base?;
    let mut board = open(&base, version?, [], payload, found)?;
    let place = payload.at("streams");
    let mut steps = Vec::new();
    for (at, item) in items?.iter().enumerate() {
        let stream = Object::of(item, place.index(at), found)?;
        let version = stream.count("base_version", 0, found);
        let deltas = stream.all("deltas", envelope::read_delta, found);
        stream.close(&["base_version", "deltas", "stream_id"], found);
        match board.apply_on(version?, &deltas?, reuse(found)) {
            Ok(after) => {
                board = after;
                steps.push("ok");
            }
            Err(why) => {
                steps.push(why.code().name());
                report(&why, stream.at("deltas"), found);
            }
        }
    }
    Some(vec![
        ("ledger", base.render(&board)),
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
    base: &Base<'_>,
    version: u64,
    applied: impl IntoIterator<Item = String>,
    payload: Object<'_, '_>,
    found: &mut Findings,
) -> Option<Ledger> {
    match Ledger::new(version, base.rows.clone(), applied) {
        Ok(board) => Some(board),
        Err(why) => {
            found.add(why.code(), payload.at("base_ledger"), why);
            None
        }
    }
}

fn report(why: &DeltaError, place: Place<'_>, found: &mut Findings) {
    match why {
        DeltaError::Refused { at, .. } => found.add(why.code(), place.index(*at), why),
        DeltaError::TwoRows(_) | DeltaError::Stale { .. } => found.add(why.code(), place, why),
    }
}

/// The initial rows of a payload, and how it wrote them.
struct Base<'v> {
    rows: Vec<Row>,
    written: &'v [Node<'v>],
}

impl<'v> Base<'v> {
    fn read(payload: Object<'v, '_>, found: &mut Findings) -> Option<Self> {
        let rows = payload.all("base_ledger", row, found)?;
        let written = payload.list("base_ledger", found)?;
        Some(Self { rows, written })
    }

    /// The rows of `board` as the payload writes rows: fields that deltas do not touch stay the
    /// same.
    fn render(&self, board: &Ledger) -> Value {
        let render = |(at, row): (usize, &Row)| {
            let written = self.written.get(at).cloned().map(Node::into_value);
            let mut fields = match written {
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
}

/// Reads a row of a board at `place`; `None` if its shape is wrong.
pub(super) fn row(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Row> {
    let object = Object::of(value, place, found)?;
    let task_id = shape::task_id(object, "task_id", found);
    let status = shape::status(object, "status", found);
    let before = found.count();
    let owner = match object.optional("owner") {
        // `null` is another spelling of "no owner".
        None | Some(Node::Null) => "",
        Some(_) => object.text("owner", Length::Any, found).unwrap_or_default(),
    };
    let dependencies = object.optional_all("dependencies", shape::task, found);
    let pulse = match object.optional("last_heartbeat_at") {
        Some(Node::Null) => Pulse::default(),
        _ => envelope::read_pulse(object, found),
    };
    let is_whole = found.count() == before;
    Some(Row {
        task_id: task_id?,
        status: status?,
        owner: owner.to_owned(),
        dependencies: dependencies?,
        pulse,
    })
    .filter(|_| is_whole)
}
