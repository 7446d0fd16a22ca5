//! Child packages of version 1 (docs/PACKAGES.md): derivation, fingerprints, hand-off, depth.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::{Results, SLOWEST, bounded, each, read_files};
use crate::Result;

#[derive(Deserialize)]
struct Case {
    id: String,
    op: String,
    input: Value,
    expected: Value,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    let cases: Vec<Case> = read_files(directory)?;
    let named = |case: Case| (case.id.clone(), case);
    let cases: Vec<_> = cases.into_iter().map(named).collect();
    Ok(each(&cases, |case| check(case, program)))
}

fn check(case: &Case, program: &Path) -> Result {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(case.input.to_string().as_bytes())?;
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
        return Err(format!("exits with {code:?} and answers {answer}").into());
    }
    if holds {
        let found = difference("", &case.expected, &answer);
        return found.map_or(Ok(()), |why| Err(why.into()));
    }
    refused(&case.expected["error"], &answer)
}

/// A failure has a stage and, by stage, a field or a code. Where another implementation panicked, a
/// clean error with any code is expected.
fn refused(expected: &Value, answer: &Value) -> Result {
    let error = &answer["error"];
    if answer["ok"] != false || !error["code"].is_string() {
        return Err(format!("expected a refusal with a code, got {answer}").into());
    }
    if expected["stage"] == "panic" {
        return Ok(());
    }
    for name in ["stage", "field", "code", "variant", "kind", "retry"] {
        let want = &expected[name];
        if !want.is_null() && *want != error[name] {
            return Err(format!("expected {name} {want}, got {error}").into());
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
