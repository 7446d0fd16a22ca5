//! Finds out whether this machine can make a sandbox, by making one.

use provost_core::tier::Tier;
use serde::{Deserialize, Serialize};

use super::error::{self, SandboxError, remedy};
use super::landlock_rules;
use super::launcher;
use super::launcher_program::{Command, LauncherProgram, Stdin};
use super::probe::NOTHING;
use super::profile::Profile;
use super::root::OWN_PROGRAM;
use super::running::{Control, How};

/// What the kernel of this machine offers a tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Availability {
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's Landlock version.
    pub landlock_version: u32,
    /// For root the limit is rounded up, or absent.
    pub process_limit: ProcessLimit,
}

/// How the limit on processes is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessLimit {
    /// By the resource limit, exactly.
    Exact,
    /// Only by the size of the pid namespace, at least 301.
    Coarse,
    /// Not at all.
    Absent,
}

/// Why a sandbox cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("no sandbox of tier `{tier}`: {}", self.refusal())]
pub struct Blocker {
    pub tier: Tier,
    /// The step that was refused.
    pub stage: String,
    /// What the kernel answered; 0 if it was not asked.
    pub errno: i32,
    /// What the user can do.
    pub remedy: String,
}

impl Blocker {
    /// The step that was refused, and what the kernel answered.
    pub fn refusal(&self) -> String {
        match self.errno {
            0 => self.stage.clone(),
            errno => format!("{}: {}", self.stage, error::name(errno)),
        }
    }
}

/// Tries a sandbox with nothing in it, with the running program as launcher.
pub fn availability(tier: Tier) -> Result<Availability, Blocker> {
    LauncherProgram::own().availability(tier)
}

impl LauncherProgram {
    /// Tries a sandbox with nothing in it.
    pub fn availability(&self, tier: Tier) -> Result<Availability, Blocker> {
        let landlock_version = landlock_rules::version();
        if landlock_version < tier.least_landlock() {
            let stage = landlock_rules::too_old(tier, landlock_version);
            let remedy = remedy(&stage, libc::EOPNOTSUPP);
            return Err(Blocker {
                tier,
                stage,
                errno: 0,
                remedy,
            });
        }
        self.trial(Profile::of_tier(tier))
            .map_err(|error| Blocker::of(tier, error))?;
        let kernel = kernel();
        let process_limit = process_limit(&kernel);
        Ok(Availability {
            kernel,
            landlock_version,
            process_limit,
        })
    }

    /// Makes a sandbox with nothing in it, and ends it.
    pub(super) fn trial(&self, mut profile: Profile) -> Result<(), SandboxError> {
        profile.limits.wall_seconds = 10;
        let command = Command {
            argv: [OWN_PROGRAM, launcher::PROBE, NOTHING]
                .map(str::to_owned)
                .to_vec(),
            stdin: Stdin::Null,
            stdout: "/dev/null".into(),
            stderr: "/dev/null".into(),
        };
        let running = self.start(&profile, &command, |_| Ok(()))?;
        let ended = running.wait(&mut |_| Control::Continue)?;
        if ended.how == How::Exited(0) {
            Ok(())
        } else {
            Err(SandboxError::LauncherLost)
        }
    }
}

impl Blocker {
    fn of(tier: Tier, error: SandboxError) -> Self {
        match error {
            SandboxError::Start { stage, errno, hint } => Self {
                tier,
                stage,
                errno,
                remedy: hint,
            },
            other => Self {
                tier,
                stage: other.to_string(),
                errno: 0,
                remedy: "the program does not run inside its own sandbox".to_owned(),
            },
        }
    }
}

/// The kernel's release.
pub fn kernel() -> String {
    let name = rustix::system::uname();
    name.release().to_string_lossy().into_owned()
}

pub(crate) fn process_limit(kernel: &str) -> ProcessLimit {
    let mut parts = kernel.split(|character: char| !character.is_ascii_digit());
    let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    let version: (u32, u32) = (number(), number());
    if !rustix::process::geteuid().is_root() {
        ProcessLimit::Exact
    } else if version >= (6, 14) {
        ProcessLimit::Coarse
    } else {
        ProcessLimit::Absent
    }
}
