//! The flags that limit the resources of a sandbox.

use clap::Args;
use provost_core::contract::limits::Asked;
use provost_core::size;
use provost_host::sandbox;

use super::duration::seconds;

// What a sandbox may use, beside time.
#[derive(Args)]
pub(super) struct Limits {
    /// Memory of all processes together: 512MiB, 2GiB [default: 8GiB].
    #[arg(long, value_name = "SIZE", help_heading = LIMITS, value_parser = memory)]
    memory: Option<u64>,

    /// Processes and threads at a time [default: 4096].
    #[arg(long, value_name = "COUNT", help_heading = LIMITS, value_parser = processes)]
    processes: Option<u64>,

    /// Disk space of everything that can be written, including what is there already: 500MiB, 40GiB
    /// [default for a run: 20GiB].
    #[arg(long, value_name = "SIZE", help_heading = LIMITS, value_parser = disk)]
    disk: Option<u64>,

    /// Time without output and without a changed file: 90s, 5m, 2h [default for a run: 10m].
    #[arg(long, value_name = "TIME", help_heading = LIMITS, value_parser = no_progress)]
    no_progress: Option<u64>,
}

const LIMITS: &str = "Limits (a process that exceeds one is ended)";

impl Limits {
    pub(super) fn asked(&self) -> Asked {
        Asked {
            no_progress_sec: self.no_progress,
            memory_bytes: self.memory,
            processes: self.processes,
            disk_bytes: self.disk,
            ..Asked::default()
        }
    }

    /// Applies the limits that were asked for; the other limits of `limits` stay as they are.
    pub(super) fn hold(&self, limits: &mut sandbox::Limits) {
        if let Some(bytes) = self.memory {
            limits.hold_memory(bytes);
        }
        if let Some(processes) = self.processes {
            limits.processes = processes;
        }
        limits.disk_bytes = self.disk;
        limits.no_progress_seconds = self.no_progress;
    }
}

/// `value`, if a contract may ask for it in the field that `asked` puts it into.
fn within(value: u64, asked: impl Fn(Option<u64>) -> Asked) -> Result<u64, String> {
    match asked(Some(value)).flaws().pop() {
        Some((_, flaw)) => Err(flaw),
        None => Ok(value),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    within(size::parse(text)?, |memory_bytes| Asked {
        memory_bytes,
        ..Asked::default()
    })
}

fn disk(text: &str) -> Result<u64, String> {
    within(size::parse(text)?, |disk_bytes| Asked {
        disk_bytes,
        ..Asked::default()
    })
}

fn processes(text: &str) -> Result<u64, String> {
    let count = text.parse().map_err(|_| "is not a number".to_owned())?;
    within(count, |processes| Asked {
        processes,
        ..Asked::default()
    })
}

fn no_progress(text: &str) -> Result<u64, String> {
    within(seconds(text)?, |no_progress_sec| Asked {
        no_progress_sec,
        ..Asked::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_takes_what_a_contract_may_ask_for() {
        assert_eq!(memory("2GiB"), Ok(2 << 30));
        assert_eq!(disk("500MiB"), Ok(500 << 20));
        assert_eq!(processes("64"), Ok(64));
        assert_eq!(no_progress("5m"), Ok(300));
        for refused in [
            memory("1MiB"),
            memory("2GB"),
            disk("0"),
            processes("1"),
            processes("x"),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
        assert!(no_progress("8d").is_err());
    }
}
