//! `provost package`: derives and checks the packages of agents and their children.
//!
//! With `--json` the answer is the object that the format defines, not a verdict.

mod run;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
#[cfg(feature = "formats")]
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::package::{self, Operation, PackageAnswer, PackageResult, Refusal};
#[cfg(feature = "formats")]
use provost_formats::child_package;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::show::{self, Reader};

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Package {
    /// Derive a child's package from its parent's.
    Derive(Payload),
    /// Compute the fingerprint of a package.
    Fingerprint(Payload),
    /// Check the hand-off to a child.
    Handoff(Payload),
    /// Check that a child may be started.
    Depth(Payload),
    /// Print the default policy of version 1 for the children of a package.
    #[cfg(feature = "formats")]
    Default(Parent),
    /// Run a command with what a package lets its agent do itself.
    Run(run::PackageRun),
}

#[cfg(feature = "formats")]
#[derive(Args)]
pub(super) struct Parent {
    /// A package of version 1 as JSON, or its fingerprint; `-` reads stdin.
    parent: String,
}

#[derive(Args)]
pub(super) struct Payload {
    /// The payload as JSON; `-` reads stdin.
    file: PathBuf,

    /// The rules to use: v1 is a format of others, v2 is our own and stricter.
    #[arg(long, value_enum, default_value_t = Algorithm::V2)]
    algorithm: Algorithm,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    #[cfg(feature = "formats")]
    V1,
    V2,
}

pub(super) fn run(package: Package, reader: Reader) -> Outcome {
    let (operation, payload) = match package {
        #[cfg(feature = "formats")]
        Package::Default(parent) => return default_policy(&parent.parent),
        Package::Run(run) => return run::run(run, reader),
        Package::Derive(payload) => (Operation::Derive, payload),
        Package::Fingerprint(payload) => (Operation::Fingerprint, payload),
        Package::Handoff(payload) => (Operation::Handoff, payload),
        Package::Depth(payload) => (Operation::Depth, payload),
    };
    let answered =
        read(&payload.file)?.and_then(|value| answer(operation, value, payload.algorithm));
    Ok(match answered {
        Ok(answer) => Answer::data(&answer, text(&answer)),
        Err(refusal) => refused(&refusal, payload.algorithm),
    })
}

/// The payload in `file`.
fn read(file: &Path) -> Result<Result<Value, Refusal>, Failure> {
    let bytes = input::read(file, json::LARGEST)?;
    let malformed = |error: json::ReadError| Refusal::malformed("input", error.to_string());
    Ok(json::parse(&bytes).map_err(malformed))
}

#[cfg(feature = "formats")]
fn default_policy(parent: &str) -> Outcome {
    let fingerprint = if parent.starts_with("sha256:") {
        Ok(parent.to_owned())
    } else {
        read(Path::new(parent))?.and_then(|package| child_package::fingerprint_of(&package))
    };
    let policy = fingerprint.and_then(|it| child_package::default_policy(&it));
    Ok(match policy {
        Ok(policy) => {
            let text = json::pretty(&policy).map_err(|error| Failure::of(Code::Bug, &error))?;
            Answer::data(policy, text)
        }
        Err(refusal) => refused(&refusal, Algorithm::V1),
    })
}

fn answer(
    operation: Operation,
    payload: Value,
    algorithm: Algorithm,
) -> Result<PackageAnswer, Refusal> {
    match algorithm {
        #[cfg(feature = "formats")]
        Algorithm::V1 => child_package::answer(operation, &payload),
        Algorithm::V2 => package::answer(operation, &converted(payload)?),
    }
}

/// Our rules also read packages of the other format.
#[cfg(feature = "formats")]
fn converted(mut payload: Value) -> Result<Value, Refusal> {
    if payload["parent"]["schema_version"] == 1 {
        payload["parent"] = child_package::convert(&payload)?.canonical();
    }
    Ok(payload)
}

#[cfg(not(feature = "formats"))]
#[expect(clippy::unnecessary_wraps, reason = "the other format can be refused")]
fn converted(payload: Value) -> Result<Value, Refusal> {
    Ok(payload)
}

/// A payload that breaks a rule or cannot be read: the command worked, the answer is no.
fn refused(refusal: &Refusal, algorithm: Algorithm) -> Answer {
    let json = match algorithm {
        #[cfg(feature = "formats")]
        Algorithm::V1 => child_package::render(refusal),
        Algorithm::V2 => refusal.render(None),
    };
    let field = refusal.field.as_ref().filter(|field| !field.is_empty());
    let place = field
        .map(|field| format!("`{field}`: "))
        .unwrap_or_default();
    let reason = show::one_line(&format!("{place}{}", refusal.reason));
    let mut text = format!("error[{}]: {reason}\n", refusal.code);
    for finding in &refusal.findings {
        text += &format!("  {}\n", show::one_line(finding));
    }
    text += &format!("hint: provost explain {}\n", refusal.code);
    Answer {
        exit: Exit::No,
        json,
        text,
    }
}

/// The fingerprints of the package, and what was left out.
fn text(answer: &PackageAnswer) -> String {
    match &answer.result {
        PackageResult::Fingerprint { fingerprint, .. } => show::one_line(fingerprint),
        PackageResult::Handoff { variant_name } => format!("ok: {variant_name}"),
        PackageResult::Depth { child_budget } => {
            format!("ok: the child's budget is {child_budget}")
        }
        PackageResult::Derived {
            parent_fingerprint,
            child_fingerprint,
            ..
        } => {
            let mut lines = format!("child   {}\n", show::one_line(child_fingerprint));
            lines += &format!("parent  {}\n", show::one_line(parent_fingerprint));
            for (what, why) in &answer.without {
                lines += &format!("without {}: {why}\n", show::one_line(what));
            }
            lines + "note: --json prints the package itself\n"
        }
    }
}
