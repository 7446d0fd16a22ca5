//! `provost check command`: whether a command may be an acceptance command.

use clap::Args;
use provost_core::code::Code;
use provost_core::gate::command::{self, CommandPolicy, Trust};

use crate::answer::{Failure, Outcome};

#[derive(Args)]
pub(in crate::cli) struct CheckCommand {
    /// The command, as one text.
    #[arg(value_name = "CMD")]
    command: String,
}

pub(super) fn run(check: &CheckCommand) -> Outcome {
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    Ok(command::judge(&check.command, &policy, Trust::FromFile).into())
}
