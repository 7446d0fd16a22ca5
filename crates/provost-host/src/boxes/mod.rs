//! Boxes: programs run behind walls of the kernel, and nothing of them outlives their end.
//!
//! A driver [`Launcher::start`]s a box: a re-exec of the program bears the launcher, which makes
//! the namespaces and their init; init builds the root and starts the payload. One box is one
//! payload with everything it starts.
//!
//! # Invariants
//!
//! - What a [`Profile`] does not name does not exist inside; the environment starts empty.
//! - Two mechanisms of the kernel stand behind each wall where there are two: mounts and Landlock,
//!   network namespace and seccomp. A wall that cannot be built means no box.
//! - The box dies with its payload, its launcher and its driver.
//! - `unsafe` is in `sys`, `early`, `terminal`, and in the attempts of the probe to get out.

mod account;
mod attempts;
mod availability;
mod birth;
mod bpf;
mod census;
mod cgroup;
mod diag;
mod driver;
#[cfg(target_env = "gnu")]
mod early;
mod error;
mod filter;
mod guard;
mod held;
mod init;
mod keeper;
mod launcher;
mod limits;
mod memory;
mod minimal;
mod network;
mod fork_server;
mod outlet;
mod overlay;
mod paths;
mod payload;
mod probe;
mod profile;
mod root;
mod rungs;
mod running;
mod scratch;
mod search;
pub mod selftest;
mod settle;
mod strays;
mod streams;
mod switches;
mod sys;
mod terminal;
mod toolchain;
mod wall;
mod wire;

pub use availability::{
    Availability, Blocker, LEAST_LANDLOCK, ProcessLimit, availability, kernel, landlock_version,
};
pub use birth::{Birth, bury};
pub use cgroup::place as group_place;
pub use driver::{Command, Launcher, Stdin};
pub use error::{SandboxError, symbol};
pub use launcher::main_if_launcher;
pub use limits::means;
pub use minimal::{HOME, SYSTEM_PATH};
pub use profile::{Limits, Mount, Network, Profile};
pub use rungs::{LAYERS, MEMORY, OWN_PROC, Rung, below, processes, rungs};
pub use running::{Control, Ended, How, Progress, Running};
pub use scratch::Scratch;
pub use streams::{StreamFacts, head};
pub use switches::{Switch, switched_off};
pub use terminal::Terminal;
pub use toolchain::{Toolchain, toolchain_mounts};
pub use wall::Wall;

/// Starts `command` in a box, with the running program as launcher; see [`Launcher::start`].
pub fn start(
    profile: &Profile,
    command: &Command,
    on_birth: impl FnOnce(&Birth) -> std::io::Result<()>,
) -> Result<Running, SandboxError> {
    Launcher::own().start(profile, command, on_birth)
}
