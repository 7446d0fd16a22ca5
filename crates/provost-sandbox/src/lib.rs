//! Sandboxes: programs run under restrictions of the kernel, and no process outlives its sandbox.
//!
//! A driver starts a sandbox with [`LauncherProgram::start`]. The fork server, a re-exec of the program,
//! forks the launcher, which makes the namespaces and their init. Init builds the root and starts
//! the payload. One sandbox is one payload with everything it starts. See `docs/sandbox.md`.
//!
//! # Invariants
//!
//! - What a [`Profile`] does not name does not exist inside; the environment starts empty.
//! - Two mechanisms of the kernel enforce a restriction where there are two: mounts and Landlock,
//!   network namespace and seccomp. If one cannot be set up, there is no sandbox. An older
//!   Landlock restricts less; the profile, the self-test and the evidence name its version.
//! - The sandbox dies with its payload, its launcher and its driver.
//! - `unsafe` is in `sys`, `before_main`, `terminal`, and in `attempts`, the calls of the probe.

mod attempts;
mod availability;
#[cfg(target_env = "gnu")]
mod before_main;
mod bpf;
mod broker_listener;
mod cgroup;
mod descendants;
mod error;
mod file_count;
mod fork_server;
mod inactivity;
mod init;
mod kernel_features;
mod kernel_memory;
mod landlock_rules;
mod launcher;
mod launcher_program;
mod limit_watch;
mod limits;
mod memory_use;
mod messages;
mod minimal_root;
mod network;
mod overlay;
mod payload;
mod probe;
pub mod process;
mod process_identity;
mod process_memory;
pub mod process_owner;
mod profile;
mod program_search;
pub mod proxy;
mod proxy_listener;
mod reaper;
pub mod refused_program;
mod root;
mod running;
mod scratch;
mod seccomp_filter;
pub mod selftest;
mod socket_memory;
pub mod stopped;
mod streams;
mod sys;
mod terminal;
mod toolchain;
mod userns_settings;
mod wall;
mod without_mounts;

pub use availability::{Availability, Blocker, ProcessLimit, availability, kernel};
pub use broker_listener::{BROKER, BROKER_VARIABLE};
pub use cgroup::place as group_place;
pub use error::{SandboxError, symbol};
pub use kernel_features::{LAYERS, MEMORY, OWN_PROC, Rung, below, processes, rungs};
pub use landlock_rules::version as landlock_version;
pub use launcher::main_if_launcher;
pub use launcher_program::{Command, LauncherProgram, Stdin};
pub use limits::means;
pub use minimal_root::{HOME, SYSTEM_PATH};
pub use process_identity::{ProcessIdentity, reap};
pub use profile::{Limits, Mount, Network, Profile};
pub use running::{Control, Ended, How, Progress, Running};
pub use scratch::Scratch;
pub use streams::{StreamFacts, head};
pub use terminal::Terminal;
pub use toolchain::{Toolchain, toolchain_mounts};
pub use userns_settings::{Switch, switched_off};
pub use wall::Wall;

/// The directory in a cache that remembers self-tests which passed, by boot of the machine.
pub const REMEMBERED: &str = "sandboxes";

/// Starts `command` in a sandbox, with the running program as launcher; see [`LauncherProgram::start`].
pub fn start(
    profile: &Profile,
    command: &Command,
    on_birth: impl FnOnce(&ProcessIdentity) -> std::io::Result<()>,
) -> Result<Running, SandboxError> {
    LauncherProgram::own().start(profile, command, on_birth)
}
