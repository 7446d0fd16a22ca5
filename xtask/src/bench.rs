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
mod weight;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ground::Ground;
pub use sample::Sample;
use sample::micros;
pub use table::{Report, Row};

use crate::{Result, repository};

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

/// What cargo builds for all measures.
const EVERYTHING: [&[&str]; 4] = [
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
        "gateway_bench",
        "--example",
        "proxy_bench",
        "--example",
        "workspace_bench",
    ],
    &["-p", "provost-formats", "--example", "assignment_bench"],
    &["-p", "provost-store", "--example", "append_bench"],
];

/// After this time a snapshot trusts the stat data of new files.
const SETTLED: Duration = Duration::from_secs(3);

/// What is measured where, and what was found.
struct Bench {
    programs: Programs,
    ground: Ground,
    length: Length,
    report: Report,
}

/// Builds everything as it is installed, and measures it.
pub fn run(length: Length) -> Result<Report> {
    measured(length, &EVERYTHING, |bench| {
        let weight = weight::describe(&bench.programs.provost())?;
        bench.report.say(&weight);
        sandboxes(bench)?;
        appends(bench)?;
        starts::runs(bench)?;
        starts::verification(bench)?;
        starts::commands(bench)?;
        starts::judgements(bench)?;
        agents::server(bench)?;
        agents::hook(bench)?;
        agents::unbound_ref(bench)?;
        proxy::measure(bench)?;
        let files = length.pick(5_000, 50_000);
        large_checkout(bench, files)?;
        workspaces::measure(bench, files)?;
        structure::measure(bench)
    })
}

/// Builds the program as it is installed, and measures it against the public peer.
pub fn run_with_peer() -> Result<Report> {
    measured(Length::Full, &EVERYTHING, |bench| {
        let installed = peer::install();
        agents::server(bench)?;
        agents::hook(bench)?;
        peer::measure(bench, installed)
    })
}

/// Builds what measures the gateway, and measures it against the bare proxy.
pub fn run_gateway() -> Result<Report> {
    let target = ["-p", "provost-host", "--example", "gateway_bench"];
    measured(Length::Full, &[&target], proxy::gateway)
}

fn measured(
    length: Length,
    targets: &[&[&str]],
    measure: impl FnOnce(&mut Bench) -> Result,
) -> Result<Report> {
    let mut bench = Bench {
        programs: Programs::build(targets)?,
        ground: Ground::new()?,
        length,
        report: Report::new(length.pick(1.5, 1.0)),
    };
    bench.report.say(&format!("begun with {}", load()));
    measure(&mut bench)?;
    bench.report.say(&format!("ended with {}", load()));
    Ok(bench.report)
}

fn appends(bench: &mut Bench) -> Result {
    let here = bench.ground.path().display().to_string();
    let words = [here.as_str(), bench.length.pick("200", "1000")];
    let found = bench
        .programs
        .example("append_bench", &words, &bench.ground)?;
    let (ours, bare) = (found.of("append"), found.of("write+fdatasync"));
    bench
        .report
        .judge("append : write+fdatasync", ours, bare, APPEND);
    Ok(())
}

/// Snapshots and captures of many files.
fn large_checkout(bench: &mut Bench, files: usize) -> Result {
    bench
        .report
        .say(&format!("snapshots and capture of {files} files"));
    let checkout = bench.ground.checkout_of(files)?;
    std::thread::sleep(SETTLED);
    let turns = bench.length.pick(3, 7);
    snapshot::measure(bench, &checkout, turns)?;
    let words = [checkout.as_str(), bench.length.pick("3", "5")];
    let found = bench
        .programs
        .example("capture_bench", &words, &bench.ground)?;
    let (ours, status) = (found.of("capture"), found.of("git-status"));
    bench.report.tell("capture : git status", ours, status);
    Ok(())
}

fn sandboxes(bench: &mut Bench) -> Result {
    let turns = bench.length.pick("40", "200");
    let sandboxes = bench
        .programs
        .example("sandbox_bench", &[turns], &bench.ground)?;
    let (start, bare) = (sandboxes.of("sandbox"), sandboxes.of("bare"));
    if sandboxes.has("bubblewrap") {
        let bubblewrap = sandboxes.of("bubblewrap");
        bench
            .report
            .judge("box start : bubblewrap", start, bubblewrap, BOX_START);
        let (ours, theirs) = (
            sandboxes.of("sandbox-work"),
            sandboxes.of("bubblewrap-work"),
        );
        bench
            .report
            .tell("sandbox start : bubblewrap, work only", ours, theirs);
    } else {
        bench
            .report
            .skip("sandbox start : bubblewrap", "there is no bwrap that works");
    }
    bench
        .report
        .judge("sandbox start : true", start, bare, BARE_START);
    bench.report.tell(
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
    fn build(targets: &[&[&str]]) -> Result<Self> {
        // One package at a time: together they would share features that only tests enable.
        for target in targets {
            let status = Command::new(repository::cargo())
                .args(["build", "--quiet", "--profile", "dist"])
                .args(*target)
                .status()?;
            if !status.success() {
                return Err("the programs to measure do not build".into());
            }
        }
        let own = std::env::current_exe()?;
        let target = own.parent().and_then(Path::parent);
        let target = target.ok_or("no target directory")?;
        Ok(Self {
            directory: target.join("dist"),
        })
    }

    fn provost(&self) -> PathBuf {
        self.directory.join("provost")
    }

    /// Runs one of the examples, and reads the measures it prints.
    fn example(&self, name: &str, arguments: &[&str], ground: &Ground) -> Result<table::Measures> {
        let output = Command::new(self.directory.join("examples").join(name))
            .args(arguments)
            .current_dir(ground.path())
            .output()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name}: {}", words.trim()).into());
        }
        Ok(table::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// Duration of a command, in microseconds; it must succeed.
fn time(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    let output = command.output()?;
    let elapsed = begin.elapsed();
    if output.status.success() {
        return Ok(micros(elapsed));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {words}", command.get_program().display()).into())
}
