//! `provost check assignment` and its fourteen relatives: the payloads of the operator contracts.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::json;
use provost_core::verdict::Verdict;
use provost_formats::operator::{self, Kind, Strictness, Surroundings};

use crate::answer::{Failure, Outcome};
use crate::input;

#[derive(Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum Operator {
    /// Say whether a task can be handed to a worker.
    Assignment(Payload),
    /// Say whether what a worker reports holds; JSON, or Markdown with front matter.
    Result(Payload),
    /// Say whether what the planner decided in one round holds.
    OrchestratorOutput(Payload),
    /// Say whether the log of a task holds.
    Worklog(Worklog),
    /// Say whether lines were only added to a log.
    WorklogAppend(Payload),
    /// Say whether a hand-off bundle holds.
    Handoff(Payload),
    /// Say whether a batch of changes can be applied to a board.
    LedgerDelta(Payload),
    /// Say whether the batches of several writers can be applied to a board.
    LedgerDeltaStreams(Payload),
    /// Say whether locks of different tasks overlap.
    Locks(Payload),
    /// Say what comes of locks that are taken and released in order.
    LockLifecycle(Payload),
    /// Say whether the rows, locks and events of a board fit together.
    Reconcile(Payload),
    /// Say whether a task may go from one state to another.
    Transition(Payload),
    /// Say whether every task in progress gave a sign of life in time.
    Watchdog(Payload),
    /// Say whether a result stays inside what its task may touch.
    PostExecution(Payload),
    /// Say whether a task may count as done.
    PreComplete(Payload),
}

#[derive(Args)]
pub(in crate::cli) struct Payload {
    /// The payload; `-` reads stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    profile: Profile,
}

#[derive(Args)]
pub(in crate::cli) struct Worklog {
    /// The payload; `-` reads stdin.
    #[arg(value_name = "FILE", required_unless_present = "lines")]
    file: Option<PathBuf>,

    /// The log itself, one entry a line.
    #[arg(
        long,
        value_name = "FILE",
        requires = "outcome",
        conflicts_with = "file"
    )]
    lines: Option<PathBuf>,

    /// How the task ended: done, blocked, failed or canceled.
    #[arg(long, value_name = "STATUS", requires = "lines")]
    outcome: Option<String>,

    #[command(flatten)]
    profile: Profile,
}

#[derive(Args)]
struct Profile {
    /// Refuse unknown fields, and what the letter lets pass although it cannot be meant.
    #[arg(long)]
    strict: bool,
}

impl Profile {
    fn strictness(&self) -> Strictness {
        if self.strict {
            Strictness::Strict
        } else {
            Strictness::Literal
        }
    }
}

pub(super) fn run(check: &Operator) -> Outcome {
    let (kind, payload) = match check {
        Operator::Assignment(payload) => (Kind::Assignment, payload),
        Operator::Result(payload) => (Kind::Result, payload),
        Operator::OrchestratorOutput(payload) => (Kind::OrchestratorOutput, payload),
        Operator::Worklog(worklog) => return check_worklog(worklog),
        Operator::WorklogAppend(payload) => (Kind::WorklogAppend, payload),
        Operator::Handoff(payload) => (Kind::Handoff, payload),
        Operator::LedgerDelta(payload) => (Kind::LedgerDelta, payload),
        Operator::LedgerDeltaStreams(payload) => (Kind::LedgerDeltaStreams, payload),
        Operator::Locks(payload) => (Kind::Locks, payload),
        Operator::LockLifecycle(payload) => (Kind::LockLifecycle, payload),
        Operator::Reconcile(payload) => (Kind::Reconcile, payload),
        Operator::Transition(payload) => (Kind::Transition, payload),
        Operator::Watchdog(payload) => (Kind::Watchdog, payload),
        Operator::PostExecution(payload) => (Kind::PostExecution, payload),
        Operator::PreComplete(payload) => (Kind::PreComplete, payload),
    };
    judge(&payload.file, |bytes| {
        check_payload(kind, bytes, &payload.profile)
    })
}

fn check_worklog(worklog: &Worklog) -> Outcome {
    let profile = &worklog.profile;
    if let (Some(file), Some(outcome)) = (&worklog.lines, &worklog.outcome) {
        return judge(file, |bytes| {
            operator::lines(bytes, outcome, profile.strictness())
        });
    }
    let Some(file) = &worklog.file else {
        return Err(Failure::new(Code::UsageError, "no worklog is named"));
    };
    judge(file, |bytes| check_payload(Kind::Worklog, bytes, profile))
}

fn check_payload(kind: Kind, bytes: &[u8], profile: &Profile) -> Verdict {
    let file_exists = |path: &str| fs::metadata(path).is_ok_and(|entry| entry.is_file());
    let surroundings = Surroundings {
        file_exists: &file_exists,
    };
    operator::check(kind, bytes, profile.strictness(), surroundings)
}

/// Judges the bytes of `file`; more than are read is an answer too, a file that is not there is
/// not.
fn judge(file: &Path, judge: impl FnOnce(&[u8]) -> Verdict) -> Outcome {
    match input::read(file, json::LARGEST) {
        Ok(bytes) => Ok(judge(&bytes).into()),
        Err(failure) if failure.code == Code::InputTooLarge => {
            Ok(operator::unreadable(&failure.reason).into())
        }
        Err(failure) => Err(failure),
    }
}
