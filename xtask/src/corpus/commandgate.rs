//! Acceptance commands against the shipped policy, network denied.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{CorpusError, Results, ask, read_cases};

#[derive(Deserialize)]
struct Case {
    cmd: String,
    expect: String,
    reason: Option<String>,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results, CorpusError> {
    let cases: Vec<Case> = read_cases(directory)?;
    let one = |case: Case| {
        (
            format!("`{}`", case.cmd.escape_debug()),
            check(&case, program),
        )
    };
    Ok(cases.into_iter().map(one).collect())
}

fn check(case: &Case, program: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(["check", "command", "--json", "--", &case.cmd]);
    let answer = ask(&mut command)?;
    let got = if answer.allow { "pass" } else { "reject" };
    if got != case.expect {
        return Err(format!("expected {}, got {}", case.expect, answer.whole));
    }
    match &case.reason {
        Some(reason) if !answer.reasons.contains(reason) => {
            Err(format!("expected {reason}, got {:?}", answer.reasons))
        }
        _ => Ok(()),
    }
}
