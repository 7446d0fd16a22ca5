//! Names the restrictions of a sandbox, so that an attempt can say which one stopped it.
//!
//! In test builds each of them can be left out by its name (`holes` of a profile).

use provost_core::words;
use serde::Deserialize;

words! {
    /// A restriction, enforced by the kernel or the proxy, that keeps a payload inside the sandbox.
    #[derive(PartialOrd, Ord, Deserialize)]
    pub enum Wall {
        /// A root of its own, with only the named trees of the host.
        Root = "root",
        /// What is not writable is mounted read-only.
        ReadOnly = "read_only",
        /// No mount honours set-user-id bits, and none but the five devices works.
        MountFlags = "mount_flags",
        /// A `/proc` of its own.
        Proc = "proc",
        /// A pid namespace: other processes have no pid inside.
        Processes = "processes",
        /// A network namespace.
        Network = "network",
        /// The proxy connects only to granted places.
        Grants = "grants",
        /// A namespace for System V objects and message queues.
        Ipc = "ipc",
        /// A host name of its own.
        HostName = "host_name",
        /// A user namespace: no right of the host counts inside, and none from inside outside.
        Users = "users",
        /// The ids inside are not those of the host.
        Ids = "ids",
        /// No supplementary group of the driver.
        Groups = "groups",
        /// No capability, and no way to one.
        Capabilities = "capabilities",
        /// No program gains more rights than its caller has.
        NoNewPrivileges = "no_new_privileges",
        /// Landlock rules for paths, TCP, signals and abstract sockets.
        Landlock = "landlock",
        /// The filter of system calls.
        Seccomp = "seccomp",
        /// No descriptor but the three streams.
        Descriptors = "descriptors",
        /// The environment is what the profile says.
        Environment = "environment",
        /// A session of its own, without a terminal.
        Session = "session",
        /// Resource limits.
        Limits = "limits",
        /// The payload cannot read the init of the sandbox.
        Init = "init",
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
