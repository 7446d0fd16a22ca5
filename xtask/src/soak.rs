//! Long trials: the hook of an agent against bash, the budgets of the gateway and of families,
//! replays of agents, and the control room with many runs.
//!
//! The first compares what the hook says of generated lines with what bash does to files. A line
//! that the hook lets pass for a change of `docs`, and that wrote anything else, is a failure: the
//! hook read it in another way than bash. The second has the tests of the budgets do more rounds, and
//! the third those of the control room in their full size.

pub mod bash;
pub mod lines;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use provost_change::hook::tool_call::{self, What};
use serde_json::json;

use crate::{Result, repository};

/// How many lines one sandbox runs.
const BATCH: usize = 5_000;

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct Report {
    pub lines: usize,
    /// How many lines wrote outside of `docs`.
    pub wrote: usize,
    /// How many lines the hook let pass.
    pub passed: usize,
    /// The lines that passed and wrote outside of `docs`, with what they wrote.
    pub misread: Vec<(String, Vec<PathBuf>)>,
}

impl Report {
    /// Whether no line was misread, and enough of them wrote or passed to show that.
    pub fn holds(&self) -> bool {
        let shows = self.wrote > self.lines / 10 && self.passed > self.lines / 100;
        self.misread.is_empty() && shows
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, paths) in &self.misread {
            writeln!(out, "passed and wrote {paths:?}: {line:?}")?;
        }
        let Self {
            lines,
            wrote,
            passed,
            misread,
        } = self;
        let count = misread.len();
        writeln!(
            out,
            "hook: {lines} lines, {wrote} wrote outside, {passed} passed, {count} misread"
        )
    }
}

/// Compares `count` lines, which follow from `seed`.
pub fn hook(count: usize, seed: u64) -> io::Result<Report> {
    let mut source = lines::Lines::new(seed);
    let mut report = Report::default();
    while report.lines < count {
        let batch = BATCH.min(count - report.lines);
        let lines: Vec<String> = (0..batch).map(|_| source.line()).collect();
        let written = bash::written(&lines)?;
        for (line, paths) in lines.into_iter().zip(written) {
            let passes = passes(&line);
            report.wrote += usize::from(!paths.is_empty());
            report.passed += usize::from(passes);
            if passes && !paths.is_empty() {
                report.misread.push((line, paths));
            }
        }
        report.lines += batch;
    }
    Ok(report)
}

/// Has fifty requests at a time reserve and settle in `rounds` random orders and as often in threads,
/// and replays the rows that the gateway recorded of them.
pub fn gateway(rounds: usize) -> Result<String> {
    let mut tests = Command::new(repository::cargo());
    tests
        .args(["test", "--quiet", "--package", "provost-sandbox", "--lib"])
        .args(["--", "proxy::tests::interleaved::"])
        .env("PROVOST_TEST_INTERLEAVINGS", rounds.to_string());
    let printed = repository::run(&mut tests)?;
    let printed = String::from_utf8_lossy(&printed);
    if !printed.contains(" 2 passed;") {
        return Err(format!("not both tests ran: {printed}").into());
    }
    Ok(format!(
        "gateway: {rounds} orders and {rounds} rounds of threads, none exceeded its grant\n"
    ))
}

/// Has families of agents start, end and lose children in `rounds` random orders, with kills.
pub fn children(rounds: usize) -> Result<String> {
    let mut tests = Command::new(repository::cargo());
    tests
        .args(["test", "--quiet", "--package", "provost-core", "--lib"])
        .args(["--", "children::tests::property::"])
        .env("PROVOST_TEST_FAMILIES", rounds.to_string());
    let printed = repository::run(&mut tests)?;
    let printed = String::from_utf8_lossy(&printed);
    if !printed.contains(" 2 passed;") {
        return Err(format!("not both tests ran: {printed}").into());
    }
    Ok(format!(
        "children: {rounds} orders and {rounds} requests, none exceeded its grant\n"
    ))
}

/// Has the runs of the real programs replayed `rounds` times each, without a network.
pub fn replay(rounds: usize) -> Result<String> {
    let mut tests = Command::new(repository::cargo());
    tests
        .args(["test", "--quiet", "--package", "provost", "--test", "runs"])
        .args(["--features", "failpoints"])
        .args(["--", REPLAYED])
        .env("PROVOST_TEST_REQUIRE", "all")
        .env("PROVOST_TEST_REPLAYS", rounds.to_string());
    let printed = repository::run(&mut tests)?;
    let printed = String::from_utf8_lossy(&printed);
    if !printed.contains(" 3 passed;") {
        return Err(format!("not all tests ran: {printed}").into());
    }
    Ok(format!(
        "replay: {rounds} replays of a run of each program, all trees equal\n"
    ))
}

/// The tests that are repeated, by the end of their names.
const REPLAYED: &str = "is_run_again_without_its_model";

/// Has a release build of the control room serve `sealed` runs while `live` ledgers grow, page a long
/// transcript and a large change, and run beside a run whose CPU time is compared.
pub fn room(sealed: usize, live: usize) -> Result<String> {
    let mut tests = Command::new(repository::cargo());
    tests
        .args([
            "test",
            "--release",
            "--quiet",
            "--package",
            "provost",
            "--test",
            "serve",
        ])
        .args([
            "--",
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
            "many::",
        ])
        .env("PROVOST_SERVE_RUNS", sealed.to_string())
        .env("PROVOST_SERVE_LIVE", live.to_string());
    // The engine syncs every event, which takes a disk minutes for so many runs.
    let memory = Path::new("/dev/shm");
    if std::env::var_os("TMPDIR").is_none() && memory.is_dir() {
        tests.env("TMPDIR", memory);
    }
    let printed = repository::run(&mut tests)?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    if !printed.contains("test result: ok. 3 passed;") {
        return Err(format!("not all three tests ran: {printed}").into());
    }
    Ok(printed)
}

/// Whether the hook lets `line` pass where `docs` was declared.
fn passes(line: &str) -> bool {
    let event = json!({ "hook_event_name": "PreToolUse", "cwd": "/repo", "tool_name": "Bash",
        "tool_input": { "command": line } });
    let is_inside = |path: &String| {
        let path = path.trim_start_matches("./");
        !path.contains("..") && (path == "docs" || path.starts_with("docs/"))
    };
    match tool_call::parse(&event).map(|event| event.what) {
        Ok(What::Before(call)) => call.paths.iter().all(is_inside),
        Ok(_) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(seed: u64) {
        match hook(2_500, seed) {
            Ok(report) => assert!(report.holds(), "{report}"),
            Err(why) => provost_testkit::skip(&format!("no sandbox for bash: {why}")),
        }
    }

    // Two halves, which run at the same time.
    #[test]
    fn bash_writes_nothing_that_the_hook_did_not_see() {
        compare(7);
    }

    #[test]
    fn bash_writes_nothing_that_the_hook_did_not_see_in_other_lines() {
        compare(8);
    }
}
