//! Acceptance commands against the shipped policy, network denied.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{Results, ask, each, read_cases};
use crate::Result;

#[derive(Deserialize)]
struct Case {
    cmd: String,
    expect: String,
    reason: Option<String>,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    let cases: Vec<Case> = read_cases(directory)?;
    let named = |case: Case| (format!("`{}`", case.cmd.escape_debug()), case);
    let cases: Vec<_> = cases.into_iter().map(named).collect();
    Ok(each(&cases, |case| check(case, program)))
}

fn check(case: &Case, program: &Path) -> Result {
    let mut command = Command::new(program);
    command.args(["check", "command", "--json", "--", &case.cmd]);
    let answer = ask(&mut command)?;
    let got = if answer.allow { "pass" } else { "reject" };
    if got != case.expect {
        return Err(format!("expected {}, got {}", case.expect, answer.whole).into());
    }
    match &case.reason {
        Some(reason) if !answer.reasons.contains(reason) => {
            Err(format!("expected {reason}, got {:?}", answer.reasons).into())
        }
        _ => Ok(()),
    }
}
