//! Control packets: one directory per case, in which the program also runs.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{Results, ask, each, entries, read};
use crate::Result;

#[derive(Deserialize)]
struct Expected {
    case: String,
    profile: String,
    allow: bool,
    /// The verdict of the strict profile, if it differs.
    strict_allow: Option<bool>,
    #[serde(default)]
    codes_or_reason_contains: Vec<String>,
    phase_id: String,
    packet_root: String,
}

/// Runs the cases in `directory`; those of later revisions of the format are left out.
pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    let mut cases = Vec::new();
    for place in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
        let expected: Expected = read(&place.join("expected.json"))?;
        if expected.profile == "v1" {
            cases.push((expected.case.clone(), (expected, place)));
        }
    }
    Ok(each(&cases, |(expected, place)| {
        judge(expected, place, program)
    }))
}

fn judge(expected: &Expected, case: &Path, program: &Path) -> Result {
    let mut command = Command::new(program);
    command
        .current_dir(case)
        .args(["check", "packet", "--json", "--phase-id"])
        .args([&expected.phase_id, "--packet-root", &expected.packet_root]);
    let answer = ask(&mut command)?;
    let whole = answer.whole.to_string();
    if answer.allow != expected.allow {
        return Err(format!("wanted allow={}, got {whole}", expected.allow).into());
    }
    let words = &expected.codes_or_reason_contains;
    let text = whole.to_lowercase();
    let named = words.is_empty() || words.iter().any(|word| text.contains(&word.to_lowercase()));
    if !named {
        return Err(format!("wanted one of {words:?} in {whole}").into());
    }
    let strict = ask(command.arg("--strict"))?;
    let wanted = expected.strict_allow.unwrap_or(expected.allow);
    if strict.allow != wanted {
        let whole = strict.whole;
        return Err(format!("wanted allow={wanted} with --strict, got {whole}").into());
    }
    Ok(())
}
