//! Refuses a request that is only the name of a command: no planner should be asked to do `land`.

use provost_core::code::Code;

use crate::answer::Failure;

/// The commands that take the id of a case.
const OF_CASES: [&str; 11] = [
    "show", "log", "diff", "why", "cancel", "approve", "reject", "land", "verify", "resume",
    "retry",
];

pub(super) fn refuse(request: &str) -> Result<(), Failure> {
    let word = request.trim();
    if !OF_CASES.contains(&word) {
        return Ok(());
    }
    let reason = format!("`{word}` is a command, and no request");
    Err(Failure::new(Code::UsageError, reason).hint(format!("provost {word} CASE")))
}
