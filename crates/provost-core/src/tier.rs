//! The tiers of a sandbox, and what each does not stop.
//!
//! A tier is requested by name and enforced exactly: a sandbox that cannot be made as requested is
//! refused, and never replaced by a weaker one.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

words! {
    /// What a sandbox is made of; a stronger tier is greater.
    #[derive(Default, PartialOrd, Ord, Deserialize, JsonSchema)]
    pub enum Tier {
        /// Landlock and seccomp on the host's own file system; needs no user namespace.
        Landlock = "landlock",
        /// Namespaces of its own with a minimal root, and Landlock and seccomp inside.
        #[default]
        Namespaces = "namespaces",
    }
}

/// Which processes a sandbox of tier `namespaces` sees in its `/proc`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Processes {
    #[default]
    Own,
    /// Those of the outer namespace, read-only: if the outer `/proc` is masked, the kernel refuses
    /// a new one.
    Outer,
}

impl Processes {
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// Something that a sandbox does not stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub words: &'static str,
    /// The probes of the self-test that show it.
    pub probes: &'static [&'static str],
}

/// What a read-only view of the outer `/proc` shows.
const OUTER_PROCESSES: Gap = Gap {
    words: "the processes around the sandbox are listed in /proc with their command lines; their \
            environment, memory and files are not readable",
    probes: &["processes_hidden"],
};

/// What Landlock and seccomp alone do not stop.
const LANDLOCK: [Gap; 11] = [
    OUTER_PROCESSES,
    Gap {
        words: "mode, owner and times of a file that belongs to the user can be changed wherever \
                it lies; its content cannot",
        probes: &["secret_chmod", "device_chmod", "read_only_mode"],
    },
    Gap {
        words: "whether a path exists, its size, mode and times, and what a link says can be asked \
                for everywhere; a known directory can be watched for names that come and go",
        probes: &["host_hidden"],
    },
    Gap {
        words: "files that the contract protects can be written inside the workspace; only the \
                diff gate refuses such a change",
        probes: &[],
    },
    Gap {
        words: "the program runs under the user's own id, and as root under id 0 without any \
                capability",
        probes: &["ids"],
    },
    Gap {
        words: "names of users, groups and hosts are those of the machine: /etc/passwd, /etc/group \
                and /etc/hosts are readable, and so is the machine's own name",
        probes: &["host_name"],
    },
    Gap {
        words: "mounts and System V objects are those of the machine; that no program gains rights \
                and that the calls are refused is all that keeps them",
        probes: &["mount_flags", "ipc_host"],
    },
    Gap {
        words: "addresses, connections and sockets of the machine's network are listed in /proc/net; \
                nothing of it can be reached",
        probes: &[],
    },
    Gap {
        words: "scratch directories are on disk and have no limit of their own",
        probes: &[],
    },
    Gap {
        words: "the limit on processes counts all processes of the user, and does not hold root",
        probes: &[],
    },
    Gap {
        words: "processes are ended one by one by two keepers; if a process outside kills both \
                keepers at once, what they kept lives on",
        probes: &[],
    },
];

/// Something that an older Landlock leaves to another restriction of tier `namespaces`.
struct SealedGap {
    /// The first version of Landlock without the gap.
    since: u32,
    words: &'static str,
}

const SEALED_GAPS: [SealedGap; 6] = [
    SealedGap {
        since: 2,
        words: "moves and links between directories: Landlock refuses all of them, also in the \
                workspace",
    },
    SealedGap {
        since: 3,
        words: "truncation of files that may only be read: read-only mounts alone stop it",
    },
    SealedGap {
        since: 4,
        words: "TCP where there is no network: the network namespace and seccomp alone stop it",
    },
    SealedGap {
        since: 5,
        words: "requests to devices (ioctl): mounts on which no device works alone stop them, and \
                the five devices of a sandbox store nothing",
    },
    SealedGap {
        since: 6,
        words: "signals to processes outside: the process namespace alone stops them",
    },
    SealedGap {
        since: 6,
        words: "abstract unix sockets of the machine: the network namespace alone stops them",
    },
];

impl Tier {
    /// The least version of Landlock that the tier needs.
    ///
    /// Without namespaces only version 6 (Linux 6.12) keeps signals inside the sandbox. In tier
    /// `namespaces` other restrictions close every gap of the first version (Linux 5.13).
    pub fn least_landlock(self) -> u32 {
        match self {
            Self::Landlock => 6,
            Self::Namespaces => 1,
        }
    }

    /// What Landlock of `version` leaves to the other restrictions of this tier.
    pub fn sealed_gaps(self, version: u32) -> impl Iterator<Item = &'static str> {
        let gaps = SEALED_GAPS.iter();
        let open = gaps.filter(move |gap| self == Self::Namespaces && version < gap.since);
        open.map(|gap| gap.words)
    }

    pub fn is_strongest(&self) -> bool {
        *self == Self::Namespaces
    }

    /// What a sandbox of this tier does not stop.
    pub fn holes(self, processes: Processes) -> &'static [Gap] {
        match (self, processes) {
            (Self::Landlock, _) => &LANDLOCK,
            (Self::Namespaces, Processes::Outer) => &[OUTER_PROCESSES],
            (Self::Namespaces, Processes::Own) => &[],
        }
    }

    /// Whether `probe` is known to get through, so that the self-test does not fail because of it.
    pub fn excuses(self, processes: Processes, probe: &str) -> bool {
        let mut holes = self.holes(processes).iter();
        holes.any(|hole| hole.probes.contains(&probe))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no tier of the sandbox; there are `namespaces` and `landlock`")]
pub struct NoTier;

impl FromStr for Tier {
    type Err = NoTier;

    fn from_str(name: &str) -> Result<Self, NoTier> {
        let mut all = Self::ALL.into_iter();
        all.find(|tier| tier.name() == name).ok_or(NoTier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_has_one_name_everywhere_and_the_stronger_is_greater() {
        for tier in Tier::ALL {
            assert_eq!(tier.name().parse(), Ok(tier));
            assert_eq!(serde_json::json!(tier), tier.name());
        }
        assert_eq!("Namespaces".parse::<Tier>(), Err(NoTier));
        assert!(Tier::Landlock < Tier::Namespaces);
        assert_eq!(Tier::default(), Tier::Namespaces);
    }

    #[test]
    fn only_a_hole_that_is_named_excuses_a_probe() {
        use Processes::{Outer, Own};
        let cases = [
            (Tier::Namespaces, Own, "processes_hidden", false),
            (Tier::Namespaces, Outer, "processes_hidden", true),
            (Tier::Namespaces, Outer, "ids", false),
            (Tier::Landlock, Own, "ids", true),
            (Tier::Landlock, Own, "secret_read", false),
            (Tier::Landlock, Own, "path_socket", false),
        ];
        for (tier, processes, probe, excused) in cases {
            assert_eq!(tier.excuses(processes, probe), excused, "{tier} {probe}");
        }
        assert!(Tier::Namespaces.holes(Own).is_empty());
    }

    #[test]
    fn each_version_of_landlock_closes_gaps() {
        let gaps = |version| Tier::Namespaces.sealed_gaps(version).count();
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(gaps), [6, 5, 4, 3, 2, 0, 0]);
        assert_eq!(Tier::Landlock.sealed_gaps(6).count(), 0);
    }
}
