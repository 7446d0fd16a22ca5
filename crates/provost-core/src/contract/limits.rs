//! The limits of a sandbox beside the time limit: their ranges and defaults.
//!
//! # Invariants
//!
//! - Every limit has a value: no run is without one.
//! - A limit that protects nothing, or that no program could run in, is refused and not rounded.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed::closed;
use crate::size;

closed! {
    /// Limits as the author wrote them. One that is left out is taken from the policy of the
    /// repository, or else has its default.
    #[derive(
        Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
    )]
    pub struct Asked {
        /// Seconds after which a sandbox is ended that neither prints nor changes a file; 1 second
        /// to 7 days, 10 minutes if left out.
        pub no_progress_sec?: u64,
        /// Memory that all processes of a sandbox use together; 64 MiB to 1 TiB, 8 GiB if left out.
        pub memory_bytes?: u64,
        /// Processes and threads at a time; 16 to 65536, 4096 if left out.
        pub processes?: u64,
        /// Disk space of the workspace, with the checkout and build output; 1 MiB to 16 TiB, 20 GiB
        /// if left out.
        pub disk_bytes?: u64,
        /// Files and directories of the workspace; 100 to 50 000 000, 1 000 000 if left out.
        pub inodes?: u64,
        /// Bytes that a process may print; 4 KiB to 4 GiB, 256 MiB if left out. The bundle keeps 8
        /// MiB.
        pub output_bytes?: u64,
    }
}

/// The limits at which a sandbox is ended, beside the time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may neither print nor change a file.
    pub no_progress: Duration,
    /// Of all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Of its workspace.
    pub disk_bytes: u64,
    /// Files and directories of its workspace.
    pub inodes: u64,
    /// Of both its streams together.
    pub output_bytes: u64,
}

struct Range {
    name: &'static str,
    least: u64,
    usual: u64,
    most: u64,
    render: fn(u64) -> String,
}

const NO_PROGRESS: Range = Range {
    name: "no_progress_sec",
    least: 1,
    usual: 10 * 60,
    most: 7 * 24 * 3600,
    render: |seconds| format!("{seconds} s"),
};
const MEMORY: Range = Range {
    name: "memory_bytes",
    least: 64 << 20,
    usual: 8 << 30,
    most: 1 << 40,
    render: size::render,
};
const PROCESSES: Range = Range {
    name: "processes",
    least: 16,
    usual: 4096,
    most: 65_536,
    render: |count| count.to_string(),
};
const DISK: Range = Range {
    name: "disk_bytes",
    least: 1 << 20,
    usual: 20 << 30,
    most: 16 << 40,
    render: size::render,
};
const INODES: Range = Range {
    name: "inodes",
    least: 100,
    usual: 1_000_000,
    most: 50_000_000,
    render: |count| count.to_string(),
};
const OUTPUT: Range = Range {
    name: "output_bytes",
    least: 4 << 10,
    usual: 256 << 20,
    most: 4 << 30,
    render: size::render,
};

impl Asked {
    /// The fields out of their range: the name, and a text that follows the name.
    pub fn flaws(&self) -> Vec<(&'static str, String)> {
        let fields = [
            (self.no_progress_sec, NO_PROGRESS),
            (self.memory_bytes, MEMORY),
            (self.processes, PROCESSES),
            (self.disk_bytes, DISK),
            (self.inodes, INODES),
            (self.output_bytes, OUTPUT),
        ];
        let mut flaws = Vec::new();
        for (asked, range) in fields {
            if asked.is_some_and(|asked| asked < range.least || asked > range.most) {
                let (least, most) = ((range.render)(range.least), (range.render)(range.most));
                flaws.push((range.name, format!("is not between {least} and {most}")));
            }
        }
        flaws
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Limits {
    /// The limits of a contract that asks for `asked`, under a policy that asks for `policy`.
    pub fn of(asked: &Asked, policy: &Asked) -> Self {
        let one = |asked: Option<u64>, policy: Option<u64>, range: Range| {
            asked.or(policy).unwrap_or(range.usual)
        };
        let quiet = one(asked.no_progress_sec, policy.no_progress_sec, NO_PROGRESS);
        Self {
            no_progress: Duration::from_secs(quiet),
            memory_bytes: one(asked.memory_bytes, policy.memory_bytes, MEMORY),
            processes: one(asked.processes, policy.processes, PROCESSES),
            disk_bytes: one(asked.disk_bytes, policy.disk_bytes, DISK),
            inodes: one(asked.inodes, policy.inodes, INODES),
            output_bytes: one(asked.output_bytes, policy.output_bytes, OUTPUT),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(&Asked::default(), &Asked::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_what_the_contract_says_then_the_policy_then_the_usual() {
        let asked = Asked {
            memory_bytes: Some(1 << 30),
            ..Asked::default()
        };
        let policy = Asked {
            memory_bytes: Some(2 << 30),
            processes: Some(100),
            ..Asked::default()
        };
        let limits = Limits::of(&asked, &policy);
        assert_eq!(limits.memory_bytes, 1 << 30);
        assert_eq!(limits.processes, 100);
        assert_eq!(limits.no_progress, Duration::from_mins(10));
    }

    #[test]
    fn nonsense_is_named_field_by_field() {
        let least = |value| Asked {
            no_progress_sec: Some(value),
            memory_bytes: Some(value),
            processes: Some(value),
            disk_bytes: Some(value),
            inodes: Some(value),
            output_bytes: Some(value),
        };
        assert_eq!(least(0).flaws().len(), 6);
        assert_eq!(least(u64::MAX).flaws().len(), 6);
        assert_eq!(Asked::default().flaws(), []);
        let one = Asked {
            memory_bytes: Some(1),
            ..Asked::default()
        };
        let words = "is not between 64 MiB and 1 TiB".to_owned();
        assert_eq!(one.flaws(), [("memory_bytes", words)]);
    }

    #[test]
    fn the_usual_limits_are_in_range() {
        for range in [NO_PROGRESS, MEMORY, PROCESSES, DISK, INODES, OUTPUT] {
            let within = range.least <= range.usual && range.usual <= range.most;
            assert!(within, "{}", range.name);
        }
    }
}
