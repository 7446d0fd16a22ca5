//! `provost check contract`: whether a contract keeps every rule of its format.

use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::contract::check;
use provost_core::gate::command::CommandPolicy;
use provost_core::json;
use provost_dialects::document::{self, Format};

use crate::answer::{Failure, Outcome};
use crate::input;

#[derive(Args)]
#[command(after_help = "Example:
  provost check contract contract.json

`provost explain contract` shows how a contract is written.")]
pub(in crate::cli) struct CheckContract {
    /// The contract as JSON, or as YAML or TOML if its name ends so; `-` reads JSON from stdin.
    file: PathBuf,
}

pub(super) fn run(check: &CheckContract) -> Outcome {
    let bytes = input::read(&check.file, json::LARGEST)?;
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    let name = check.file.to_string_lossy();
    let format = Format::of_name(&name).unwrap_or(Format::Json);
    Ok(match document::parse(format, &bytes) {
        Ok(value) => check::judge(&value, &policy).into(),
        Err(error) => super::bad_payload(&error),
    })
}
