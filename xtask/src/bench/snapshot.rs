//! Snapshots of a large tree: against the bare cost of reading and hashing it, against a script
//! and, if nothing changed, against `git status`.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sample::take_turns;
use super::{Bench, Ground, Programs, has, time};
use crate::Result;

/// A snapshot that reads everything, in reading and hashing on all cores by a bare loop.
const FULL: f64 = 1.4;

/// A snapshot that reads everything, in runs of a script with `hashlib`.
const FULL_TO_SCRIPT: f64 = 0.5;

/// A snapshot without changes, in `git status`.
const UNCHANGED: f64 = 1.5;

const SCRIPT: &str = include_str!("snapshot.py");

/// Measures in `checkout`, whose files are old enough for a snapshot to trust their stat data.
pub(super) fn measure(bench: &mut Bench, checkout: &str, turns: usize) -> Result {
    let caches = Cell::new(0);
    let cache = || -> PathBuf {
        bench
            .ground
            .path()
            .join(format!("snapshots{}", caches.get()))
    };
    let mut full = || {
        caches.set(caches.get() + 1);
        time(&mut snapshot(
            &bench.programs,
            &bench.ground,
            checkout,
            &cache(),
        ))
    };
    let mut bare = || {
        let measured = bench
            .programs
            .example("hash_bench", &[checkout], &bench.ground)?;
        Ok(measured.of("read+hash").median)
    };
    let [ours, limit] = take_turns(turns, &mut [&mut full, &mut bare])?;
    bench
        .report
        .judge("full snapshot : read and hash", ours, limit, FULL);

    let name = "full snapshot : hashlib script";
    if has("python3", &["-c", "import hashlib"]) {
        let mut script = || time(Command::new("python3").args(["-c", SCRIPT, checkout]));
        let [ours, script] = take_turns(turns.min(3), &mut [&mut full, &mut script])?;
        bench.report.judge(name, ours, script, FULL_TO_SCRIPT);
    } else {
        bench.report.skip(name, "there is no python3");
    }

    let mut unchanged = || {
        time(&mut snapshot(
            &bench.programs,
            &bench.ground,
            checkout,
            &cache(),
        ))
    };
    let mut status = || time(&mut status(checkout));
    unchanged()?;
    status()?;
    let [ours, status] = take_turns(turns, &mut [&mut unchanged, &mut status])?;
    bench
        .report
        .judge("unchanged snapshot : git status", ours, status, UNCHANGED);
    Ok(())
}

fn snapshot(programs: &Programs, ground: &Ground, checkout: &str, cache: &Path) -> Command {
    let mut command = Command::new(programs.provost());
    command
        .args(["snapshot", checkout, "--out"])
        .arg(ground.path().join("snapshot.json"))
        .env("XDG_CACHE_HOME", cache);
    command
}

fn status(checkout: &str) -> Command {
    let mut command = Command::new("git");
    command
        .args(["status", "--porcelain"])
        .current_dir(checkout)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}
