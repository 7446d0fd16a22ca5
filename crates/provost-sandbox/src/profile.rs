//! The profile of a sandbox: plain data that is recorded and hashed with the evidence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provost_core::net::endpoint::Endpoint;
use provost_core::object::sha256;
use provost_core::tier::{Gap, Processes, Tier};
use serde::{Deserialize, Serialize};

use super::error::SandboxError;

/// Everything that a sandbox contains. What is not named here does not exist inside.
///
/// Beside it every sandbox has its own `/proc`, the five harmless devices in `/dev`, and the
/// launcher's own binary, all read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub tier: Tier,
    /// Whose processes `/proc` shows.
    pub processes: Processes,
    /// The version of Landlock that is used; the kernel may have a newer one.
    pub landlock: u32,
    /// Applied in this order; a later mount may lie inside an earlier one.
    pub mounts: Vec<Mount>,
    /// Where the payload starts.
    pub workdir: PathBuf,
    /// The whole environment of the payload.
    pub env: BTreeMap<String, String>,
    pub network: Network,
    /// Whether the proxy leads to every place of the public internet; see [`Profile::grant_any`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_place: bool,
    /// Whether init makes the socket of a broker and passes it out; see [`Profile::add_broker`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broker: bool,
    pub limits: Limits,
    /// Restrictions that are left out, to check that the self-test notices.
    #[cfg(feature = "holes")]
    #[serde(default)]
    pub holes: std::collections::BTreeSet<super::wall::Wall>,
}

/// One entry of the sandbox's file system; targets are absolute paths inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mount {
    /// A path of the host that can be read.
    ReadOnly {
        /// On the host; symbolic links are followed.
        source: PathBuf,
        /// In the sandbox.
        target: PathBuf,
    },
    /// A path of the host that can be written.
    Writable {
        /// On the host; symbolic links are followed.
        source: PathBuf,
        /// In the sandbox.
        target: PathBuf,
    },
    /// Layers of the host seen as one directory that can be written; only `upper` changes.
    Overlay {
        /// What is seen where nothing was written, the topmost first.
        lowers: Vec<PathBuf>,
        /// What was written; the kernel marks there what was removed.
        upper: PathBuf,
        /// Room for the kernel, on the file system of `upper`.
        work: PathBuf,
        /// In the sandbox.
        target: PathBuf,
    },
    /// Makes something inside an earlier [`Mount::Writable`] or [`Mount::Overlay`] read-only.
    ///
    /// It must exist, and its path may not lead through a symbolic link: an agent wrote in there
    /// before, and must not choose what is mounted. Of a symbolic link the link itself is
    /// protected, not its target. A directory above it can still be renamed away; the diff gate
    /// sees that.
    Protect {
        /// In the sandbox.
        target: PathBuf,
    },
    /// A directory of the user, writable and at its own path. It does not count for the limits of
    /// disk: it held files before.
    UserFiles {
        /// On the host and in the sandbox, without symbolic links.
        path: PathBuf,
    },
    /// Something inside an earlier [`Mount::UserFiles`] that is not visible: an empty file or
    /// directory is in its place, read-only. It must exist.
    Masked {
        /// In the sandbox.
        target: PathBuf,
    },
    /// A private directory in memory that ends with the sandbox.
    Scratch {
        /// In the sandbox.
        target: PathBuf,
    },
    /// A generated file, read-only.
    File {
        /// In the sandbox.
        target: PathBuf,
        content: String,
    },
    /// A symbolic link.
    Symlink {
        /// In the sandbox.
        target: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A stub in place of a program that may not run: it says so, reports it and fails.
    Refused {
        /// In the sandbox.
        target: PathBuf,
    },
    /// A named pipe of the host that can be written and, by its mode, not read.
    Reports {
        /// On the host.
        source: PathBuf,
        /// In the sandbox.
        target: PathBuf,
    },
}

impl Mount {
    /// Where in the sandbox it appears.
    pub fn target(&self) -> &Path {
        match self {
            Self::ReadOnly { target, .. }
            | Self::Writable { target, .. }
            | Self::Overlay { target, .. }
            | Self::UserFiles { path: target }
            | Self::Masked { target }
            | Self::Protect { target }
            | Self::Scratch { target }
            | Self::File { target, .. }
            | Self::Symlink { target, .. }
            | Self::Refused { target }
            | Self::Reports { target, .. } => target,
        }
    }

    /// Whether the payload may write there.
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Writable { .. }
            | Self::Overlay { .. }
            | Self::UserFiles { .. }
            | Self::Scratch { .. } => true,
            Self::ReadOnly { .. }
            | Self::Masked { .. }
            | Self::Protect { .. }
            | Self::File { .. }
            | Self::Symlink { .. }
            | Self::Refused { .. }
            | Self::Reports { .. } => false,
        }
    }

    /// Whether what lies below the target belongs to the host.
    pub(crate) fn is_of_host(&self) -> bool {
        match self {
            Self::ReadOnly { .. }
            | Self::Writable { .. }
            | Self::Overlay { .. }
            | Self::UserFiles { .. }
            | Self::Protect { .. } => true,
            Self::Scratch { .. }
            | Self::Masked { .. }
            | Self::File { .. }
            | Self::Symlink { .. }
            | Self::Refused { .. }
            | Self::Reports { .. } => false,
        }
    }
}

/// The network of a sandbox, which never includes the host's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No internet sockets at all.
    Deny,
    /// A loopback interface of the sandbox's own.
    Loopback,
    /// The same, and on it a proxy to these places; see [`Profile::grant`].
    Proxy(Vec<Endpoint>),
}

/// When a sandbox is ended, and what a process in it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Seconds until the sandbox is ended.
    pub wall_seconds: u64,
    /// How much of each stream is kept; the middle is left out.
    pub output_bytes: u64,
    /// How much both streams may hold together before the sandbox is ended.
    pub output_kill_bytes: u64,
    /// Seconds without output and without a changed file until the sandbox is ended.
    pub no_progress_seconds: Option<u64>,
    /// Memory that all processes use together.
    pub memory_bytes: u64,
    /// Whether a control group enforces memory and processes too, which delays the start of the
    /// sandbox by milliseconds. The driver counts them in any case.
    pub grouped: bool,
    /// Bytes on disk of everything that the sandbox may write on the host.
    pub disk_bytes: Option<u64>,
    /// Files and directories in everything that the sandbox may write on the host.
    pub inodes: Option<u64>,
    /// Processes and threads at a time; a sandbox that has used up all of them is ended.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// The largest file that can be written.
    pub file_bytes: u64,
    /// What all scratch directories hold together.
    pub scratch_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_seconds: 20 * 60,
            output_bytes: 8 << 20,
            output_kill_bytes: 256 << 20,
            no_progress_seconds: None,
            memory_bytes: 8 << 30,
            grouped: false,
            disk_bytes: None,
            inodes: None,
            processes: 4096,
            open_files: 16 << 10,
            file_bytes: 8 << 30,
            scratch_bytes: 4 << 30,
        }
    }
}

impl Profile {
    /// Adds `mount`, in place of an earlier one with the same target.
    pub fn add(&mut self, mount: Mount) {
        self.mounts.retain(|other| other.target() != mount.target());
        self.mounts.push(mount);
    }

    /// SHA-256 of the profile as JSON with sorted keys.
    pub fn digest(&self) -> Result<String, SandboxError> {
        let value = serde_json::to_value(self).map_err(SandboxError::Profile)?;
        Ok(sha256(value.to_string().as_bytes()))
    }

    /// What a sandbox of this profile does not stop.
    pub fn holes(&self) -> &'static [Gap] {
        self.tier.holes(self.processes)
    }

    /// What the version of Landlock leaves to other restrictions.
    pub fn sealed_gaps(&self) -> impl Iterator<Item = &'static str> {
        self.tier.sealed_gaps(self.landlock)
    }

    /// Whether a test left out this restriction.
    #[cfg(feature = "holes")]
    pub(crate) fn lacks(&self, wall: super::wall::Wall) -> bool {
        self.holes.contains(&wall)
    }
}

/// Whether a test left out a restriction; never outside tests.
macro_rules! lacks {
    ($profile:expr, $wall:ident) => {{
        #[cfg(feature = "holes")]
        let lacking = $profile.lacks($crate::wall::Wall::$wall);
        #[cfg(not(feature = "holes"))]
        let lacking = {
            let _ = &$profile;
            false
        };
        lacking
    }};
}
pub(crate) use lacks;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mount_takes_the_place_of_an_earlier_one() {
        let mut profile = Profile::minimal();
        let mounts = profile.mounts.len();
        let target = PathBuf::from("/home/agent");
        profile.add(Mount::Writable {
            source: "/srv/home".into(),
            target: target.clone(),
        });
        assert_eq!(profile.mounts.len(), mounts);
        let at: Vec<_> = profile
            .mounts
            .iter()
            .filter(|mount| mount.target() == target)
            .collect();
        assert!(matches!(at[..], [Mount::Writable { .. }]));
    }

    #[test]
    fn the_digest_differs_between_profiles_and_survives_a_round_trip() {
        let profile = Profile::minimal();
        let text = serde_json::to_string(&profile).unwrap();
        let again: Profile = provost_core::json::parse_as(text.as_bytes()).unwrap();
        assert_eq!(profile.digest().unwrap(), again.digest().unwrap());

        let mut wider = profile.clone();
        wider.network = Network::Deny;
        assert_ne!(profile.digest().unwrap(), wider.digest().unwrap());
    }
}
