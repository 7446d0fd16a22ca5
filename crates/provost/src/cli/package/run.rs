//! `provost package run`: runs a command with what a package lets its agent do itself.

use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::package::{self, Action, Authority, Id, Package, Place, Refusal, Set};
use provost_core::path::RepoPath;
use serde_json::Value;

use super::super::sandbox::{self, HandSandbox};
use super::{converted, read, refused};
use crate::answer::{Failure, Outcome};
use crate::show::Reader;

// Run a command in a sandbox that holds what `exercise` of a package says, and nothing else: the
// paths below the current directory, the places of the network, the variables, the seconds and the
// processes.
#[derive(Args)]
#[command(after_help = "\
A package without seconds runs nothing: an axis that is not stated is empty. The command must be in
`run`, or `run` holds `*`; what it starts itself is not compared. Secrets, models and tools need a
run (`provost run`), because a gateway has to hold them; a package with secrets is refused here.")]
pub(in crate::cli) struct PackageRun {
    /// The package as JSON; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    package: PathBuf,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(asked: PackageRun, reader: Reader) -> Outcome {
    let package = read(&asked.package)?.and_then(|value| package_of(&value));
    let package = match package {
        Ok(package) => package,
        Err(refusal) => return Ok(refused(&refusal, super::Algorithm::V2)),
    };
    let held = held(&package.exercise, asked.command)?;
    sandbox::aside(sandbox::by_hand("provost package run", held), reader)
}

fn package_of(value: &Value) -> Result<Package, Refusal> {
    let payload = Value::from_iter([("parent", value.clone())]);
    package::member(&converted(payload)?, "parent")
}

/// The sandbox for `authority`, or what of it cannot be held.
fn held(authority: &Authority, command: Vec<String>) -> Result<HandSandbox, Failure> {
    let refuse = |reason: String| Failure::new(Code::PackageExceedsGrant, reason);
    if authority.limits.seconds == 0 {
        return Err(refuse("the package grants no seconds".to_owned()));
    }
    if !authority.secrets.is_empty() {
        let reason = "secrets of a package are given by the gateway of a run";
        return Err(refuse(reason.to_owned()));
    }
    let program = command.first().cloned().unwrap_or_default();
    let id = |text: &str| Id::try_from(text.to_owned()).ok();
    let mut entries = [id(&program), id("*")].into_iter().flatten();
    if !entries.any(|entry| authority.permits(&Action::Run(entry))) {
        return Err(refuse(format!("the package does not run `{program}`")));
    }
    let base = std::env::current_dir()
        .map_err(|error| Failure::new(Code::InputUnreadable, error.to_string()))?;
    let places = |set: &Set<Place>| {
        let path = |place: &Place| match place.path() {
            None => base.clone(),
            Some(path) => base.join(RepoPath::as_str(path)),
        };
        set.iter().map(path).collect::<Vec<_>>()
    };
    let allow = places(&authority.write);
    // A place that can be written can be read.
    let mut read = places(&authority.read);
    read.retain(|path| !allow.contains(path));
    let net: Result<Vec<Endpoint>, Failure> = authority
        .network
        .iter()
        .map(|place| {
            let wrong = |error| refuse(format!("`{place}` {error}"));
            Endpoint::parse(place.as_str()).map_err(wrong)
        })
        .collect();
    Ok(HandSandbox {
        allow,
        read,
        net: net?,
        variables: authority.environment.iter().map(Id::to_string).collect(),
        seconds: authority.limits.seconds,
        processes: authority.limits.processes,
        command,
    })
}
