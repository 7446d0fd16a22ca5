//! Names the restrictions of a sandbox, so that an attempt can say which one stopped it.
//!
//! In test builds each of them can be left out by its name (`holes` of a profile).

use serde::{Deserialize, Serialize};

/// A restriction, enforced by the kernel or the proxy, that keeps a payload inside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// A root of its own, with only the named trees of the host.
    Root,
    /// What is not writable is mounted read-only.
    ReadOnly,
    /// No mount honours set-user-id bits, and none but the five devices works.
    MountFlags,
    /// A `/proc` of its own.
    Proc,
    /// A pid namespace: other processes have no pid inside.
    Processes,
    /// A network namespace.
    Network,
    /// The proxy connects only to granted places.
    Grants,
    /// A namespace for System V objects and message queues.
    Ipc,
    /// A host name of its own.
    HostName,
    /// A user namespace: no right of the host counts inside, and none from inside outside.
    Users,
    /// The ids inside are not those of the host.
    Ids,
    /// No supplementary group of the driver.
    Groups,
    /// No capability, and no way to one.
    Capabilities,
    /// No program gains more rights than its caller has.
    NoNewPrivileges,
    /// Landlock rules for paths, TCP, signals and abstract sockets.
    Landlock,
    /// The filter of system calls.
    Seccomp,
    /// No descriptor but the three streams.
    Descriptors,
    /// The environment is what the profile says.
    Environment,
    /// A session of its own, without a terminal.
    Session,
    /// Resource limits.
    Limits,
    /// The payload cannot read the init of the sandbox.
    Init,
}

impl Wall {
    pub const ALL: [Self; 21] = [
        Self::Root,
        Self::ReadOnly,
        Self::MountFlags,
        Self::Proc,
        Self::Processes,
        Self::Network,
        Self::Grants,
        Self::Ipc,
        Self::HostName,
        Self::Users,
        Self::Ids,
        Self::Groups,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Descriptors,
        Self::Environment,
        Self::Session,
        Self::Limits,
        Self::Init,
    ];

    /// The name in the bundle and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::ReadOnly => "read_only",
            Self::MountFlags => "mount_flags",
            Self::Proc => "proc",
            Self::Processes => "processes",
            Self::Network => "network",
            Self::Grants => "grants",
            Self::Ipc => "ipc",
            Self::HostName => "host_name",
            Self::Users => "users",
            Self::Ids => "ids",
            Self::Groups => "groups",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Descriptors => "descriptors",
            Self::Environment => "environment",
            Self::Session => "session",
            Self::Limits => "limits",
            Self::Init => "init",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wall_has_one_name() {
        for (at, wall) in Wall::ALL.into_iter().enumerate() {
            let name = serde_json::to_value(wall).unwrap();
            assert_eq!(name, wall.name());
            assert!(!Wall::ALL[..at].contains(&wall), "{wall:?}");
        }
    }
}
