//! Measures what must stay fast, each thing against a baseline of the same minute.
//!
//! Bare times say more about the machine than about us, so only ratios are judged, made of medians
//! of measures that took turns. A baseline that is missing is named and judges nothing, unless
//! `PROVOST_TEST_REQUIRE=all` asks for everything.

mod ground;
mod table;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ground::Ground;
pub use table::{Report, Row};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Enough for CI; the limits are half as wide again.
    Quick,
    /// Enough to compare two versions.
    Full,
}

/// Why there is nothing to report.
#[derive(Debug)]
pub struct BenchError(String);

impl std::fmt::Display for BenchError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<std::io::Error> for BenchError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The start of a box, in starts of bubblewrap.
const BOX_START: f64 = 0.7;

/// A durable append, in bare writes with a sync: four fifths of the rate.
const APPEND: f64 = 1.25;

/// A whole trivial run, in starts of a box.
const RUN: f64 = 40.0;

/// `provost --version`, in starts of a program that does nothing.
const VERSION: f64 = 6.0;

/// The programs that are measured, in one directory.
struct Programs {
    directory: PathBuf,
}

/// Builds everything for release and measures it.
pub fn run(length: Length) -> Result<Report, BenchError> {
    let programs = Programs::build()?;
    let quick = length == Length::Quick;
    let mut report = Report::new(if quick { 1.5 } else { 1.0 });
    let turns = if quick { 40 } else { 200 };
    let ground = Ground::new()?;

    let boxes = programs.example("box_bench", &[&turns.to_string()], &ground)?;
    if boxes.has("bubblewrap") {
        let bubblewrap = boxes.of("bubblewrap");
        report.judge(
            "box start : bubblewrap",
            boxes.of("box"),
            bubblewrap,
            BOX_START,
        );
        let (ours, theirs) = (boxes.of("box-work"), boxes.of("bubblewrap-work"));
        report.tell("box start : bubblewrap, work only", ours, theirs);
    } else {
        report.skip("box start : bubblewrap", "there is no bwrap");
    }
    report.tell("box start : bare start", boxes.of("box"), boxes.of("bare"));
    report.tell(
        "self-test of a box : box start",
        boxes.of("selftest"),
        boxes.of("box"),
    );

    let here = ground.path().display().to_string();
    let count = if quick { "200" } else { "1000" };
    let appends = programs.example("append_bench", &[&here, count], &ground)?;
    report.judge(
        "append : write+fdatasync",
        appends.of("append"),
        appends.of("write+fdatasync"),
        APPEND,
    );

    runs(&programs, &ground, quick, &mut report)?;
    version(&programs, quick, &mut report)?;

    let files = if quick { 5_000 } else { 50_000 };
    let checkout = ground.checkout_of(files)?;
    let turns = if quick { "3" } else { "5" };
    let captures = programs.example("capture_bench", &[&checkout, turns], &ground)?;
    let name = format!("capture of {files} files : git status");
    report.tell(&name, captures.of("capture"), captures.of("git-status"));
    workspaces::measure(&programs, &ground, files, &mut report)?;
    Ok(report)
}

/// Whole runs, the first on a base and later ones, between starts of boxes.
fn runs(
    programs: &Programs,
    ground: &Ground,
    quick: bool,
    report: &mut Report,
) -> Result<(), BenchError> {
    let (mut first, mut later, mut boxes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if quick { 5 } else { 15 } {
        let repository = ground.repository()?;
        first.push(ground.run(&programs.provost(), &repository)?);
        later.push(ground.run(&programs.provost(), &repository)?);
        boxes.push(programs.example("box_bench", &["5"], ground)?.of("box"));
    }
    let start = median(boxes);
    report.judge("first run on a base : box start", median(first), start, RUN);
    report.judge("later run on a base : box start", median(later), start, RUN);
    Ok(())
}

fn version(programs: &Programs, quick: bool, report: &mut Report) -> Result<(), BenchError> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..if quick { 40 } else { 200 } {
        ours.push(time(Command::new(programs.provost()).arg("--version"))?);
        bare.push(time(&mut Command::new("/bin/true"))?);
    }
    report.judge(
        "provost --version : bare start",
        median(ours),
        median(bare),
        VERSION,
    );
    Ok(())
}

impl Programs {
    fn build() -> Result<Self, BenchError> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let targets: [&[&str]; 3] = [
            &["-p", "provost", "--bin", "provost"],
            &[
                "-p",
                "provost-host",
                "--example",
                "box_bench",
                "--example",
                "capture_bench",
                "--example",
                "workspace_bench",
            ],
            &["-p", "provost-store", "--example", "append_bench"],
        ];
        // One package at a time: together they would share features that only tests ask for.
        for target in targets {
            let status = Command::new(&cargo)
                .args(["build", "--quiet", "--release"])
                .args(target)
                .status()?;
            if !status.success() {
                return Err(BenchError(
                    "the programs to measure do not build".to_owned(),
                ));
            }
        }
        let own = std::env::current_exe()?;
        let target = own.parent().and_then(Path::parent);
        let target = target.ok_or_else(|| BenchError("no target directory".to_owned()))?;
        Ok(Self {
            directory: target.join("release"),
        })
    }

    fn provost(&self) -> PathBuf {
        self.directory.join("provost")
    }

    /// Runs one of the examples, and reads the measures it prints.
    fn example(
        &self,
        name: &str,
        arguments: &[&str],
        ground: &Ground,
    ) -> Result<table::Measures, BenchError> {
        let output = Command::new(self.directory.join("examples").join(name))
            .args(arguments)
            .current_dir(ground.path())
            .output()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(BenchError(format!("{name}: {}", words.trim())));
        }
        Ok(table::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// How long a command takes, in microseconds; it has to succeed.
fn time(command: &mut Command) -> Result<f64, BenchError> {
    let begin = Instant::now();
    let output = command.output()?;
    let elapsed = begin.elapsed();
    if output.status.success() {
        return Ok(micros(elapsed));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(BenchError(format!(
        "{}: {words}",
        command.get_program().display()
    )))
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
