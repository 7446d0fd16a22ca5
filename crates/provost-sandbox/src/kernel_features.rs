//! Tries one by one the kernel features that a sandbox of tier `namespaces` needs.
//!
//! A separate process makes each kind of namespace, and inside one the mounts that container
//! engines often refuse. Nothing is left of them afterwards.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use provost_core::json;
use provost_core::tier::{Processes, Tier};
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
};
use rustix::process::{Pid, WaitOptions};
use serde::{Deserialize, Serialize};

use super::error::{SandboxError, remedy, symbol};
use super::launcher::PROBE;
use super::launcher_program::LauncherProgram;
use super::overlay;
use super::probe::RUNGS;
use super::profile::Profile;
use super::sys::{self, Fork};

/// A kernel feature that a sandbox needs, and the kernel's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    pub name: String,
    /// The kernel's answer; 0 if the feature works.
    pub errno: i32,
}

impl Rung {
    pub fn holds(&self) -> bool {
        self.errno == 0
    }

    /// The name of the errno in the manual pages.
    pub fn answer(&self) -> String {
        symbol(self.errno)
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        let stage = match self.name.as_str() {
            OWN_PROC => "proc",
            MEMORY => "root",
            LAYERS => "overlay",
            "network namespace" => "network",
            _ => "clone",
        };
        remedy(stage, self.errno)
    }
}

/// A `/proc` that shows only the sandbox.
pub const OWN_PROC: &str = "own /proc";
/// The file system that holds the root of a sandbox.
pub const MEMORY: &str = "file system in memory";
/// What overlay workspaces need.
pub const LAYERS: &str = "overlay in memory";

const USERS: &str = "user namespace";
const PROCESSES: &str = "process namespace";
const MOUNTS: &str = "mount namespace";

/// The features that the feature `name` depends on.
pub fn below(name: &str) -> &'static [&'static str] {
    match name {
        USERS => &[],
        OWN_PROC | MEMORY => &[USERS, PROCESSES, MOUNTS],
        LAYERS => &[USERS, PROCESSES, MOUNTS, MEMORY],
        _ => &[USERS],
    }
}

/// A directory of every machine, as a mount point in a private mount namespace.
const ANYWHERE: &str = "/tmp";

const KINDS: [(&str, libc::c_int); 6] = [
    (USERS, 0),
    (PROCESSES, libc::CLONE_NEWPID),
    (MOUNTS, libc::CLONE_NEWNS),
    ("network namespace", libc::CLONE_NEWNET),
    ("ipc namespace", libc::CLONE_NEWIPC),
    ("host name namespace", libc::CLONE_NEWUTS),
];

type Work = fn() -> Result<(), Errno>;
const INSIDE: [(&str, Work); 3] = [(OWN_PROC, proc), (MEMORY, memory), (LAYERS, layers)];

/// Every feature on this machine, with `launcher` as the program that tries them.
pub fn rungs(launcher: &LauncherProgram) -> Result<Vec<Rung>, SandboxError> {
    let machine = |source| SandboxError::Machine {
        what: "a check of its namespaces",
        source,
    };
    let output = std::process::Command::new(&launcher.exe)
        .args([PROBE, RUNGS])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(machine)?;
    json::parse_as(&output.stdout).map_err(|error| machine(io::Error::other(error)))
}

/// Whose processes a sandbox of tier `namespaces` sees here; found out once per process.
///
/// Where something is mounted over a part of `/proc`, the kernel may refuse a new one.
pub fn processes() -> Processes {
    static FOUND: OnceLock<Processes> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if !is_masked(&mounts) {
            return Processes::Own;
        }
        let own = Profile::minimal();
        debug_assert_eq!(own.tier, Tier::Namespaces, "only it has a /proc");
        match LauncherProgram::own().trial(own) {
            Err(SandboxError::Start { stage, .. }) if stage == "proc" => Processes::Outer,
            // The real sandbox reports any other refusal.
            Ok(()) | Err(_) => Processes::Own,
        }
    })
}

/// Whether something is mounted over a part of `/proc` that is not made for it.
fn is_masked(mounts: &str) -> bool {
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    targets
        .filter(|target| target.starts_with("/proc/"))
        .any(|target| target != "/proc/sys/fs/binfmt_misc")
}

/// Tries every feature and prints the results; for a process with one thread.
pub(super) fn try_all() -> i32 {
    let kinds = KINDS
        .iter()
        .map(|(name, kind)| (*name, *kind, nothing as Work));
    let inside = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let inside = INSIDE.iter().map(|(name, work)| (*name, inside, *work));
    let rungs: Vec<Rung> = kinds
        .chain(inside)
        .map(|(name, kind, work)| Rung {
            name: name.to_owned(),
            errno: attempt(kind, work).err().map_or(0, Errno::raw_os_error),
        })
        .collect();
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer(&mut out, &rungs).map_err(io::Error::from);
    i32::from(written.and_then(|()| out.flush()).is_err())
}

/// Does `work` in a new user namespace with `kind` of another one.
fn attempt(kind: libc::c_int, work: Work) -> Result<(), Errno> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    match sys::clone_into(libc::CLONE_NEWUSER | kind)? {
        Fork::Child => {
            let done = map_ids(user, group).and_then(|()| work());
            sys::leave(done.err().map_or(0, Errno::raw_os_error))
        }
        Fork::Parent(pid) => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            let ended = rustix::process::waitpid(Some(pid), WaitOptions::empty())?;
            match ended.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                Some(errno) => Err(Errno::from_raw_os_error(errno)),
                None => Err(Errno::IO),
            }
        }
    }
}

fn map_ids(user: u32, group: u32) -> Result<(), Errno> {
    let files = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ];
    for (name, text) in files {
        File::options()
            .write(true)
            .open(format!("/proc/self/{name}"))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "one of several works")]
fn nothing() -> Result<(), Errno> {
    Ok(())
}

fn proc() -> Result<(), Errno> {
    mounted("proc").map(drop)
}

fn memory() -> Result<(), Errno> {
    mounted("tmpfs").map(drop)
}

fn mounted(kind: &str) -> Result<std::os::fd::OwnedFd, Errno> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn layers() -> Result<(), Errno> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)?;
    let tree = mounted("tmpfs")?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&tree, "", CWD, ANYWHERE, flags)?;
    let place = |name: &str| -> Result<PathBuf, Errno> {
        let path = Path::new(ANYWHERE).join(name);
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).map(|()| path)
    };
    let (lower, upper, work) = (place("lower")?, place("upper")?, place("work")?);
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    let links = Path::new(ANYWHERE).join("links");
    overlay::merge(&[lower], &upper, &work, attributes, &links)
        .map(drop)
        .map_err(|failure| Errno::from_raw_os_error(failure.errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_over_proc_is_seen() {
        let line = |target: &str| format!("36 35 0:5 / {target} rw - proc proc rw\n");
        let cases = [
            (line("/proc"), false),
            (line("/proc") + &line("/proc/sys/fs/binfmt_misc"), false),
            (line("/processes"), false),
            (line("/proc") + &line("/proc/kcore"), true),
            (line("/proc/sys"), true),
        ];
        for (mounts, masked) in cases {
            assert_eq!(is_masked(&mounts), masked, "{mounts}");
        }
    }
}
