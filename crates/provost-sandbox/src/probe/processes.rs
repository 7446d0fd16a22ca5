//! Attempts on processes of the host, and on the init of the sandbox.

use std::fs;
use std::io;

use super::super::attempts;
use super::super::wall::Wall;
use super::{CANARY, Outcome, Task, Trial};

/// What keeps a process from reading one outside the sandbox.
const STRANGERS: &[Wall] = &[
    Wall::Processes,
    Wall::Seccomp,
    Wall::Landlock,
    Wall::Users,
    Wall::Capabilities,
];

pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "signal_host",
        walls: &[Wall::Processes, Wall::Landlock],
        tried: "signal a process of the host",
        attempt: |task| {
            if is_ours(task.victim) {
                return Outcome::seen(true, "the number is one of the sandbox's own");
            }
            Outcome::refused(attempts::signal(task.victim))
        },
    },
    Trial {
        name: "trace_host",
        walls: STRANGERS,
        tried: "attach to a process of the host",
        attempt: |task| Outcome::refused(attempts::trace(task.victim)),
    },
    Trial {
        name: "memory_host",
        walls: STRANGERS,
        tried: "read the memory of a process of the host",
        attempt: |task| Outcome::refused(attempts::read_memory(task.victim)),
    },
    Trial {
        name: "environ_host",
        walls: &[
            Wall::Processes,
            Wall::Landlock,
            Wall::Users,
            Wall::Capabilities,
        ],
        tried: "read the environment of a process of the host",
        attempt: environ_host,
    },
    Trial {
        name: "processes_hidden",
        walls: &[Wall::Proc, Wall::Processes],
        tried: "list processes beside the sandbox's own",
        attempt: processes_hidden,
    },
    Trial {
        name: "init_hidden",
        walls: &[Wall::Init, Wall::Landlock, Wall::Capabilities],
        tried: "look into the descriptors of the sandbox's init",
        attempt: |_| {
            let listed = fs::read_dir("/proc/1/fd").and_then(|mut entries| {
                let missing = || io::Error::from(io::ErrorKind::NotFound);
                fs::read_link(entries.next().ok_or_else(missing)??.path())
            });
            Outcome::denied(listed)
        },
    },
    Trial {
        name: "ipc_host",
        walls: &[Wall::Ipc],
        tried: "be where the shared memory and message queues of the host are",
        attempt: |task| match fs::read_link("/proc/self/ns/ipc") {
            Ok(own) => Outcome::seen(own != task.ipc, own.to_string_lossy()),
            Err(error) => Outcome::seen(false, error.to_string()),
        },
    },
];

/// A pid of the host may be in use inside too.
fn is_ours(pid: i32) -> bool {
    pid == 1 || u32::try_from(pid) == Ok(std::process::id())
}

fn environ_host(task: &Task) -> Outcome {
    match fs::read(format!("/proc/{}/environ", task.victim)) {
        Ok(bytes) => {
            let canary = CANARY.as_bytes();
            let seen = bytes.windows(canary.len()).any(|part| part == canary);
            Outcome::seen(!seen, "read")
        }
        error => Outcome::denied(error),
    }
}

/// Only init and this process exist.
fn processes_hidden(_: &Task) -> Outcome {
    let listed = fs::read_dir("/proc").map(|entries| {
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .collect::<Vec<i32>>()
    });
    match listed {
        Ok(pids) => {
            let own = pids.iter().all(|pid| is_ours(*pid));
            Outcome::seen(own && pids.len() == 2, format!("{} processes", pids.len()))
        }
        Err(error) => Outcome::seen(false, error.to_string()),
    }
}
