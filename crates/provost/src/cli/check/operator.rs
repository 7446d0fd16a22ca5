//! `provost check assignment` and fourteen more: the payloads of the operator contracts.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::json;
use provost_core::verdict::Verdict;
use provost_formats::operator::{self, Kind, Strictness, Surroundings};
use provost_fs::beneath;

use crate::answer::{Failure, Outcome};
use crate::input;

#[derive(Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum Operator {
    /// Check that a task can be assigned to a worker.
    Assignment(Payload),
    /// Check that the result of a worker is valid; JSON, or Markdown with front matter.
    Result(Payload),
    /// Check that the output of a planner round is valid.
    OrchestratorOutput(Payload),
    /// Check that the log of a task is valid.
    Worklog(Worklog),
    /// Check that lines were only appended to a log.
    WorklogAppend(Payload),
    /// Check that a hand-off bundle is valid.
    Handoff(Payload),
    /// Check that a batch of deltas can be applied to a board.
    LedgerDelta(Payload),
    /// Check that the batches of several writers can be applied to a board.
    LedgerDeltaStreams(Payload),
    /// Check that locks of different tasks do not overlap.
    Locks(Payload),
    /// Replay a sequence of acquired and released locks, and check it.
    LockLifecycle(Payload),
    /// Check that the rows, locks and events of a board are consistent.
    Reconcile(Payload),
    /// Check that a task may change from one state to another.
    Transition(Payload),
    /// Check that every task in progress sent a heartbeat in time.
    Watchdog(Payload),
    /// Check that a result stays inside the scope of its task.
    PostExecution(Payload),
    /// Check that a task may be marked as done.
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

    /// The log itself, one entry per line.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    lines: Option<PathBuf>,

    /// How the task ended: done, blocked, failed or canceled; without it, it is in progress.
    #[arg(long, value_name = "STATUS", requires = "lines")]
    outcome: Option<String>,

    #[command(flatten)]
    profile: Profile,
}

#[derive(Args)]
struct Profile {
    /// Also refuse unknown fields, and what the format permits but cannot be intended.
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
    if let Some(file) = &worklog.lines {
        return judge(file, |bytes| {
            operator::lines(bytes, worklog.outcome.as_deref(), profile.strictness())
        });
    }
    let Some(file) = &worklog.file else {
        return Err(Failure::new(Code::UsageError, "no worklog is named"));
    };
    judge(file, |bytes| check_payload(Kind::Worklog, bytes, profile))
}

fn check_payload(kind: Kind, bytes: &[u8], profile: &Profile) -> Verdict {
    let file_exists = |path: &str| beneath::open_file(Path::new(path)).is_ok();
    let surroundings = Surroundings {
        file_exists: &file_exists,
    };
    operator::check(kind, bytes, profile.strictness(), surroundings)
}

/// Judges the bytes of `file`; one that is too large is refused by a verdict, a missing file is a
/// failure.
fn judge(file: &Path, judge: impl FnOnce(&[u8]) -> Verdict) -> Outcome {
    match input::read(file, json::LARGEST) {
        Ok(bytes) => Ok(judge(&bytes).into()),
        Err(failure) if failure.code == Code::InputTooLarge => {
            Ok(operator::unreadable(&failure.reason).into())
        }
        Err(failure) => Err(failure),
    }
}
