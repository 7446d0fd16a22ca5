//! `provost check contract`: whether a contract keeps every rule, and could be run.

use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract::check::{self, Purpose, Rules};
use provost_core::contract::document::Document;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::json;
use provost_core::path::RepoPath;
use provost_dialects::document;
use provost_engine::opening::{self, Origin as _};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::origin::GitOrigin;
use crate::place::Place;
use crate::show::plain;

#[derive(Args)]
#[command(after_help = "Example:
  provost check contract contract.json

`provost explain contract` shows how a contract is written.")]
pub(in crate::cli) struct CheckContract {
    /// The contract as JSON, or as YAML or TOML if its name ends so; `-` reads JSON from stdin.
    file: PathBuf,

    /// Judge it as a document only: what no run here could keep is not refused.
    #[arg(long)]
    format: bool,
}

pub(super) fn run(check: &CheckContract) -> Outcome {
    let bytes = input::read(&check.file, json::LARGEST)?;
    let value = match document::parse(input::format(&check.file), &bytes) {
        Ok(value) => value,
        Err(error) => return Ok(super::bad_payload(&error)),
    };
    let place = Place::find().ok();
    let rules = Rules {
        policy: &policy(place.as_ref(), &value)?,
        trust: Trust::FromFile,
        purpose: if check.format {
            Purpose::Format
        } else {
            Purpose::Run
        },
    };
    let checkout = place.as_ref().and_then(|place| place.repo.checkout());
    let beside = check.file.parent().unwrap_or(Path::new("."));
    let root = checkout.unwrap_or(beside);
    let read = |path: &RepoPath| input::reference(root, path);
    let mut answer = Answer::from(check::judge(&value, &rules, &read));
    let advice = answer
        .json
        .pointer("/details/advice")
        .and_then(Value::as_array);
    for row in advice.cloned().unwrap_or_default() {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        answer.text += &format!("note: {}: {}\n", text("path"), text("problem"));
    }
    if rules.purpose == Purpose::Run {
        let asks = foreseen(place.as_ref(), &value);
        answer.text += &waiting(&asks);
        answer.json["asks"] = json!(asks);
    }
    Ok(answer)
}

/// What a run of this contract here would wait for, as far as that can be told.
pub(in crate::cli) fn foreseen(place: Option<&Place>, contract: &Value) -> Vec<Widening> {
    let document = json::from_value::<Document>(contract.clone()).ok();
    let (Some(place), Some(document)) = (place, document) else {
        return Vec::new();
    };
    // A base that is not here is told by the run.
    opening::foreseen(&GitOrigin(&place.repo), &document).unwrap_or_default()
}

/// Says what a run would wait for.
pub(in crate::cli) fn waiting(asks: &[Widening]) -> String {
    let line = |one: &Widening| {
        let (path, problem) = (plain(&one.path), plain(&one.problem));
        format!("note: a run waits for approval: {path}: {problem}\n")
    };
    asks.iter().map(line).collect()
}

/// The commands that a run of this contract here would take.
pub(in crate::cli) fn policy(
    place: Option<&Place>,
    contract: &Value,
) -> Result<CommandPolicy, Failure> {
    let bug = |error| Failure::of(Code::Bug, &error);
    let shipped = CommandPolicy::shipped().map_err(bug)?;
    let base = contract
        .pointer("/rollback/baseline_ref")
        .and_then(Value::as_str);
    let (Some(place), Some(base)) = (place, base) else {
        return Ok(shipped);
    };
    let commit = place.repo.resolve(base).ok();
    let tree = commit.and_then(|commit| place.repo.commit_tree(&commit).ok());
    match tree {
        Some(tree) => {
            let policy = GitOrigin(&place.repo).policy(&tree)?;
            shipped.with(policy.commands).map_err(bug)
        }
        // A base that is not here adds no commands.
        None => Ok(shipped),
    }
}
