//! Measures what must stay fast, each measure against a baseline of the same minute.
//!
//! Bare times say more about the machine than about Provost. So only ratios are judged, of medians
//! of alternating measures. A missing baseline is reported and judges nothing, unless
//! `PROVOST_TEST_REQUIRE=all` requires everything.

mod agents;
mod ground;
mod peer;
mod proxy;
mod sample;
mod snapshot;
mod starts;
mod structure;
mod table;
mod talk;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ground::Ground;
pub use sample::Sample;
use sample::micros;
pub use table::{Report, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Enough for CI; the limits are half as wide again.
    Quick,
    /// Enough to compare two versions.
    Full,
}

impl Length {
    fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
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

/// The start of a sandbox, in starts of bubblewrap.
const BOX_START: f64 = 0.6;

/// The start of a sandbox, in starts of a program that does nothing.
const BARE_START: f64 = 6.0;

/// A durable append, in bare writes with a sync: four fifths of the rate.
const APPEND: f64 = 1.25;

/// The programs that are measured, in one directory.
struct Programs {
    directory: PathBuf,
}

/// After this time a snapshot trusts the stat data of new files.
const SETTLED: Duration = Duration::from_secs(3);

/// Builds everything as it is installed, and measures it.
pub fn run(length: Length) -> Result<Report, BenchError> {
    let programs = Programs::build()?;
    let mut report = Report::new(length.pick(1.5, 1.0));
    let ground = Ground::new()?;
    report.say(&format!("begun with {}", load()));

    sandboxes(&programs, &ground, length, &mut report)?;
    let here = ground.path().display().to_string();
    let appends = programs.example(
        "append_bench",
        &[&here, length.pick("200", "1000")],
        &ground,
    )?;
    report.judge(
        "append : write+fdatasync",
        appends.of("append"),
        appends.of("write+fdatasync"),
        APPEND,
    );
    starts::runs(&programs, &ground, length, &mut report)?;
    starts::verification(&programs, &ground, length, &mut report)?;
    starts::commands(&programs, length, &mut report)?;
    starts::judgements(&programs, &ground, length, &mut report)?;
    agents::server(&programs, &ground, length, &mut report)?;
    agents::hook(&programs, &ground, length, &mut report)?;
    agents::unbound_ref(&programs, &ground, length, &mut report)?;
    proxy::measure(&programs, &ground, length, &mut report)?;

    let files = length.pick(5_000, 50_000);
    report.say(&format!("snapshots and capture of {files} files"));
    let checkout = ground.checkout_of(files)?;
    std::thread::sleep(SETTLED);
    snapshot::measure(
        &programs,
        &ground,
        &checkout,
        length.pick(3, 7),
        &mut report,
    )?;
    let turns = length.pick("3", "5");
    let captures = programs.example("capture_bench", &[&checkout, turns], &ground)?;
    report.tell(
        "capture : git status",
        captures.of("capture"),
        captures.of("git-status"),
    );
    workspaces::measure(&programs, &ground, files, &mut report)?;
    structure::measure(&programs, &ground, length, &mut report)?;
    report.say(&format!("ended with {}", load()));
    Ok(report)
}

/// Builds the program as it is installed, and measures it against the public peer.
pub fn run_with_peer() -> Result<Report, BenchError> {
    let programs = Programs::build()?;
    let mut report = Report::new(1.0);
    let ground = Ground::new()?;
    report.say(&format!("begun with {}", load()));
    let installed = peer::install();
    agents::server(&programs, &ground, Length::Full, &mut report)?;
    agents::hook(&programs, &ground, Length::Full, &mut report)?;
    peer::measure(installed, &programs, &ground, &mut report)?;
    report.say(&format!("ended with {}", load()));
    Ok(report)
}

fn sandboxes(
    programs: &Programs,
    ground: &Ground,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let turns = length.pick("40", "200");
    let sandboxes = programs.example("sandbox_bench", &[turns], ground)?;
    let (start, bare) = (sandboxes.of("sandbox"), sandboxes.of("bare"));
    if sandboxes.has("bubblewrap") {
        let bubblewrap = sandboxes.of("bubblewrap");
        report.judge("box start : bubblewrap", start, bubblewrap, BOX_START);
        let (ours, theirs) = (
            sandboxes.of("sandbox-work"),
            sandboxes.of("bubblewrap-work"),
        );
        report.tell("sandbox start : bubblewrap, work only", ours, theirs);
    } else {
        report.skip("sandbox start : bubblewrap", "there is no bwrap that works");
    }
    report.judge("sandbox start : true", start, bare, BARE_START);
    report.tell(
        "self-test of a sandbox : sandbox start",
        sandboxes.of("selftest"),
        start,
    );
    Ok(())
}

/// Load of the machine.
fn load() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    format!("a load of {load} on {cores} cores")
}

/// Whether a program exists and succeeds with these arguments.
fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stderr(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

impl Programs {
    fn build() -> Result<Self, BenchError> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let targets: [&[&str]; 4] = [
            &["-p", "provost", "--bin", "provost"],
            &[
                "-p",
                "provost-host",
                "--example",
                "sandbox_bench",
                "--example",
                "capture_bench",
                "--example",
                "hash_bench",
                "--example",
                "proxy_bench",
                "--example",
                "workspace_bench",
            ],
            &["-p", "provost-formats", "--example", "assignment_bench"],
            &["-p", "provost-store", "--example", "append_bench"],
        ];
        // One package at a time: together they would share features that only tests enable.
        for target in targets {
            let status = Command::new(&cargo)
                .args(["build", "--quiet", "--profile", "dist"])
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
            directory: target.join("dist"),
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

/// Duration of a command, in microseconds; it must succeed.
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
