//! Fork server: one pre-executed process for each driver thread, which forks a launcher per
//! sandbox.
//!
//! It is a re-exec of the program itself, so that the fork happens in a process with one thread and
//! an empty environment. Executing a program takes longer than everything else a launcher does. The
//! sandboxes of a thread share that cost, and nothing else.
//!
//! # Invariants
//!
//! - A launcher is the driver's child and not the fork server's: it dies with the driver thread
//!   that asked for it, and the driver reaps it.
//! - The fork server reads nothing of what it passes on, and closes all of it after the fork.
//! - The fork server dies with the thread it serves.

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::error::SandboxError;
use super::launcher::{self, LAUNCHER};
use super::launcher_program::sockets;
use super::messages::{self, PASSED};
use super::process_identity::timespec;
use super::running::{PATIENCE, reap_launcher};
use super::sys::{self, Fork};

thread_local! {
    /// One for each thread, because a process dies with the thread that started it.
    static OWN: Cell<Option<ForkServer>> = const { Cell::new(None) };
}

/// The driver's side of a fork server.
struct ForkServer {
    exe: PathBuf,
    /// A child that only this value waits for, so that the kernel does not reuse its pid.
    process: Pid,
    socket: OwnedFd,
}

/// Forks a launcher from `exe` and gives it the descriptors `passed`; see [`serve`].
pub(crate) fn spawn_launcher(
    exe: &Path,
    passed: &[BorrowedFd<'_>; PASSED],
) -> Result<Pid, SandboxError> {
    let server = match OWN.take() {
        Some(server) if server.exe == exe && server.pass(passed).is_ok() => server,
        // There is none yet, it is another program's, or it was killed.
        _ => {
            let server = ForkServer::start(exe)?;
            // A program that is no launcher may have exited already.
            server
                .pass(passed)
                .map_err(|_| SandboxError::LauncherLost)?;
            server
        }
    };
    let launcher = server.answer()?;
    OWN.set(Some(server));
    Ok(launcher)
}

impl ForkServer {
    fn start(exe: &Path) -> Result<Self, SandboxError> {
        let (socket, socket_of_server) = sockets()?;
        // The standard library places the descriptors, so none leaks into a process that another
        // thread starts meanwhile. The environment is empty, so no secret gets near a sandbox.
        let child = Command::new(exe)
            .arg(LAUNCHER)
            .env_clear()
            .stdin(socket_of_server)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| SandboxError::Launcher {
                exe: exe.to_owned(),
                source,
            })?;
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self {
            exe: exe.to_owned(),
            process: process.ok_or(SandboxError::LauncherLost)?,
            socket,
        })
    }

    fn pass(&self, passed: &[BorrowedFd<'_>; PASSED]) -> Result<(), Errno> {
        messages::send(&self.socket, b"sandbox", passed)
    }

    /// The pid of the launcher that the fork server forked.
    fn answer(&self) -> Result<Pid, SandboxError> {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        let ready = loop {
            match rustix::event::poll(&mut polled, Some(&timespec(PATIENCE))) {
                Err(Errno::INTR) => {}
                answer => break answer.map_err(SandboxError::machine("poll"))?,
            }
        };
        if ready == 0 {
            return Err(SandboxError::LauncherLost);
        }
        let answer = messages::receive(&self.socket).map_or(Vec::new(), |(answer, _)| answer);
        let answer = <[u8; 4]>::try_from(answer).map_err(|_| SandboxError::LauncherLost)?;
        let answer = i32::from_ne_bytes(answer);
        if answer < 0 {
            let errno = Errno::from_raw_os_error(-answer);
            return Err(SandboxError::machine("a launcher")(errno));
        }
        Pid::from_raw(answer).ok_or(SandboxError::LauncherLost)
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.process, Signal::KILL);
        reap_launcher(self.process);
    }
}

/// Runs the fork server until the driver closes its socket. Returns only in a launcher that was
/// forked, with the descriptors for it.
pub(crate) fn serve() -> Result<[OwnedFd; PASSED], Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The driver's parents may have left descriptors open; a sandbox gets none of the host's.
    sys::close_inherited()?;
    // Signals from the keyboard go to the driver alone, which decides.
    let _ = rustix::process::setsid();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    launcher::release_streams()?;
    loop {
        let (_, descriptors) = messages::receive(&socket)?;
        // A closed socket yields an empty packet without descriptors.
        let passed = <[OwnedFd; PASSED]>::try_from(descriptors).map_err(|_| Errno::BADMSG)?;
        let answer = match sys::clone_into(libc::CLONE_PARENT) {
            Ok(Fork::Child) => return Ok(passed),
            Ok(Fork::Parent(launcher)) => launcher,
            Err(errno) => -errno.raw_os_error(),
        };
        drop(passed);
        messages::send(&socket, &answer.to_ne_bytes(), &[])?;
    }
}
