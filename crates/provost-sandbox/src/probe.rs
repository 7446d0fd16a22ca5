//! The payload of the self-test: tries to get out of the sandbox, and reports what happened.
//!
//! # Invariants
//!
//! - Every one of [`trials`] is reported, in that order, whatever the earlier results.
//! - The probe undoes what it changes inside; outside it changes nothing even if it can.

mod files;
mod kernel;
mod net;
mod own;
mod processes;

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use provost_core::json;
use provost_core::tier::Tier;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::profile::{Limits, Network};
use super::wall::Wall;
use super::{kernel_features, program_search};

/// Argument of a probe that only shows that it runs.
pub(crate) const NOTHING: &str = "nothing";
/// Argument of a probe that looks for the programs that follow.
pub(crate) const FIND: &str = "find";
/// Argument of a process outside that tries the kernel features.
pub(crate) const RUNGS: &str = "rungs";
/// Argument of a process outside that waits to be attacked until its standard input ends.
pub(crate) const VICTIM: &str = "victim";
/// The variable in the victim's environment that no process inside may read.
pub(crate) const CANARY: &str = "PROVOST_CANARY";

/// Targets outside the sandbox that the probe tries to reach.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) secret: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) abstract_name: String,
    pub(crate) tcp: SocketAddr,
    pub(crate) udp: SocketAddr,
    pub(crate) resolver: SocketAddr,
    pub(crate) datagram: PathBuf,
    /// The name of the host's namespace for System V objects.
    pub(crate) ipc: PathBuf,
    pub(crate) victim: i32,
    /// Whether the driver may not drop its groups.
    pub(crate) keeps_groups: bool,
    /// Directories of the host that must not be visible inside.
    pub(crate) hidden: Vec<Hidden>,
    pub(crate) tier: Tier,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
}

/// A directory of the host. Another directory may be at its path inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub name: String,
    /// The restrictions that must stop it; the one that answers first comes first.
    pub walls: Vec<Wall>,
    /// What was tried, as text for a reader.
    pub tried: String,
    /// Whether the restrictions held.
    pub held: bool,
    /// The kernel's answer, if it refused.
    pub errno: Option<i32>,
    /// What the probe saw.
    pub note: String,
}

/// What one attempt saw.
#[derive(Debug)]
struct Outcome {
    held: bool,
    errno: Option<i32>,
    note: String,
}

impl Outcome {
    fn seen(held: bool, note: impl Into<String>) -> Self {
        Self {
            held,
            errno: None,
            note: note.into(),
        }
    }

    /// Holds if the attempt failed, for whatever reason.
    fn denied<T>(result: io::Result<T>) -> Self {
        match result {
            Ok(_) => Self::seen(false, "allowed"),
            Err(error) => Self {
                held: true,
                errno: error.raw_os_error(),
                note: error.to_string(),
            },
        }
    }

    fn refused(result: Result<(), Errno>) -> Self {
        Self::denied(result.map_err(io::Error::from))
    }

    /// Holds if the seccomp filter answered, and not the target of the call.
    fn filtered(result: Result<(), Errno>) -> Self {
        let filtered = result == Err(Errno::PERM);
        let seen = Self::refused(result);
        Self {
            held: seen.held && filtered,
            ..seen
        }
    }

    /// Holds if all of them do; has the note of the first that did not, or of the last.
    fn all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut seen = Self::seen(true, "nothing was there to try");
        for outcome in outcomes {
            if !outcome.held {
                return outcome;
            }
            seen = outcome;
        }
        seen
    }
}

/// One thing that must not work.
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    pub(crate) walls: &'static [Wall],
    tried: &'static str,
    attempt: fn(&Task) -> Outcome,
}

/// Every attempt. A report that lacks one of them does not hold.
///
/// The descriptors come first: later attempts may leave some of their own.
pub(crate) fn trials() -> impl Iterator<Item = &'static Trial> {
    let own = own::TRIALS.iter();
    let files = files::TRIALS.iter().chain(net::TRIALS);
    own.chain(files)
        .chain(processes::TRIALS)
        .chain(kernel::TRIALS)
}

/// Does what `argument` says, and returns the exit code.
pub(crate) fn run(argument: &str) -> i32 {
    match argument {
        NOTHING => 0,
        FIND => program_search::look(std::env::args().skip(3)),
        RUNGS => kernel_features::try_all(),
        VICTIM => i32::from(io::stdin().read_to_end(&mut Vec::new()).is_err()),
        task => match json::parse_as(task.as_bytes()) {
            Ok(task) => i32::from(report(&task).is_err()),
            Err(_) => 2,
        },
    }
}

fn report(task: &Task) -> io::Result<()> {
    let probes: Vec<Probe> = trials()
        .map(|trial| {
            let outcome = (trial.attempt)(task);
            Probe {
                name: trial.name.to_owned(),
                walls: trial.walls.to_vec(),
                tried: trial.tried.to_owned(),
                held: outcome.held,
                errno: outcome.errno,
                note: outcome.note,
            }
        })
        .collect();
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &probes)?;
    stdout.flush()
}
