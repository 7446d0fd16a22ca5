//! Whole processes, from start to exit: runs against starts of a sandbox, small commands against a
//! program that does nothing, and many judgements against a Python library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::sample::{Sample, take_turns};
use super::{BenchError, Ground, Length, Programs, Report, has, table, time};

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
pub(super) fn runs(
    programs: &Programs,
    ground: &Ground,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let (mut first, mut later, mut sandboxes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..length.pick(5, 15) {
        let repository = ground.repository()?;
        first.push(ground.run(&programs.provost(), &repository)?);
        later.push(ground.run(&programs.provost(), &repository)?);
        let start = programs.example("sandbox_bench", &["5", "sandbox"], ground)?;
        sandboxes.push(start.of("sandbox").median);
    }
    let start = Sample::of(sandboxes);
    let (first, later) = (Sample::of(first), Sample::of(later));
    report.judge(
        "first run on a base : sandbox start",
        first,
        start,
        FIRST_RUN,
    );
    report.judge(
        "later run on a base : sandbox start",
        later,
        start,
        LATER_RUN,
    );
    Ok(())
}

/// Verifying the bundle of one run, from start to exit.
pub(super) fn verification(
    programs: &Programs,
    ground: &Ground,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let repository = ground.repository()?;
    ground.run(&programs.provost(), &repository)?;
    let mut files = Vec::new();
    list(&repository.join(".provost/runs"), &mut files)?;
    // As a recipient has the bundle: a directory, and no repository around it.
    let elsewhere = ground.fresh()?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(repository.join(".provost/runs"))
        .arg(&elsewhere)
        .status()?;
    if !copied.success() {
        return Err(BenchError("the bundle cannot be copied".to_owned()));
    }
    let bundle = std::fs::read_dir(elsewhere.join("runs"))?.next();
    let bundle = bundle.ok_or_else(|| BenchError("there is no bundle".to_owned()))??;
    let mut ours = || {
        let mut command = ground.command(&programs.provost(), &elsewhere);
        time(command.arg("verify").arg(bundle.path()))
    };
    let mut pinned = || {
        let mut command = ground.command(&programs.provost(), &repository);
        time(command.args(["verify", "last"]))
    };
    let mut sums = || time(Command::new("sha256sum").args(&files));
    let turns = length.pick(20, 60);
    let measures = take_turns(turns, &mut [&mut ours, &mut pinned, &mut sums])?;
    let [ours, pinned, sums] = measures;
    report.judge("verify of a bundle : sha256sum", ours, sums, VERIFY);
    report.tell("the same where it was sealed", pinned, sums);
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), BenchError> {
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
pub(super) fn commands(
    programs: &Programs,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let mut version = || time(Command::new(programs.provost()).arg("--version"));
    let mut check = || {
        let mut command = Command::new(programs.provost());
        time(command.args(["check", "assignment"]).arg(payload()))
    };
    let mut bare = || time(&mut Command::new("/bin/true"));
    let measures = take_turns(
        length.pick(40, 200),
        &mut [&mut version, &mut check, &mut bare],
    )?;
    let [version, check, bare] = measures;
    report.judge("provost --version : true", version, bare, VERSION);
    report.judge("provost check assignment : true", check, bare, CHECK);
    Ok(())
}

/// One assignment, judged repeatedly.
pub(super) fn judgements(
    programs: &Programs,
    ground: &Ground,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let name = "judging an assignment : jsonschema";
    if !has("python3", &["-c", "import jsonschema"]) {
        report.skip(name, "there is no python3 with jsonschema");
        return Ok(());
    }
    let mut ours = || {
        let measured = programs.example("assignment_bench", &[], ground)?;
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
    let [ours, theirs] = take_turns(length.pick(5, 15), &mut [&mut ours, &mut theirs])?;
    report.judge(name, ours, theirs, JUDGE);
    Ok(())
}

fn payload() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../tests/corpus/contracts/assignment_ok_serial.json")
}

fn schema() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/assignment.schema.json")
}
