//! `provost package`: derives and checks the packages of agents and their children.
//!
//! With `--json` the answer is the object that the format defines, not a verdict.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::package::{self, Operation, Refusal};
#[cfg(feature = "formats")]
use provost_formats::child_package;
use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::input;
use crate::show;

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

pub(super) fn run(package: &Package) -> Outcome {
    let (operation, payload) = match package {
        Package::Derive(payload) => (Operation::Derive, payload),
        Package::Fingerprint(payload) => (Operation::Fingerprint, payload),
        Package::Handoff(payload) => (Operation::Handoff, payload),
        Package::Depth(payload) => (Operation::Depth, payload),
    };
    let bytes = input::read(&payload.file, json::LARGEST)?;
    let answered = json::parse(&bytes)
        .map_err(|error| Refusal::malformed("input", error.to_string()))
        .and_then(|value| answer(operation, value, payload.algorithm));
    Ok(match answered {
        Ok(value) => Answer::data(value.clone(), words(operation, &value)),
        Err(refusal) => refused(&refusal, payload.algorithm),
    })
}

fn answer(operation: Operation, payload: Value, algorithm: Algorithm) -> Result<Value, Refusal> {
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
        Algorithm::V2 => refusal.render(),
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

/// The text answer: the fingerprints of the package, and what was left out.
fn words(operation: Operation, answer: &Value) -> String {
    let text = |value: &Value| show::one_line(value.as_str().unwrap_or_default());
    match operation {
        Operation::Fingerprint => text(&answer["fingerprint"]),
        Operation::Handoff => format!("ok: {}", text(&answer["variant_name"])),
        Operation::Depth => format!("ok: the child's budget is {}", answer["child_budget"]),
        Operation::Derive => {
            let mut lines = format!("child   {}\n", text(&answer["child_fingerprint"]));
            lines += &format!("parent  {}\n", text(&answer["parent_fingerprint"]));
            let rows = answer["stripped"].as_array();
            for row in rows.into_iter().flatten() {
                let what = row["id"].as_str().or(row["axis"].as_str());
                let what = show::one_line(what.unwrap_or_default());
                lines += &format!("without {what}: {}\n", why(&text(&row["reason"])));
            }
            let ids = answer["strip_manifest"]["stripped_capability_ids"].as_array();
            for id in ids.into_iter().flatten() {
                let why = "it starts children, or the request's tool policy leaves it out";
                lines += &format!("without {}: {why}\n", text(id));
            }
            lines + "note: --json prints the package itself\n"
        }
    }
}

/// A reason word of the format, in words.
fn why(reason: &str) -> &str {
    match reason {
        "no_child_left" => "it starts children, and the child may start none",
        "read_only" => {
            "the request asks for reading only, and it does more or is not pinned by a digest"
        }
        "no_tools" => "the request asks for no tools",
        "not_listed" => "the request does not list it",
        other => other,
    }
}
