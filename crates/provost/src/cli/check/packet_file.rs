//! `provost check task-card` and similar: checks one file of a control packet by itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use provost_core::json;
use provost_formats::packet::Strictness;
use provost_formats::packet::alone::{self, File};

use crate::answer::Outcome;
use crate::input;

#[derive(Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum PacketFile {
    /// Check that a task card is valid by itself.
    TaskCard(OneFile),
    /// Check that an executor report is valid by itself.
    ExecutorReport(OneFile),
    /// Check that a validator report is valid by itself.
    ValidatorReport(OneFile),
    /// Check that a snapshot of a workspace is valid by itself.
    WorkspaceSnapshot(OneFile),
    /// Check that a log of acceptance commands is valid by itself.
    AcceptanceLog(OneFile),
}

#[derive(Args)]
pub(in crate::cli) struct OneFile {
    /// The file; `-` reads stdin.
    file: PathBuf,

    /// Also refuse what the format permits but a careful reader would not accept.
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
        Strictness::Strict
    } else {
        Strictness::Literal
    };
    Ok(alone::check(kind, &bytes, profile).into())
}
