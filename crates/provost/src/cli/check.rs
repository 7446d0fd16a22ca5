//! `provost check`: judges something by the rules, without running anything.

mod command;
mod diff;
mod operator;
mod scope;

use clap::Subcommand;

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json::JsonError;
use provost_core::verdict::Verdict;

use crate::answer::{Answer, Outcome};

#[derive(Subcommand)]
pub(super) enum Check {
    /// Whether these paths can be the scope of a contract.
    Scope(scope::CheckScope),
    /// Whether what changed in a checkout is inside a scope.
    Diff(diff::CheckDiff),
    /// Whether a command may be an acceptance command.
    Command(command::CheckCommand),
    #[command(flatten)]
    Operator(operator::Operator),
}

pub(super) fn run(check: Check) -> Outcome {
    match check {
        Check::Scope(check) => scope::run(check),
        Check::Diff(check) => diff::run(&check),
        Check::Command(check) => command::run(&check),
        Check::Operator(check) => operator::run(&check),
    }
}

/// A payload that does not parse is answered with a verdict: the check worked, the answer is no.
fn bad_payload(error: &JsonError) -> Answer {
    let mut answer = Answer::from(Verdict::deny(Code::InputInvalid, error.to_string()));
    answer.exit = Exit::No;
    answer
}
