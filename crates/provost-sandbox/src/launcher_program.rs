//! Starts a sandbox: passes the spec to a launcher and waits until the init of the sandbox exists.
//!
//! The payload does not run before the driver has recorded the identity of init.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;

use super::broker_listener;
use super::error::SandboxError;
use super::fork_server;
use super::limit_watch::LimitWatch;
use super::messages::{self, Message, Spec};
use super::process_identity::ProcessIdentity;
use super::profile::{Network, Profile};
use super::proxy_listener;
use super::running::{PATIENCE, Running};
use super::streams::Stream;
use crate::proxy::{Outlet, Proxy};

/// What runs in a sandbox.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments; a program without `/` is looked up in the sandbox's PATH.
    pub argv: Vec<String>,
    pub stdin: Stdin,
    /// The file for standard output; truncated at the start.
    pub stdout: PathBuf,
    /// The file for standard error; truncated at the start.
    pub stderr: PathBuf,
}

/// Standard input of a payload.
#[derive(Debug, Clone)]
pub enum Stdin {
    Null,
    /// These bytes. They wait in memory, so a payload that never reads blocks no writer.
    Bytes(Vec<u8>),
    /// This pipe, written while the payload runs.
    Pipe(Arc<OwnedFd>),
    /// This end of a [`super::Terminal`]; both output streams go there too, and to no file.
    Terminal(PathBuf),
}

/// The program of fork server and launcher; its `main` calls [`super::main_if_launcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherProgram {
    pub exe: PathBuf,
}

impl LauncherProgram {
    /// The running program itself, even if its file was replaced.
    pub fn own() -> Self {
        Self {
            exe: "/proc/self/exe".into(),
        }
    }

    /// Starts `command` in a sandbox as `profile` describes it.
    ///
    /// `on_birth` gets the identity of init before the payload runs; if it fails, the sandbox is
    /// ended. The sandbox dies with the calling thread, so call this from a thread that outlives
    /// the sandbox.
    pub fn start(
        &self,
        profile: &Profile,
        command: &Command,
        on_birth: impl FnOnce(&ProcessIdentity) -> io::Result<()>,
    ) -> Result<Running, SandboxError> {
        self.start_with(profile, command, Outlet::default(), on_birth)
    }

    /// Like [`LauncherProgram::start`]; `outlet` is what the sandbox's proxy needs from the host.
    pub fn start_with(
        &self,
        profile: &Profile,
        command: &Command,
        outlet: Outlet,
        on_birth: impl FnOnce(&ProcessIdentity) -> io::Result<()>,
    ) -> Result<Running, SandboxError> {
        let (mut running, birth) = patiently(|| self.create(profile, command))?;
        running.limit_watch.enter(birth.pid);
        on_birth(running.birth.insert(birth)).map_err(SandboxError::Birth)?;
        if let Network::Proxy(grants) = &profile.network {
            let listener = running.go.as_ref().and_then(proxy_listener::receive);
            let Some(listener) = listener else {
                return Err(refusal(running.next_message(PATIENCE)?));
            };
            let outlet = Outlet {
                any_place: profile.any_place,
                ..outlet
            };
            let proxy = Proxy::start(listener, grants.clone(), outlet);
            running.proxy = Some(proxy.map_err(|source| SandboxError::Machine {
                what: "the proxy",
                source,
            })?);
        }
        if profile.broker {
            let listener = running.go.as_ref().and_then(broker_listener::receive);
            let Some(listener) = listener else {
                return Err(refusal(running.next_message(PATIENCE)?));
            };
            running.broker = Some(listener);
        }
        running.go(profile.tier);
        Ok(running)
    }

    /// Makes the sandbox, whose payload does not run yet.
    fn create(
        &self,
        profile: &Profile,
        command: &Command,
    ) -> Result<(Running, ProcessIdentity), SandboxError> {
        let running = self.spawn(profile, command)?;
        let birth = match running.next_message(PATIENCE)? {
            Some(Message::InitStarted(pid)) => ProcessIdentity::of(pid),
            other => return Err(refusal(other)),
        };
        match birth {
            Some(birth) => Ok((running, birth.keeping(profile.tier))),
            None => Err(refusal(running.next_message(PATIENCE)?)),
        }
    }

    fn spawn(&self, profile: &Profile, command: &Command) -> Result<Running, SandboxError> {
        let spec = Spec {
            driver: i32::try_from(std::process::id()).unwrap_or(0),
            profile: profile.clone(),
            argv: command.argv.clone(),
            terminal: matches!(command.stdin, Stdin::Terminal(_)),
            temporary: std::env::temp_dir(),
        };
        let on_terminal = spec.terminal;
        let spec = serde_json::to_vec(&spec).map_err(SandboxError::Profile)?;
        let spec =
            messages::sealed("provost-box", &spec).map_err(SandboxError::machine("memory"))?;
        let stdin = stdin(&command.stdin)?;
        let limits = profile.limits;
        let (stdout, stdout_of_sandbox) = pipe()?;
        let (stderr, stderr_of_sandbox) = pipe()?;
        let stdout = Stream::create(stdout, &command.stdout, limits.output_bytes)?;
        let stderr = Stream::create(stderr, &command.stderr, limits.output_bytes)?;
        let (stdout_of_sandbox, stderr_of_sandbox) = if on_terminal {
            // The write ends of the pipes close unused, so the pipes end at once.
            let again = || {
                stdin.try_clone().map_err(|source| SandboxError::Machine {
                    what: "a terminal",
                    source,
                })
            };
            (again()?, again()?)
        } else {
            (stdout_of_sandbox, stderr_of_sandbox)
        };
        let (control, control_of_launcher) = sockets()?;
        let (go_of_init, go) = sockets()?;
        let passed = [
            spec.as_fd(),
            stdin.as_fd(),
            stdout_of_sandbox.as_fd(),
            stderr_of_sandbox.as_fd(),
            go_of_init.as_fd(),
            control_of_launcher.as_fd(),
        ];
        let launcher = fork_server::spawn_launcher(&self.exe, &passed)?;
        Ok(Running {
            launcher,
            control,
            go: Some(go),
            proxy: None,
            broker: None,
            birth: None,
            stdout,
            stderr,
            limits,
            limit_watch: LimitWatch::new(profile),
            since: Instant::now(),
            over: false,
        })
    }
}

/// How long [`patiently`] retries while the machine has no free process.
const CROWDED: Duration = Duration::from_secs(2);
/// The first pause between two tries; each one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Retries for a while what the machine refused only for lack of processes.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, SandboxError>) -> Result<T, SandboxError> {
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt() {
            Err(error) if error.is_transient() && since.elapsed() + pause < CROWDED => {
                std::thread::sleep(pause);
                pause *= 2;
            }
            answer => return answer,
        }
    }
}

/// Why a sandbox was not made, from the launcher's message.
fn refusal(message: Option<Message>) -> SandboxError {
    match message {
        Some(Message::Failed(failure)) => failure.into(),
        Some(
            Message::InitStarted(_)
            | Message::Exited(_)
            | Message::Signalled(_)
            | Message::UsedUp
            | Message::Killed
            | Message::NotReaped,
        )
        | None => SandboxError::LauncherLost,
    }
}

fn stdin(stdin: &Stdin) -> Result<OwnedFd, SandboxError> {
    match stdin {
        Stdin::Bytes(bytes) => {
            messages::sealed("provost-stdin", bytes).map_err(SandboxError::machine("memory"))
        }
        Stdin::Pipe(pipe) => pipe.try_clone().map_err(|source| SandboxError::Machine {
            what: "a pipe",
            source,
        }),
        Stdin::Terminal(path) => terminal(path).map_err(|source| SandboxError::Machine {
            what: "a terminal",
            source: source.into(),
        }),
        Stdin::Null => File::open("/dev/null")
            .map(OwnedFd::from)
            .map_err(|source| SandboxError::Machine {
                what: "/dev/null",
                source,
            }),
    }
}

/// Opens a terminal without making it the controlling one of this process.
fn terminal(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty())
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(SandboxError::machine("a pipe"))
}

/// A pair of packet sockets; writing to a closed one raises no signal.
pub(crate) fn sockets() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(SandboxError::machine("a socket"))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    fn refused(errno: Errno) -> SandboxError {
        SandboxError::machine("a launcher")(errno)
    }

    #[test]
    fn only_a_lack_of_processes_is_retried_and_not_for_ever() {
        let mut asked = 0;
        let mut twice_crowded = || {
            asked += 1;
            if asked < 3 {
                Err(refused(Errno::AGAIN))
            } else {
                Ok(asked)
            }
        };
        assert_eq!(patiently(&mut twice_crowded).unwrap(), 3);

        let mut asked = 0;
        let mut forbidden = || -> Result<(), SandboxError> {
            asked += 1;
            Err(refused(Errno::PERM))
        };
        patiently(&mut forbidden).unwrap_err();
        assert_eq!(asked, 1);

        let since = Instant::now();
        patiently(|| -> Result<(), SandboxError> { Err(refused(Errno::AGAIN)) }).unwrap_err();
        assert!(since.elapsed() < CROWDED);
    }
}
