//! The self-test: a probe tries to get out of a sandbox before an agent runs in it.
//!
//! The probe runs with the same profile as the payload and attacks targets that [`Outside`] set up;
//! then the host checks whether anything reached them.
//!
//! # Invariants
//!
//! - A report holds only if every probe is in it and held; a missing or garbled one never holds.
//! - The probe runs with the mounts, network and limits of the payload.
//! - A report is bound to the kernel, the boot of the machine, the launcher and the profile.

mod host_targets;
mod private_file;
mod program;
pub mod remembered;
mod resolver;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use provost_core::json;
use provost_core::tier::{Processes, Tier};
use serde::{Deserialize, Serialize};

use super::availability::kernel;
use super::error::SandboxError;
use super::launcher::PROBE;
use super::launcher_program::{Command, LauncherProgram, Stdin};
pub use super::probe::Probe;
use super::probe::trials;
use super::profile::{Network, Profile, lacks};
use super::root::OWN_PROGRAM;
use super::running::{Control, How};
use crate::process::BOOT;
pub use host_targets::Outside;
use host_targets::UNTOUCHED;
pub use program::foresee;

/// How long the probe may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a self-test found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub tier: Tier,
    /// Whose processes are visible inside.
    pub processes: Processes,
    /// The version of Landlock inside.
    pub landlock: u32,
    /// Every attempt with its result.
    pub probes: Vec<Probe>,
    pub ground: Ground,
}

/// What a report is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    /// The kernel's release.
    pub kernel: String,
    /// The boot id of the machine.
    pub boot: String,
    /// The user id of the driver.
    pub user: u32,
    /// SHA-256 of the launcher's program.
    pub launcher: String,
    /// SHA-256 of the profile.
    pub profile: String,
}

impl Ground {
    /// What a self-test of `profile` would be valid for now.
    pub fn of(launcher: &LauncherProgram, profile: &Profile) -> Result<Self, SandboxError> {
        let boot = fs::read_to_string(BOOT).map_err(machine)?;
        Ok(Self {
            kernel: kernel(),
            boot: boot.trim().to_owned(),
            user: rustix::process::geteuid().as_raw(),
            launcher: program::digest(&launcher.exe).map_err(machine)?,
            profile: profile.digest()?,
        })
    }
}

impl Report {
    /// Whether every required probe is in the report and held, except for the holes of the tier.
    pub fn held(&self) -> bool {
        let wanted = trials().map(|trial| trial.name).chain([UNTOUCHED]);
        self.probes
            .iter()
            .map(|probe| probe.name.as_str())
            .eq(wanted)
            && self.leaks().next().is_none()
    }

    /// The probes that did not hold and that no hole of the tier explains.
    pub fn leaks(&self) -> impl Iterator<Item = &Probe> {
        let excused = |probe: &&Probe| self.tier.excuses(self.processes, &probe.name);
        let open = self.probes.iter().filter(|probe| !probe.held);
        open.filter(move |probe| !excused(probe))
    }
}

fn machine(source: io::Error) -> SandboxError {
    SandboxError::Machine {
        what: "the self-test",
        source,
    }
}

/// Runs a probe in a sandbox of `profile` and reports what it could do.
pub fn run(
    launcher: &LauncherProgram,
    profile: &Profile,
    outside: &Outside,
) -> Result<Report, SandboxError> {
    let task = outside.task(profile).map_err(machine)?;
    let profile = &widened(profile, task.tcp);
    let task = serde_json::to_string(&task).map_err(SandboxError::Profile)?;
    let program = if lacks!(profile, Root) {
        let program = fs::canonicalize(&launcher.exe).map_err(machine)?;
        program.to_string_lossy().into_owned()
    } else {
        OWN_PROGRAM.to_owned()
    };
    let command = Command {
        argv: vec![program, PROBE.to_owned(), task],
        stdin: Stdin::Null,
        stdout: outside.directory().join("report"),
        stderr: outside.directory().join("complaints"),
    };
    let mut patient = profile.clone();
    // A probe prints nothing before its end.
    patient.limits.no_progress_seconds = None;
    let running = launcher.start(&patient, &command, |_| Ok(()))?;
    let ended = running.wait(&mut |progress| {
        if progress.wall < PATIENCE {
            Control::Continue
        } else {
            Control::Cancel
        }
    })?;
    let text = fs::read(&command.stdout).map_err(machine)?;
    let mut probes = match ended.how {
        How::Exited(0) => json::parse_as(&text).unwrap_or_default(),
        _ => Vec::new(),
    };
    outside.inspect(profile.tier, &mut probes);
    Ok(Report {
        tier: profile.tier,
        processes: profile.processes,
        landlock: profile.landlock,
        probes,
        ground: Ground::of(launcher, profile)?,
    })
}

/// The profile; if a test left out the grants, with the one place granted that a probe asks for.
fn widened(profile: &Profile, place: SocketAddr) -> Profile {
    let mut opened = profile.clone();
    if lacks!(profile, Grants)
        && let Network::Proxy(grants) = &mut opened.network
    {
        grants.extend(place.to_string().parse().ok());
    }
    opened
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn report(names: impl Iterator<Item = &'static str>) -> Report {
        let probe = |name: &str| Probe {
            name: name.to_owned(),
            walls: Vec::new(),
            tried: String::new(),
            held: true,
            errno: None,
            note: String::new(),
        };
        Report {
            tier: Tier::Namespaces,
            processes: Processes::Own,
            landlock: 6,
            probes: names.map(probe).collect(),
            ground: Ground {
                kernel: String::new(),
                boot: "boot".to_owned(),
                user: 0,
                launcher: String::new(),
                profile: String::new(),
            },
        }
    }

    pub(super) fn whole() -> Report {
        report(all())
    }

    fn all() -> impl Iterator<Item = &'static str> {
        trials().map(|trial| trial.name).chain([UNTOUCHED])
    }

    #[test]
    fn a_report_holds_only_if_it_is_whole() {
        assert!(report(all()).held());
        assert!(!report(std::iter::empty()).held());
        for left_out in all() {
            assert!(
                !report(all().filter(|name| *name != left_out)).held(),
                "{left_out}"
            );
        }
        for leaking in all() {
            let mut report = report(all());
            for probe in &mut report.probes {
                probe.held = probe.name != leaking;
            }
            assert!(!report.held(), "{leaking}");
            assert_eq!(report.leaks().count(), 1, "{leaking}");
        }
    }
}
