//! `provost snapshot`: records the files of a git directory that steer git.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::wording::counted;
use provost_host::snapshot::{Snapshot, SnapshotError};
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};

#[derive(Args)]
#[command(
    after_help = "Example, around the work of an agent in a checkout of its own:
  provost snapshot --control ../work --out before.json
  provost check diff --worktree ../work --before before.json --base main --allow src"
)]
pub(super) struct TakeSnapshot {
    /// The checkout whose git directory is recorded.
    #[arg(long, value_name = "DIR")]
    control: PathBuf,

    /// Where to write it: a place that the agent cannot write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(super) fn run(take: &TakeSnapshot) -> Outcome {
    let snapshot = Snapshot::take(&take.control).map_err(|error| {
        let code = match error {
            SnapshotError::NoCheckout(_) => Code::NotARepository,
            _ => Code::HostFailed,
        };
        Failure::of(code, &error)
    })?;
    let text = format!("{:#}\n", snapshot.render());
    fs::write(&take.out, text).map_err(|error| {
        let reason = format!("cannot write `{}`: {error}", take.out.display());
        Failure::new(Code::HostFailed, reason)
    })?;
    let (files, refs) = (snapshot.files.len(), snapshot.refs.all.len());
    let json = json!({ "out": take.out.display().to_string(), "files": files, "refs": refs });
    let words = format!(
        "recorded {} and {}",
        counted(files, "control file"),
        counted(refs, "ref")
    );
    Ok(Answer::data(json, words))
}
