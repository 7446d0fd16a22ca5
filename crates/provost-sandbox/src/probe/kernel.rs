//! Attempts on the kernel: calls that widen what a process can reach.

use super::super::attempts;
use super::super::wall::Wall;
use super::{Outcome, Trial};

const FILTER: &[Wall] = &[Wall::Seccomp];
const FILTER_AND_RIGHTS: &[Wall] = &[Wall::Seccomp, Wall::Capabilities];

pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "mount",
        walls: &[Wall::Seccomp, Wall::Capabilities, Wall::Landlock],
        tried: "mount a file system",
        attempt: |_| Outcome::refused(attempts::mount()),
    },
    Trial {
        name: "keyctl",
        walls: FILTER,
        tried: "ask for the keys of the session",
        attempt: |_| Outcome::refused(attempts::keyctl()),
    },
    Trial {
        name: "io_uring",
        walls: FILTER,
        tried: "make a ring that does calls past the filter",
        attempt: |_| Outcome::refused(attempts::io_uring()),
    },
    Trial {
        name: "bpf",
        walls: FILTER_AND_RIGHTS,
        tried: "make a map for programs of the kernel",
        attempt: |_| Outcome::refused(attempts::bpf()),
    },
    Trial {
        name: "unshare_user",
        walls: FILTER,
        tried: "enter a new user namespace",
        attempt: |_| Outcome::refused(attempts::unshare_user()),
    },
    Trial {
        name: "clone_user",
        walls: FILTER,
        tried: "make a child in a new user namespace",
        attempt: |_| Outcome::refused(attempts::clone_user()),
    },
    Trial {
        name: "clone3",
        walls: FILTER,
        tried: "the same by the call whose flags a filter cannot see",
        attempt: |_| Outcome::refused(attempts::clone_hidden()),
    },
    Trial {
        name: "terminal",
        walls: &[Wall::Seccomp, Wall::Session],
        tried: "type into the terminal of the driver",
        attempt: |_| Outcome::filtered(attempts::type_letter()),
    },
    Trial {
        name: "userfaultfd",
        walls: FILTER,
        tried: "make a handle that stops the kernel at a page",
        attempt: |_| Outcome::refused(attempts::userfault()),
    },
    Trial {
        name: "host_name",
        walls: &[Wall::HostName],
        tried: "read the name of the host",
        attempt: |_| {
            let name = rustix::system::uname();
            let name = name.nodename().to_string_lossy();
            Outcome::seen(name == "sandbox", name)
        },
    },
];
