//! `provost check command`: checks that a command may be an acceptance command.

use clap::Args;
use provost_core::code::Code;
use provost_core::gate::command::{self, CommandPolicy, Trust};

use crate::answer::{Failure, Outcome};

/// Check that a command may be an acceptance command of a contract in a file.
#[derive(Args)]
#[command(after_help = "Examples:
  provost check command -- 'pytest -q tests'
  provost check command -- pytest -q tests")]
pub(in crate::cli) struct CheckCommand {
    /// The command: one text as in a contract, or its words.
    #[arg(value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub(super) fn run(check: &CheckCommand) -> Outcome {
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    let text = match check.command.as_slice() {
        [text] => text.clone(),
        words => command::line(words),
    };
    Ok(command::judge(&text, &policy, Trust::FromFile).into())
}
