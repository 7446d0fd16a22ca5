//! Child packages of version 1 (docs/PACKAGES.md): derivation, fingerprints, hand-off, depth.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::{CorpusError, Results, SLOWEST, bounded, read_files};

#[derive(Deserialize)]
struct Case {
    id: String,
    op: String,
    input: Value,
    expected: Value,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results, CorpusError> {
    let cases: Vec<Case> = read_files(directory)?;
    let one = |case: Case| (case.id.clone(), check(&case, program));
    Ok(cases.into_iter().map(one).collect())
}

fn check(case: &Case, program: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot be written: {error}");
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    file.write_all(case.input.to_string().as_bytes())
        .map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(["package", &case.op])
        .arg(file.path())
        .args(["--algorithm", "v1", "--json"]);
    let output = bounded(&mut command, SLOWEST)?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("answers no JSON ({error}): {}", complaint.trim())
    })?;
    let holds = case.expected["ok"] == true;
    let code = output.status.code();
    if code != Some(i32::from(!holds)) {
        return Err(format!("exits with {code:?} and answers {answer}"));
    }
    if holds {
        return difference("", &case.expected, &answer).map_or(Ok(()), Err);
    }
    refused(&case.expected["error"], &answer)
}

/// A failure has a stage and, by stage, a field or a code. Where another implementation panicked, a
/// clean error with any code is expected.
fn refused(expected: &Value, answer: &Value) -> Result<(), String> {
    let error = &answer["error"];
    if answer["ok"] != false || !error["code"].is_string() {
        return Err(format!("expected a refusal with a code, got {answer}"));
    }
    if expected["stage"] == "panic" {
        return Ok(());
    }
    for name in ["stage", "field", "code", "variant", "kind", "retry"] {
        let want = &expected[name];
        if !want.is_null() && *want != error[name] {
            return Err(format!("expected {name} {want}, got {error}"));
        }
    }
    Ok(())
}

/// Where `got` differs from `want`, which must be equal to the last member.
fn difference(at: &str, want: &Value, got: &Value) -> Option<String> {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let null = Value::Null;
            let mut names: Vec<&String> = want.keys().chain(got.keys()).collect();
            names.sort();
            names.dedup();
            names.into_iter().find_map(|name| {
                let member = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
                match (member(want), member(got)) {
                    (Some(want), Some(got)) => difference(&format!("{at}/{name}"), &want, &got),
                    (want, got) => Some(format!(
                        "{at}/{name}: expected {}, got {}",
                        want.as_ref().unwrap_or(&null),
                        got.as_ref().unwrap_or(&null)
                    )),
                }
            })
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => want
            .iter()
            .zip(got)
            .enumerate()
            .find_map(|(index, (want, got))| difference(&format!("{at}/{index}"), want, got)),
        _ if want == got => None,
        _ => Some(format!("{at}: expected {want}, got {got}")),
    }
}
