//! Identifies a process of the host so that it cannot be mistaken for a later one, and ends it.

use std::fs;
use std::time::{Duration, Instant};

use provost_core::tier::Tier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::error::SandboxError;
use crate::process::{BOOT, Status};

/// A process. The kernel reuses pids; pid, start time and boot id together never occur twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
    /// The boot id of the machine.
    pub boot: String,
    /// The tier of the sandbox whose init it is.
    #[serde(default)]
    pub tier: Tier,
}

impl ProcessIdentity {
    /// Looks the process up; `None` if there is none, or only a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let status = Status::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)?;
        let boot = fs::read_to_string(BOOT).ok()?.trim().to_owned();
        (!status.is_dead()).then_some(Self {
            pid,
            start_time: status.started,
            boot,
            tier: Tier::default(),
        })
    }

    /// The same, as the init of a sandbox of `tier`.
    pub(crate) fn keeping(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }
}

/// Ends what a crashed driver left: kills the process if it is still the same one, and waits.
///
/// Returns whether there was a process to kill. A pid namespace is empty once its init is gone, so
/// afterwards no process of that sandbox is left. Without a namespace, init itself kills all the
/// others as soon as driver or launcher is gone, and exits last, so this only waits for it.
pub fn reap(birth: &ProcessIdentity, timeout: Duration) -> Result<bool, SandboxError> {
    let Some(pid) = Pid::from_raw(birth.pid) else {
        return Ok(false);
    };
    // The handle first: it stays with this process even if the pid is reused.
    let process = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH | Errno::INVAL) => return Ok(false),
        Err(errno) => return Err(SandboxError::machine("a process handle")(errno)),
    };
    let now = ProcessIdentity::of(birth.pid).map(|now| now.keeping(birth.tier));
    if now.as_ref() != Some(birth) {
        return Ok(false);
    }
    if birth.tier == Tier::Namespaces {
        match rustix::process::pidfd_send_signal(&process, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(SandboxError::machine("killing a sandbox")(errno)),
        }
    }
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(&process, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timespec(left))) {
            Ok(0) => return Err(SandboxError::NotReaped { pid: birth.pid }),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SandboxError::machine("waiting for a process")(errno)),
        }
    }
}

/// Converts a duration; one that is too long becomes the longest there is.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    })
}
