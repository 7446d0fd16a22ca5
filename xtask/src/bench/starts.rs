//! Whole processes, from start to exit: runs against starts of a sandbox, small commands against a
//! program that does nothing, and many judgements against a Python library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::sample::{Sample, take_turns};
use super::{Bench, has, table, time};
use crate::Result;

/// The first trivial run on a base, which tests the base too, in starts of a sandbox.
const FIRST_RUN: f64 = 40.0;

const LATER_RUN: f64 = 25.0;

/// Verifying a bundle, in runs of `sha256sum` over its files.
const VERIFY: f64 = 3.0;

/// `provost --version`, in starts of a program that does nothing.
const VERSION: f64 = 6.0;

/// `provost check assignment`, in starts of a program that does nothing.
const CHECK: f64 = 5.0;

/// Judging an assignment, in validations by `jsonschema`: a hundred times the rate.
const JUDGE: f64 = 0.01;

/// Whole runs, the first on a base and later ones, between starts of sandboxes.
pub(super) fn runs(bench: &mut Bench) -> Result {
    let (mut first, mut later, mut sandboxes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.length.pick(5, 15) {
        let repository = bench.ground.repository()?;
        first.push(bench.ground.run(&bench.programs.provost(), &repository)?);
        later.push(bench.ground.run(&bench.programs.provost(), &repository)?);
        let start = bench
            .programs
            .example("sandbox_bench", &["5", "sandbox"], &bench.ground)?;
        sandboxes.push(start.of("sandbox").median);
    }
    let start = Sample::of(sandboxes);
    let (first, later) = (Sample::of(first), Sample::of(later));
    bench.report.judge(
        "first run on a base : sandbox start",
        first,
        start,
        FIRST_RUN,
    );
    bench.report.judge(
        "later run on a base : sandbox start",
        later,
        start,
        LATER_RUN,
    );
    Ok(())
}

/// Verifying the bundle of one run, from start to exit.
pub(super) fn verification(bench: &mut Bench) -> Result {
    let repository = bench.ground.repository()?;
    bench.ground.run(&bench.programs.provost(), &repository)?;
    let mut files = Vec::new();
    list(&repository.join(".provost/runs"), &mut files)?;
    // As a recipient has the bundle: a directory, and no repository around it.
    let elsewhere = bench.ground.fresh()?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(repository.join(".provost/runs"))
        .arg(&elsewhere)
        .status()?;
    if !copied.success() {
        return Err("the bundle cannot be copied".into());
    }
    let bundle = std::fs::read_dir(elsewhere.join("runs"))?.next();
    let bundle = bundle.ok_or("there is no bundle")??;
    let mut ours = || {
        let mut command = bench.ground.command(&bench.programs.provost(), &elsewhere);
        time(command.arg("verify").arg(bundle.path()))
    };
    let mut pinned = || {
        let mut command = bench.ground.command(&bench.programs.provost(), &repository);
        time(command.args(["verify", "last"]))
    };
    let mut sums = || time(Command::new("sha256sum").args(&files));
    let turns = bench.length.pick(20, 60);
    let measures = take_turns(turns, &mut [&mut ours, &mut pinned, &mut sums])?;
    let [ours, pinned, sums] = measures;
    bench
        .report
        .judge("verify of a bundle : sha256sum", ours, sums, VERIFY);
    bench
        .report
        .tell("the same where it was sealed", pinned, sums);
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Commands that do little, so that their start dominates.
pub(super) fn commands(bench: &mut Bench) -> Result {
    let mut version = || time(Command::new(bench.programs.provost()).arg("--version"));
    let mut check = || {
        let mut command = Command::new(bench.programs.provost());
        time(command.args(["check", "assignment"]).arg(payload()))
    };
    let mut bare = || time(&mut Command::new("/bin/true"));
    let measures = take_turns(
        bench.length.pick(40, 200),
        &mut [&mut version, &mut check, &mut bare],
    )?;
    let [version, check, bare] = measures;
    bench
        .report
        .judge("provost --version : true", version, bare, VERSION);
    bench
        .report
        .judge("provost check assignment : true", check, bare, CHECK);
    Ok(())
}

/// One assignment, judged repeatedly.
pub(super) fn judgements(bench: &mut Bench) -> Result {
    let name = "judging an assignment : jsonschema";
    if !has("python3", &["-c", "import jsonschema"]) {
        bench
            .report
            .skip(name, "there is no python3 with jsonschema");
        return Ok(());
    }
    let mut ours = || {
        let measured = bench
            .programs
            .example("assignment_bench", &[], &bench.ground)?;
        Ok(measured.of("assignment").median)
    };
    let mut theirs = || {
        let mut command = Command::new("python3");
        command.args(["-c", include_str!("assignment.py")]);
        command.arg(payload()).arg(schema()).arg("200");
        let output = command.output()?;
        let measured = table::parse(&String::from_utf8_lossy(&output.stdout));
        Ok(measured.of("jsonschema").median)
    };
    let [ours, theirs] = take_turns(bench.length.pick(5, 15), &mut [&mut ours, &mut theirs])?;
    bench.report.judge(name, ours, theirs, JUDGE);
    Ok(())
}

fn payload() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../tests/corpus/contracts/assignment_ok_serial.json")
}

fn schema() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/assignment.schema.json")
}
