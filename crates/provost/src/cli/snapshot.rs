//! `provost snapshot`: records the files of a workspace, or the files of a git directory that
//! control git.

#[cfg(feature = "formats")]
mod workspace;

#[cfg(feature = "formats")]
pub(super) use workspace::of;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::wording::counted;
use provost_host::snapshot::{Snapshot, SnapshotError};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::output;

#[derive(Args)]
#[command(
    after_help = "Example, around the work of an agent in a checkout of its own:
  provost snapshot --control ../work --out before.json
  provost check diff --worktree ../work --before before.json --base main --allow src"
)]
pub(super) struct TakeSnapshot {
    /// The workspace to record [default: the current directory].
    #[cfg(feature = "formats")]
    #[arg(value_name = "DIR", conflicts_with = "control")]
    directory: Option<PathBuf>,

    /// Record the git directory of this checkout instead.
    #[arg(long, value_name = "DIR", requires = "out", required = cfg!(not(feature = "formats")))]
    control: Option<PathBuf>,

    /// The file to write, at a place that the agent cannot write.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// An earlier snapshot of the workspace; changes since then are printed.
    #[cfg(feature = "formats")]
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    before: Option<PathBuf>,
}

pub(super) fn run(take: &TakeSnapshot) -> Outcome {
    if let (Some(control), Some(out)) = (&take.control, &take.out) {
        return record_control(control, out);
    }
    workspace(take)
}

#[cfg(feature = "formats")]
fn workspace(take: &TakeSnapshot) -> Outcome {
    let directory = take.directory.as_deref().unwrap_or(Path::new("."));
    workspace::run(directory, take.out.as_deref(), take.before.as_deref())
}

#[cfg(not(feature = "formats"))]
fn workspace(_: &TakeSnapshot) -> Outcome {
    let reason = "this program is built without the formats of others";
    Err(Failure::new(Code::UsageError, reason).hint("name a checkout with --control"))
}

fn record_control(control: &Path, out: &Path) -> Outcome {
    let snapshot = Snapshot::take(control).map_err(|error| {
        let code = match error {
            SnapshotError::NoCheckout(_) => Code::NotARepository,
            _ => Code::HostFailed,
        };
        Failure::of(code, &error)
    })?;
    write(out, &format!("{:#}\n", snapshot.render()))?;
    let recorded = RecordedControl {
        out: out.display().to_string(),
        files: snapshot.files.len(),
        refs: snapshot.refs.all.len(),
    };
    Ok(recorded.into())
}

#[derive(Serialize)]
struct RecordedControl {
    out: String,
    files: usize,
    refs: usize,
}

impl Answered for RecordedControl {
    fn text(&self) -> String {
        let files = counted(self.files, "control file");
        format!("recorded {files} and {}", counted(self.refs, "ref"))
    }
}

pub(super) fn write(out: &Path, text: &str) -> Result<(), Failure> {
    output::unlinked(out)?;
    // Without O_NONBLOCK, opening a fifo waits for a reader that may never come.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(true).custom_flags(flags);
    let written = options.open(out).and_then(|mut file| {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| {
        let reason = format!("cannot write `{}`: {error}", out.display());
        Failure::new(Code::HostFailed, reason)
    })
}
