//! Maps the limits of a contract to the limits of a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use provost_core::contract::limits::Limits as Asked;

use super::availability::{ProcessLimit, kernel, process_limit};
use super::cgroup;
use super::profile::Limits;

impl Limits {
    /// Applies the limits `asked`, and a wall clock limit of `wall`.
    pub fn hold(&mut self, wall: Duration, asked: &Asked) {
        self.wall_seconds = wall.as_secs();
        self.no_progress_seconds = Some(asked.no_progress.as_secs());
        self.hold_memory(asked.memory_bytes);
        self.processes = asked.processes;
        self.disk_bytes = Some(asked.disk_bytes);
        self.inodes = Some(asked.inodes);
        self.output_kill_bytes = asked.output_bytes;
    }

    /// Limits memory. Scratch directories are memory that belongs to no process; they may hold at
    /// most the same amount in addition.
    pub fn hold_memory(&mut self, bytes: u64) {
        self.memory_bytes = bytes;
        self.grouped = true;
        self.scratch_bytes = self.scratch_bytes.min(bytes);
    }
}

/// The mechanism that enforces each limit that not every machine can enforce exactly, by name.
pub fn means() -> BTreeMap<String, String> {
    let grouped = cgroup::place().is_some();
    let memory = if grouped { "control group" } else { "counted" };
    let processes = match process_limit(&kernel()) {
        _ if grouped => "control group",
        ProcessLimit::Exact => "kernel",
        ProcessLimit::Coarse | ProcessLimit::Absent => "counted",
    };
    [
        ("memory", memory),
        ("processes", processes),
        ("disk", "counted"),
    ]
    .map(|(name, by)| (name.to_owned(), by.to_owned()))
    .into()
}
