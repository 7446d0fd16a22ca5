//! Answers a request about a board that is kept on disk: read it, decide, append the record.
//!
//! # Invariants
//!
//! - The caller holds the lock of the board, so it does not change between reading and writing.
//! - One request is one record. A request that is refused, or that changes nothing, appends none;
//!   the caller still gets the answer.

use provost_core::board::decide::{Decision, Refusal, Request};
use provost_core::board::fact::Fact;
use provost_core::board::state::Board;
use provost_core::code::Code;
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use crate::ports::{Clock, Ledger, PortError};

/// The board of the run `run_id`, folded from `ledger`.
pub fn fold(run_id: &str, ledger: &dyn Ledger) -> Result<Board, PortError> {
    Board::fold(run_id, ledger.records())
        .map_err(|error| PortError::of(Code::EvidenceAltered, error))
}

/// Applies `order` to the board of the run `run_id`, and appends the record that follows from it.
///
/// `now` is in milliseconds since 1970. `order` sees the board as it is under the lock; what it
/// refuses is refused.
pub fn ask(
    ledger: &mut dyn Ledger,
    clock: &dyn Clock,
    run_id: &str,
    now: i64,
    order: impl FnOnce(&Board) -> Result<Request, Verdict>,
) -> Result<Verdict, PortError> {
    let board = fold(run_id, ledger)?;
    let request = match order(&board) {
        Ok(request) => request,
        Err(verdict) => return Ok(verdict),
    };
    match board.decide(request, now) {
        Err(refusal) => Ok(refuse(&refusal)),
        Ok(decision) => {
            if let Some(fact) = &decision.fact {
                ledger.append(fact.event(run_id, clock.timestamp()))?;
            }
            Ok(answer(&decision))
        }
    }
}

/// The verdict on a request that the board refuses.
pub fn refuse(refusal: &Refusal) -> Verdict {
    let code = refusal.code();
    let reason = refusal.to_string();
    let finding = json!({ "code": code, "path": "", "problem": reason });
    Verdict::deny(code, reason).with(json!({ "findings": [finding] }))
}

fn answer(decision: &Decision) -> Verdict {
    let board = &decision.board;
    let mut details = Map::new();
    let mut add = |name: &str, value: Value| details.insert(name.to_owned(), value);
    add("run_id", json!(board.run_id()));
    add("version", json!(board.version()));
    add("changed", json!(decision.fact.is_some()));
    if let Some(Fact::TimedOut { late }) = &decision.fact {
        add("timed_out", json!(late));
    }
    let task = decision.fact.as_ref().and_then(Fact::task);
    if let Some(row) = task.and_then(|task| board.row(task).ok()) {
        add("row", json!(row));
    }
    let done = decision.fact.as_ref().map(Fact::words);
    let done = done.unwrap_or_else(|| "nothing changed".to_owned());
    let verdict = match decision.doubts.first() {
        None => Verdict::allow(done),
        Some(doubt) => {
            let finding = |doubt: &dyn std::fmt::Display, code: Code| json!({ "code": code, "path": "", "problem": doubt.to_string() });
            let doubts = decision.doubts.iter();
            let findings = doubts.map(|doubt| finding(doubt, doubt.code())).collect();
            add("findings", Value::Array(findings));
            Verdict::deny(doubt.code(), format!("{doubt}; {done}"))
        }
    };
    verdict.with(Value::Object(details))
}
