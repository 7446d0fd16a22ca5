//! Stops every process of a sandbox for a moment, so that its files can be read as one state.
//!
//! # Invariants
//!
//! - While the work runs, every thread below init is stopped or dead.
//! - Whatever happens, what was stopped here continues; what the sandbox stopped itself does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::process::Status;
use super::process_identity::ProcessIdentity;

/// How long processes may take to stop, before they continue and are stopped again.
const ROUND: Duration = Duration::from_secs(1);
/// How often that is tried: a process between `vfork` and `exec` stops its parent for good.
const ROUNDS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(1);

/// Processes of a sandbox that could not be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the processes of the sandbox could not be stopped within {} s",
    ROUNDS
)]
pub struct NotStopped;

/// Does `work` while every process of the sandbox of `init` but init itself is stopped.
pub fn while_stopped<T>(init: &ProcessIdentity, work: impl FnOnce() -> T) -> Result<T, NotStopped> {
    for round in 0..ROUNDS {
        let mut stop = Stop::default();
        if stop.all_below(init.pid, ROUND) {
            return Ok(work());
        }
        drop(stop);
        std::thread::sleep(PAUSE * (round + 1) * 10);
    }
    Err(NotStopped)
}

/// The processes that this value stopped; they continue when it is dropped.
#[derive(Debug, Default)]
struct Stop {
    stopped: BTreeSet<i32>,
}

impl Stop {
    /// Stops everything below `init`; false if that takes longer than `limit`.
    fn all_below(&mut self, init: i32, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut own = BTreeSet::new();
        loop {
            let mut settled = true;
            for (pid, status) in below(init) {
                if status.is_dead() || own.contains(&pid) {
                    continue;
                }
                if self.stopped.contains(&pid) {
                    settled &= is_still(pid);
                    continue;
                }
                if is_still(pid) {
                    // The sandbox stopped it itself.
                    own.insert(pid);
                    continue;
                }
                settled = false;
                signal(pid, Signal::STOP);
                self.stopped.insert(pid);
            }
            if settled {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for pid in &self.stopped {
            signal(*pid, Signal::CONT);
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // One that is gone needs no signal.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Whether every thread of the process is stopped or dead.
fn is_still(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let still = |status: Status| status.is_dead() || matches!(status.state, b'T' | b't');
    let mut threads = threads.flatten();
    threads.all(|thread| status(&thread.path()).is_none_or(still))
}

fn status(directory: &Path) -> Option<Status> {
    Status::parse(&fs::read(directory.join("stat")).ok()?)
}

/// All descendants of `init`. An orphan in a pid namespace belongs to init, so none is missed.
fn below(init: i32) -> Vec<(i32, Status)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, status(&entry.path())?))
    });
    let all: BTreeMap<i32, Status> = all.collect();
    let is_below = |pid: i32| {
        let mut at = pid;
        // No chain of parents is longer than the list.
        for _ in 0..all.len() {
            match all.get(&at) {
                Some(status) if status.parent == init => return true,
                Some(status) if status.parent > 1 => at = status.parent,
                _ => return false,
            }
        }
        false
    };
    let found = all.iter().filter(|(pid, _)| is_below(**pid));
    found.map(|(pid, status)| (*pid, *status)).collect()
}
