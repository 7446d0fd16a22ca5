//! The least a program needs: the system's programs, a generated `/etc`, private scratch space.
//!
//! # Invariants
//!
//! - Of the host's `/etc` only loader, certificate and language configuration is there.
//! - No home of the host, no socket of the host, no device that stores data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::tier::{Processes, Tier};

use super::profile::{Limits, Mount, Network, Profile};
use super::{kernel_features, landlock_rules};

/// The home of the payload.
pub const HOME: &str = "/home/agent";
/// Where the system's own programs are.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The user and group inside.
pub(crate) const INSIDE_ID: u32 = 1000;

/// The parts of the host's `/etc` that are visible inside.
const ETC: [&str; 8] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    // Not its `settings.xml`, which may name passwords.
    "/etc/maven/m2.conf",
    "/etc/maven/logging",
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates/extracted",
];

const PASSWD: &str = "root:x:0:0:root:/root:/usr/sbin/nologin\n\
    agent:x:1000:1000:agent:/home/agent:/bin/sh\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n";
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files\n";

impl Profile {
    /// The minimal root in a sandbox of `tier`, with the kernel features that this machine has.
    pub fn of_tier(tier: Tier) -> Self {
        Self {
            tier,
            processes: match tier {
                Tier::Namespaces => kernel_features::processes(),
                Tier::Landlock => Processes::Outer,
            },
            network: match tier {
                Tier::Namespaces => Network::Loopback,
                // This tier has no network namespace.
                Tier::Landlock => Network::Deny,
            },
            ..Self::minimal()
        }
    }

    /// The minimal root: no workspace, no network but a loopback of its own, default limits,
    /// started in the private home.
    pub fn minimal() -> Self {
        let mut mounts = system();
        mounts.extend(etc());
        mounts.extend(["/dev/shm", "/tmp", HOME].map(|target| Mount::Scratch {
            target: target.into(),
        }));
        mounts.push(Mount::Symlink {
            target: "/var/tmp".into(),
            to: "/tmp".into(),
        });
        Self {
            tier: Tier::default(),
            processes: Processes::default(),
            landlock: landlock_rules::version(),
            mounts,
            workdir: HOME.into(),
            env: environment(),
            network: Network::Loopback,
            any_place: false,
            broker: false,
            limits: Limits::default(),
            #[cfg(feature = "holes")]
            holes: std::collections::BTreeSet::new(),
        }
    }
}

fn environment() -> BTreeMap<String, String> {
    [
        ("HOME", HOME),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", "agent"),
        ("PATH", SYSTEM_PATH),
        // Byte code beside the sources would count as the agent's change.
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("TMPDIR", "/tmp"),
        ("USER", "agent"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// `/usr`, and the directories beside it as the host has them: links into it, or their own.
fn system() -> Vec<Mount> {
    let mut mounts = vec![read_only(Path::new("/usr"))];
    for name in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
        let path = Path::new(name);
        if let Ok(to) = fs::read_link(path) {
            mounts.push(Mount::Symlink {
                target: path.into(),
                to,
            });
        } else if path.is_dir() {
            mounts.push(read_only(path));
        }
    }
    mounts
}

fn etc() -> Vec<Mount> {
    let mut mounts = Vec::new();
    let languages = language_configuration();
    let wanted = ETC.iter().map(Path::new);
    for path in wanted.chain(languages.iter().map(PathBuf::as_path)) {
        if path.exists() {
            mounts.extend(copies(path).unwrap_or_else(|| vec![read_only(path)]));
        }
    }
    if let Some(content) = library_directories() {
        mounts.push(Mount::File {
            target: "/etc/ld.so.conf".into(),
            content,
        });
    }
    // The time zone is a link into `/usr`; where it is a copy the sandbox uses UTC.
    if let Ok(to) = fs::read_link("/etc/localtime") {
        mounts.push(Mount::Symlink {
            target: "/etc/localtime".into(),
            to,
        });
    }
    for (target, content) in [
        ("/etc/passwd", PASSWD),
        ("/etc/group", GROUP),
        ("/etc/hosts", HOSTS),
        ("/etc/nsswitch.conf", NSSWITCH),
    ] {
        mounts.push(Mount::File {
            target: target.into(),
            content: content.to_owned(),
        });
    }
    mounts
}

/// Where linkers look for libraries: the host's list with everything it includes in one file.
fn library_directories() -> Option<String> {
    let mut text = fs::read_to_string("/etc/ld.so.conf").ok()?;
    let mut parts: Vec<PathBuf> = fs::read_dir("/etc/ld.so.conf.d")
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect()
        })
        .unwrap_or_default();
    parts.sort();
    for part in parts
        .iter()
        .filter(|part| part.extension().is_some_and(|end| end == "conf"))
    {
        text.push_str(&fs::read_to_string(part).ok()?);
    }
    let directories = text.lines().filter(|line| line.starts_with('/'));
    Some(directories.fold(String::new(), |text, line| text + line + "\n"))
}

/// Directories that Java and Python read through links from `/usr`.
fn language_configuration() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/etc") else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("java-") || name.starts_with("python")
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    paths.sort();
    paths
}

/// Copies of the few small files at `path`: cheaper than a mount at each start of a sandbox.
fn copies(path: &Path) -> Option<Vec<Mount>> {
    const MOST: usize = 4;
    const LARGEST: u64 = 8 << 10;
    let paths: Vec<PathBuf> = if path.is_dir() {
        let entries = fs::read_dir(path).ok()?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.take(MOST + 1).collect::<Result<_, _>>().ok()?
    } else {
        vec![path.into()]
    };
    if paths.is_empty() || paths.len() > MOST {
        return None;
    }
    let copy = |target: PathBuf| {
        let found = fs::symlink_metadata(&target).ok()?;
        let content = (found.is_file() && found.len() <= LARGEST)
            .then(|| fs::read_to_string(&target).ok())??;
        Some(Mount::File { target, content })
    };
    let mut copies: Vec<Mount> = paths.into_iter().map(copy).collect::<Option<_>>()?;
    copies.sort_by(|left, right| left.target().cmp(right.target()));
    Some(copies)
}

/// Mounts a path of the host at the same path inside.
fn read_only(path: &Path) -> Mount {
    Mount::ReadOnly {
        source: path.into(),
        target: path.into(),
    }
}
