//! Why a sandbox could not be made: the step that failed, and what the user can do about it.

use std::io;
use std::path::PathBuf;

use provost_core::code::{Code, Coded};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::userns_settings;

/// Why a sandbox did not start or could not be followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step of the set-up was refused, or the program could not be executed.
    #[error("the sandbox did not start: {stage}: {}", name(*errno))]
    Start {
        /// The step, such as `clone` or `mount /usr`.
        stage: String,
        /// What the kernel answered.
        errno: i32,
        /// What the user can do about it.
        hint: String,
    },
    /// The profile cannot be serialised.
    #[error("the sandbox profile cannot be written as JSON")]
    Profile(#[source] serde_json::Error),
    /// The launcher does not exist or does not run.
    #[error("the launcher `{}` does not run", exe.display())]
    Launcher { exe: PathBuf, source: io::Error },
    /// The launcher ended without a report how the sandbox ended.
    #[error("the launcher was lost before it said how the sandbox ended")]
    LauncherLost,
    /// The caller could not record the init of the sandbox, so the sandbox was ended.
    #[error("the init process of the sandbox could not be recorded")]
    Birth(#[source] io::Error),
    /// The file of a stream cannot be written.
    #[error("the output file `{}` cannot be written", path.display())]
    Output { path: PathBuf, source: io::Error },
    /// A pipe, socket or process of the driver failed.
    #[error("the machine refused {what}")]
    Machine {
        what: &'static str,
        source: io::Error,
    },
    /// Processes of the sandbox did not die within the time limit.
    #[error("the sandbox with init process {pid} did not die")]
    NotReaped {
        /// The init process, as the host numbers it.
        pid: i32,
    },
}

impl Coded for SandboxError {
    fn code(&self) -> Code {
        match self {
            Self::Start { stage, .. } if stage.starts_with(EXEC) => Code::HostFailed,
            Self::Start { .. } => Code::SandboxUnavailable,
            Self::Profile(_)
            | Self::Launcher { .. }
            | Self::LauncherLost
            | Self::Birth(_)
            | Self::Output { .. }
            | Self::Machine { .. }
            | Self::NotReaped { .. } => Code::HostFailed,
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            Self::Start { hint, .. } => Some(hint),
            _ => None,
        }
    }
}

impl SandboxError {
    /// Whether the machine lacked a free process, and may have one in a moment.
    pub(crate) fn is_transient(&self) -> bool {
        let again = Errno::AGAIN.raw_os_error();
        match self {
            Self::Start { stage, errno, .. } => stage == "clone" && *errno == again,
            Self::Machine { source, .. } | Self::Launcher { source, .. } => {
                source.raw_os_error() == Some(again)
            }
            Self::Profile(_)
            | Self::LauncherLost
            | Self::Birth(_)
            | Self::Output { .. }
            | Self::NotReaped { .. } => false,
        }
    }

    /// Whether the sandbox was made and only the program in it could not be executed.
    pub fn is_exec(&self) -> bool {
        matches!(self, Self::Start { stage, .. } if stage.starts_with(EXEC))
    }

    /// The message about a program that could not be executed.
    pub fn exec_words(&self) -> String {
        match self {
            Self::Start { stage, errno, hint } => {
                let program = stage.strip_prefix(EXEC).unwrap_or(stage).trim_start();
                format!("cannot start `{program}`: {}\n{hint}\n", name(*errno))
            }
            other => format!("{other}\n"),
        }
    }

    pub(crate) fn machine(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Machine {
            what,
            source: errno.into(),
        }
    }
}

/// The stage of a program that cannot be executed begins with this.
pub(crate) const EXEC: &str = "exec";

/// A step of the set-up that was refused, as it travels from the sandbox to the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) stage: String,
    pub(crate) errno: i32,
}

impl Failure {
    pub(crate) fn at(stage: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        move |errno| Self {
            stage: stage.into(),
            errno: errno.raw_os_error(),
        }
    }

    pub(crate) fn io(stage: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::at(stage)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl From<Failure> for SandboxError {
    fn from(failure: Failure) -> Self {
        let hint = remedy(&failure.stage, failure.errno);
        Self::Start {
            stage: failure.stage,
            errno: failure.errno,
            hint,
        }
    }
}

/// The text of an errno, without its number.
pub(crate) fn name(errno: i32) -> String {
    if errno == 0 {
        return "refused".to_owned();
    }
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The name of an errno in the manual pages, such as `EPERM`.
pub fn symbol(errno: i32) -> String {
    const NAMES: [(Errno, &str); 14] = [
        (Errno::PERM, "EPERM"),
        (Errno::NOENT, "ENOENT"),
        (Errno::IO, "EIO"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::ACCESS, "EACCES"),
        (Errno::BUSY, "EBUSY"),
        (Errno::NODEV, "ENODEV"),
        (Errno::INVAL, "EINVAL"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::ROFS, "EROFS"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::USERS, "EUSERS"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    ];
    let known = NAMES
        .iter()
        .find(|(known, _)| known.raw_os_error() == errno);
    known.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

/// What the user can do about a refusal of `stage`.
pub(crate) fn remedy(stage: &str, errno: i32) -> String {
    let word = stage.split(' ').next().unwrap_or(stage);
    let text = match (word, Errno::from_raw_os_error(errno)) {
        ("clone" | "fork", Errno::AGAIN) => {
            "there is no process left for this user: end some, or raise the limit (`ulimit -u`, \
             TasksMax of the service, or the pids limit of the container)"
        }
        ("clone", Errno::INVAL | Errno::NOSYS) => {
            "the kernel has no user namespaces: use one built with CONFIG_USER_NS"
        }
        ("clone", Errno::NOSPC | Errno::USERS) if userns_settings::switched_off().is_empty() => {
            "no user namespace is left: raise the sysctl user.max_user_namespaces"
        }
        ("clone" | "uid_map" | "gid_map" | "setgroups", _)
        | ("mount" | "root" | "pivot_root", Errno::PERM | Errno::ACCESS) => {
            return userns_settings::remedy();
        }
        ("network", Errno::NOSPC | Errno::USERS) => {
            "no network namespace is left: raise the sysctl user.max_net_namespaces"
        }
        ("network", Errno::OPNOTSUPP) => {
            "tier `landlock` has no network of its own, and cannot enforce a grant: use \
             tier `namespaces`, or no network"
        }
        ("network", Errno::PERM | Errno::ACCESS | Errno::NOSYS) => {
            "a network of its own is refused: in a container allow unshare and setns"
        }
        ("proc" | "program" | "root" | "mount" | "descriptors", Errno::NOSYS) => {
            "the kernel lacks a call that every sandbox needs: Linux 5.13 or newer is needed"
        }
        ("proc", _) => {
            "the outer /proc is masked, as container engines do: run the container with \
             `--security-opt systempaths=unconfined`, or outside a container"
        }
        ("mount" | "protect", Errno::NOENT) => {
            "the path does not exist: look at the profile's mounts"
        }
        ("overlay", _) => {
            "the file system of the workspaces cannot carry an overlay: move them to another with \
             XDG_CACHE_HOME, or set `kind = \"copy\"` under `[workspace]` in provost.toml"
        }
        ("place", Errno::OPNOTSUPP) => {
            "tier `landlock` cannot mount anything: no overlay (set `kind = \"copy\"` under \
             `[workspace]` in provost.toml), and nothing prepared inside the workspace; or use tier \
             `namespaces`"
        }
        ("place", _) => "the path must exist, and the directory for temporary files be writable",
        ("protect", Errno::LOOP) => "a protected path must not lead through a symbolic link",
        ("landlock", _) => {
            "tier `namespaces` needs Linux 5.13 or newer with `landlock` in the lsm= list, tier \
             `landlock` Linux 6.12"
        }
        ("seccomp", _) => "the kernel must be built with CONFIG_SECCOMP_FILTER",
        ("program", _) => "the file of the running program was replaced or moved: start it again",
        ("workdir", _) => "the working directory must exist inside the sandbox",
        (EXEC, Errno::NOENT) => {
            "no such program inside the sandbox: only /usr and the mounted toolchains are there"
        }
        (EXEC, Errno::ACCESS) => "the program is not executable",
        (EXEC, Errno::NOEXEC) => "the program is neither a binary nor a script with a #! line",
        (EXEC, Errno::TOOBIG) => "the arguments and the environment are too long",
        _ => "see `provost doctor`",
    };
    text.to_owned()
}
