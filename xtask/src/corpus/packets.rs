//! Control packets: one directory per case, in which the program also runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{CorpusError, Results, ask};

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
pub(super) fn run(directory: &Path, program: &Path) -> Result<Results, CorpusError> {
    let unreadable = |error| CorpusError::Unreadable(directory.to_owned(), error);
    let mut cases: Vec<PathBuf> = fs::read_dir(directory)
        .map_err(unreadable)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    let mut results = Vec::new();
    for case in cases {
        let file = case.join("expected.json");
        let bytes =
            fs::read(&file).map_err(|error| CorpusError::Unreadable(file.clone(), error))?;
        let expected: Expected =
            serde_json::from_slice(&bytes).map_err(|error| CorpusError::Malformed(file, error))?;
        if expected.profile == "v1" {
            let result = judge(&expected, &case, program);
            results.push((expected.case, result));
        }
    }
    Ok(results)
}

fn judge(expected: &Expected, case: &Path, program: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command
        .current_dir(case)
        .args(["check", "packet", "--json", "--phase-id"])
        .args([&expected.phase_id, "--packet-root", &expected.packet_root]);
    let answer = ask(&mut command)?;
    let whole = answer.whole.to_string();
    if answer.allow != expected.allow {
        return Err(format!("wanted allow={}, got {whole}", expected.allow));
    }
    let words = &expected.codes_or_reason_contains;
    let text = whole.to_lowercase();
    let named = words.is_empty() || words.iter().any(|word| text.contains(&word.to_lowercase()));
    if !named {
        return Err(format!("wanted one of {words:?} in {whole}"));
    }
    let strict = ask(command.arg("--strict"))?;
    let wanted = expected.strict_allow.unwrap_or(expected.allow);
    if strict.allow != wanted {
        let whole = strict.whole;
        return Err(format!("wanted allow={wanted} with --strict, got {whole}"));
    }
    Ok(())
}
