//! `provost check task-card` and its relatives: one file of a control packet, by itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use provost_core::json;
use provost_formats::packet::Profile;
use provost_formats::packet::alone::{self, File};

use crate::answer::Outcome;
use crate::input;

#[derive(Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum PacketFile {
    /// Whether a task card holds by itself.
    TaskCard(OneFile),
    /// Whether an executor report holds by itself.
    ExecutorReport(OneFile),
    /// Whether a validator report holds by itself.
    ValidatorReport(OneFile),
    /// Whether a snapshot of a workspace holds by itself.
    WorkspaceSnapshot(OneFile),
    /// Whether a log of acceptance commands holds by itself.
    AcceptanceLog(OneFile),
}

#[derive(Args)]
pub(in crate::cli) struct OneFile {
    /// The file; `-` reads stdin.
    file: PathBuf,

    /// Refuse what the text of the format permits and a careful reader would not.
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(check: &PacketFile) -> Outcome {
    let (kind, one) = match check {
        PacketFile::TaskCard(one) => (File::TaskCard, one),
        PacketFile::ExecutorReport(one) => (File::ExecutorReport, one),
        PacketFile::ValidatorReport(one) => (File::ValidatorReport, one),
        PacketFile::WorkspaceSnapshot(one) => (File::Snapshot, one),
        PacketFile::AcceptanceLog(one) => (File::AcceptanceLog, one),
    };
    let bytes = input::read(&one.file, json::LARGEST)?;
    let profile = if one.strict {
        Profile::Strict
    } else {
        Profile::Literal
    };
    Ok(alone::check(kind, &bytes, profile).into())
}
