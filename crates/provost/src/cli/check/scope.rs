//! `provost check scope`: checks that paths can be the scope of a contract.

use std::path::PathBuf;

use clap::Args;
use provost_core::{json, scope};

use crate::answer::Outcome;
use crate::input;

#[derive(Args)]
#[command(after_help = "\
A path that can be in a scope may still need a permission of its own: files that decide what passing
means, that instruct agents, or that control git and Provost. A note says so.

Example:
  provost check scope src docs/guide.md")]
pub(in crate::cli) struct CheckScope {
    /// A JSON list of paths; `-` reads stdin.
    #[arg(long, value_name = "LIST.json")]
    file: Option<PathBuf>,

    /// The paths.
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

pub(super) fn run(check: CheckScope) -> Outcome {
    let mut entries = check.paths;
    if let Some(file) = &check.file {
        let bytes = input::read(file, json::LARGEST)?;
        match json::parse_as::<Vec<String>>(&bytes) {
            Ok(list) => entries.extend(list),
            Err(error) => return Ok(super::bad_payload(file, &error)),
        }
    }
    Ok(scope::judge(&entries).into())
}
