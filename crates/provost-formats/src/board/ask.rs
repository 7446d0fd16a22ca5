//! Answers a request to a board: decides, and says which event is to be appended.
//!
//! # Invariants
//!
//! - One request is one event. A request that is refused, or that changes nothing, has none; the
//!   caller still gets the verdict.

use provost_core::code::Code;
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use super::decide::{Decision, Refusal, Request};
use super::fact::Fact;
use super::state::Board;

#[cfg(test)]
mod tests;

/// Applies `request` to `board`. The fact, if there is one, must be stored before the verdict is
/// shown.
///
/// `now` is in milliseconds since 1970. The caller holds the lock of the board, so that it does not
/// change between reading and writing.
pub fn ask(board: &Board, request: Request, now: i64) -> (Verdict, Option<Fact>) {
    match board.decide(request, now) {
        Err(refusal) => (refuse(&refusal), None),
        Ok(decision) => (answer(&decision), decision.fact),
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
