//! Payloads of the operator contracts: `CASE.json`, and the expectation in `CASE.expected.json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Results, ask, each, entries, read};
use crate::Result;

#[derive(Deserialize)]
struct Expected {
    kind: String,
    allow: bool,
    code: Option<String>,
    /// One of these is the code, or occurs in the answer.
    #[serde(default)]
    codes_or_reason_contains: Vec<String>,
    #[serde(default)]
    also_acceptable: Vec<String>,
    /// All of these occur in the details.
    #[serde(default)]
    details_contains: Vec<String>,
    /// Whether the case is about strict mode.
    #[serde(default)]
    strict_mode: bool,
    /// The verdict in strict mode, if it differs.
    strict_allow: Option<bool>,
    ledger_after: Option<Value>,
    steps: Option<Value>,
    #[serde(default)]
    steps_alternatives: Vec<Value>,
    /// Whether the file exists that a result names as its log.
    worklog_exists: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Literal,
    Strict,
}

pub(super) fn run(directory: &Path, program: &Path) -> Result<Results> {
    const END: &str = ".expected.json";
    let mut cases = Vec::new();
    for path in entries(directory)? {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.and_then(|name| name.strip_suffix(END)) {
            let payload = directory.join(format!("{name}.json"));
            cases.push((name.to_owned(), (payload, read::<Expected>(&path)?)));
        }
    }
    Ok(each(&cases, |(payload, expected)| {
        check(payload, expected, program)
    }))
}

fn check(payload: &Path, expected: &Expected, program: &Path) -> Result {
    let stage = Stage::build(payload, expected)?;
    let mode = if expected.strict_mode {
        Mode::Strict
    } else {
        Mode::Literal
    };
    let answer = stage.ask(program, expected, mode)?;
    if answer.allow != expected.allow {
        return Err(format!("expected allow {}, got {}", expected.allow, answer.whole).into());
    }
    if !answer.allow {
        compare_code(expected, &answer)?;
    }
    let details = answer.whole["details"].to_string();
    for part in &expected.details_contains {
        if !details.contains(part.as_str()) {
            return Err(format!("expected {part} in the details of {}", answer.whole).into());
        }
    }
    compare_ledger(expected, &answer)?;
    compare_steps(expected, &answer)?;
    if let Some(strict) = expected.strict_allow {
        let answer = stage.ask(program, expected, Mode::Strict)?;
        if answer.allow != strict {
            return Err(format!("expected strict allow {strict}, got {}", answer.whole).into());
        }
    }
    Ok(())
}

fn compare_code(expected: &Expected, answer: &Answer) -> Result {
    let code = answer.whole["code"].as_str().unwrap_or_default();
    let listed = expected.code.iter().chain(&expected.also_acceptable);
    if listed
        .chain(&expected.codes_or_reason_contains)
        .any(|one| one == code)
    {
        return Ok(());
    }
    let words = format!(
        "{code} {} {}",
        answer.whole["reason"], answer.whole["details"]
    );
    let words = words.to_lowercase();
    let occurs = |part: &String| words.contains(&part.to_lowercase());
    if expected.codes_or_reason_contains.iter().any(occurs) {
        return Ok(());
    }
    let wanted = &expected.codes_or_reason_contains;
    Err(format!("expected one of {wanted:?}, got {}", answer.whole).into())
}

/// After an allow the rows must be those expected; after a denial no others may be shown.
fn compare_ledger(expected: &Expected, answer: &Answer) -> Result {
    let Some(want) = &expected.ledger_after else {
        return Ok(());
    };
    let shown = &answer.whole["details"]["ledger"];
    let not_shown = !answer.allow && shown.is_null();
    if shown == want || not_shown {
        return Ok(());
    }
    Err(format!("expected the ledger {want}, got {}", answer.whole).into())
}

fn compare_steps(expected: &Expected, answer: &Answer) -> Result {
    let Some(want) = &expected.steps else {
        return Ok(());
    };
    let shown = &answer.whole["details"]["steps"];
    if shown == want || expected.steps_alternatives.contains(shown) {
        return Ok(());
    }
    Err(format!("expected the steps {want}, got {}", answer.whole).into())
}

/// A directory for each case, with the payload in it.
struct Stage {
    directory: tempfile::TempDir,
}

const PAYLOAD: &str = "payload";

impl Stage {
    fn build(payload: &Path, expected: &Expected) -> Result<Self> {
        let bytes = fs::read(payload)?;
        let directory = tempfile::tempdir()?;
        let value: Value = serde_json::from_slice(&bytes)?;
        let raw = value.get("$raw").and_then(Value::as_str);
        let fed = raw.map_or(&*bytes, str::as_bytes);
        fs::write(directory.path().join(PAYLOAD), fed)?;
        if expected.worklog_exists == Some(true)
            && let Some(path) = value["result"]["worklog_path"].as_str()
        {
            let path = inside(directory.path(), path).ok_or("its worklog lies outside")?;
            let parent = path.parent().unwrap_or(directory.path());
            fs::create_dir_all(parent)?;
            fs::write(path, "{}\n")?;
        }
        Ok(Self { directory })
    }

    fn ask(&self, program: &Path, expected: &Expected, mode: Mode) -> Result<Answer> {
        let kind = expected.kind.replace('_', "-");
        let mut command = Command::new(program);
        command.current_dir(self.directory.path());
        command.args(["check", &kind, PAYLOAD, "--json"]);
        if mode == Mode::Strict {
            command.arg("--strict");
        }
        ask(&mut command)
    }
}

/// `path` below `root`, if it stays there.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    Path::new(path)
        .components()
        .all(plain)
        .then(|| root.join(path))
}
