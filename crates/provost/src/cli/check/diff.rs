//! `provost check diff`: checks that the changes in a checkout are inside a scope.

use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::gate::diff::{Permit, Rules};
use provost_core::json;
use provost_core::protect::Extra;
use provost_core::scope::{self, Scope};
use provost_host::git::GitError;
use provost_host::inspect::{self, InspectError, Request};
use provost_host::snapshot::{Snapshot, SnapshotError};

use crate::answer::{Failure, Outcome};
use crate::input;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Committed, staged and unstaged files are all judged, and so are files that git ignores. With
--before the git directory is judged too. `.provost` at the top of the checkout is skipped if the
snapshot contains it; without a snapshot all of it is refused, because its author is unknown.

Example, around the work of an agent in a checkout of its own:
  provost snapshot --control ../work --out before.json
  provost check diff --worktree ../work --before before.json --base main --allow src")]
pub(in crate::cli) struct CheckDiff {
    /// The commit that the work started from: a full id, or a ref that the snapshot contains.
    #[arg(long, value_name = "COMMIT")]
    base: String,

    /// The checkout to judge.
    #[arg(long, value_name = "DIR")]
    worktree: PathBuf,

    /// A snapshot of the git directory from before the work (`provost snapshot --control`).
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,

    /// A path that may be changed; repeat for more.
    #[arg(long, value_name = "PATH", required = true)]
    allow: Vec<String>,

    /// A path that may not be changed, even inside an allowed path.
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,

    /// A path that may hold content that is not text.
    #[arg(long, value_name = "PATH")]
    allow_binary: Vec<String>,

    /// A protected file that decides what passing means and that may change.
    #[arg(long, value_name = "PATH")]
    permit_oracle: Vec<String>,

    /// A protected file that instructs agents and that may change.
    #[arg(long, value_name = "PATH")]
    permit_governing: Vec<String>,

    /// A path that may be a symbolic link.
    #[arg(long, value_name = "PATH")]
    permit_symlink: Vec<String>,

    /// Write the patch from the base to the files on disk to this file.
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
}

pub(super) fn run(check: &CheckDiff) -> Outcome {
    let lists = [
        &check.allow,
        &check.forbid,
        &check.allow_binary,
        &check.permit_oracle,
        &check.permit_governing,
        &check.permit_symlink,
    ];
    let mut scopes = Vec::new();
    for list in lists {
        match Scope::parse(list) {
            Ok(scope) => scopes.push(scope),
            Err(_) => return Ok(scope::judge(list).into()),
        }
    }
    let mut scopes = scopes.into_iter();
    let mut next = || scopes.next().unwrap_or_default();
    let (allow, forbid) = (next(), next());
    let permit = Permit {
        binary: next(),
        oracle: next(),
        governing: next(),
        symlink: next(),
    };
    let before = match &check.before {
        Some(file) => Some(read_snapshot(file)?),
        None => None,
    };
    let request = Request {
        base: &check.base,
        worktree: &check.worktree,
        before: before.as_ref(),
        rules: Rules {
            scope: &allow,
            forbid: &forbid,
            permit: &permit,
            extra: &Extra::default(),
        },
    };
    let inspection = inspect::inspect(&request).map_err(|error| failure(&error))?;
    if let (Some(file), Some(patch)) = (&check.patch, &inspection.patch) {
        output::write(file, patch)?;
    }
    Ok(inspection.verdict.into())
}

fn read_snapshot(file: &std::path::Path) -> Result<Snapshot, Failure> {
    let bytes = input::read(file, json::LARGEST)?;
    Snapshot::parse(&bytes).map_err(|error| {
        Failure::of(Code::InputInvalid, &error)
            .hint("make it with `provost snapshot --control DIR`, before the work begins")
    })
}

fn failure(error: &InspectError) -> Failure {
    let code = match error {
        InspectError::Snapshot(SnapshotError::NoCheckout(_)) => Code::NotARepository,
        InspectError::Git(GitError::NoProgram) => Code::GitMissing,
        InspectError::Git(_) => Code::GitFailed,
        InspectError::Snapshot(_) | InspectError::Capture(_) | InspectError::Scratch(_) => {
            Code::HostFailed
        }
    };
    Failure::of(code, error)
}
