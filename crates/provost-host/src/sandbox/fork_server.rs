//! Bears the launchers of a thread: a process that was executed once and forks one for each sandbox.
//!
//! It is a re-exec of the program itself, so that the fork happens in a process with one thread and
//! an empty environment. To start a program takes longer than all else a launcher does; so the sandboxes
//! of a thread share that, and nothing else.
//!
//! # Invariants
//!
//! - A launcher is the driver's child and not the nursery's: it dies with the thread of the driver
//!   that wanted it, and the driver buries it.
//! - The nursery reads nothing of what it passes on, and holds none of it once a launcher is born.
//! - It goes with the thread it serves.

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::driver::sockets;
use super::error::SandboxError;
use super::launcher::{self, LAUNCHER};
use super::messages::{self, PASSED};
use super::process_identity::timespec;
use super::running::{PATIENCE, reap};
use super::sys::{self, Fork};

thread_local! {
    /// The one of this thread, because a process dies with the thread that started it.
    static OWN: Cell<Option<ForkServer>> = const { Cell::new(None) };
}

/// A nursery, as its driver has it.
struct ForkServer {
    exe: PathBuf,
    /// A child that nobody else waits for, so that its number stays its own.
    process: Pid,
    socket: OwnedFd,
}

/// Has `exe` become the launcher of a sandbox that gets what is `passed`; see [`serve`].
pub(crate) fn bear(exe: &Path, passed: &[BorrowedFd<'_>; PASSED]) -> Result<Pid, SandboxError> {
    let nursery = match OWN.take() {
        Some(nursery) if nursery.exe == exe && nursery.pass(passed).is_ok() => nursery,
        // Somebody ended the one there was.
        _ => {
            let nursery = ForkServer::start(exe)?;
            // A program that is no launcher may have left already.
            nursery
                .pass(passed)
                .map_err(|_| SandboxError::LauncherLost)?;
            nursery
        }
    };
    let launcher = nursery.answer()?;
    OWN.set(Some(nursery));
    Ok(launcher)
}

impl ForkServer {
    fn start(exe: &Path) -> Result<Self, SandboxError> {
        let (socket, socket_of_nursery) = sockets()?;
        // Its descriptors are placed by the standard library, so none leaks into a process that
        // another thread starts meanwhile; its environment is empty, so no secret gets near a sandbox.
        let child = Command::new(exe)
            .arg(LAUNCHER)
            .env_clear()
            .stdin(socket_of_nursery)
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

    /// The launcher that was born.
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
        reap(self.process);
    }
}

/// Is the nursery until the driver lets go of it; returns in every launcher, with what was passed.
pub(crate) fn serve() -> Result<[OwnedFd; PASSED], Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The driver's parents may have left some open, and a sandbox holds nothing of the host.
    sys::close_inherited()?;
    // The keyboard's signals are for the driver, who decides.
    let _ = rustix::process::setsid();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    launcher::release_streams()?;
    loop {
        let (_, descriptors) = messages::receive(&socket)?;
        // The end of the socket has none.
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
