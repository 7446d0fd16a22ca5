//! Workspaces of a large base, and their capture.

use super::Bench;
use super::sample::Sample;
use crate::Result;

/// An overlay workspace on a warm base, in calls of `git worktree add`.
const WORKSPACE: f64 = 0.02;

/// A capture after twenty edits, in calls of `git status`.
const CAPTURE: f64 = 0.3;

/// A whole run on a warm base, in calls of `git worktree add`.
const RUN: f64 = 0.1;

/// From this many files on that is judged; in a smaller base, starts of git dominate both.
const LARGE: usize = 50_000;

/// Measures a base of `files` files.
pub(super) fn measure(bench: &mut Bench, files: usize) -> Result {
    let checkout = bench.ground.checkout_of(files)?;
    let scratch = bench.ground.fresh()?.display().to_string();
    let found = bench.programs.example(
        "workspace_bench",
        &[&checkout, &scratch, "3"],
        &bench.ground,
    )?;
    let (workspace, added) = (found.of("workspace"), found.of("worktree-add"));
    let name = format!("workspace of {files} files : worktree");
    bench.report.judge(&name, workspace, added, WORKSPACE);
    bench.report.tell(
        "the same with a sandbox : worktree",
        found.of("workspace-box"),
        added,
    );
    bench
        .report
        .tell("the same as a copy : worktree", found.of("copy"), added);
    let name = format!("run on {files} files : worktree");
    let provost = bench.programs.provost();
    bench.ground.run(&provost, checkout.as_ref())?;
    let runs: Result<Vec<f64>> = (0..3)
        .map(|_| bench.ground.run(&provost, checkout.as_ref()))
        .collect();
    let run = Sample::of(runs?);
    if files >= LARGE {
        bench.report.judge(&name, run, added, RUN);
    } else {
        bench.report.tell(&name, run, added);
    }
    let (capture, status) = (found.of("capture"), found.of("git-status"));
    let name = "capture of 20 edits : git status";
    if files >= LARGE {
        bench.report.judge(name, capture, status, CAPTURE);
    } else {
        bench.report.tell(name, capture, status);
    }
    Ok(())
}
