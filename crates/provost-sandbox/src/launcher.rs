//! The process between driver and sandbox: makes the namespaces and reaps their init.
//!
//! The fork server forks it. It has one thread and an empty environment, and lives as long as the
//! sandbox.
//!
//! # Invariants
//!
//! - When it reports an end, every process of the sandbox is dead. Mounts and handles, which no
//!   process can use, are removed after the report, so that the driver does not wait for that.
//! - When the driver closes its end of the control socket or dies, the sandbox is killed.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd as _, OwnedFd};

use provost_core::json;
use provost_core::tier::Tier;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::error::Failure;
use super::fork_server;
use super::init::{self, Inheritance};
use super::messages::{self, Message, PASSED, Spec};
use super::probe;
use super::profile::{Profile, lacks};
use super::reaper;
use super::refused_program;
use super::sys::{self, Fork};

/// The first argument of a fork server.
pub(crate) const LAUNCHER: &str = "__sandbox";
/// The first argument of a self-test probe.
pub(crate) const PROBE: &str = "__probe";

/// All namespaces of a sandbox but the network's, which init makes.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// Becomes the fork server or the probe if the arguments say so, and then never returns.
///
/// To be called before anything else in `main`: the fork server must have one thread.
pub fn main_if_launcher() {
    let Some(first) = std::env::args_os().nth(1) else {
        return;
    };
    if first == LAUNCHER {
        become_launcher();
    }
    if first == PROBE {
        let argument = std::env::args().nth(2).unwrap_or_default();
        std::process::exit(probe::run(&argument));
    }
    if first == refused_program::REFUSED {
        let program = std::env::args_os().nth(2).unwrap_or_default();
        std::process::exit(refused_program::run(&program));
    }
}

/// Runs the fork server, and in its children the launcher until its sandbox is dead. Uses nothing
/// that `main` would have to set up.
pub(crate) fn become_launcher() -> ! {
    let code = i32::from(fork_server::serve().and_then(run).is_err());
    sys::leave(code)
}

fn run([spec, stdin, stdout, stderr, go, control]: [OwnedFd; PASSED]) -> Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // No two sandboxes share a session.
    rustix::process::setsid()?;
    for (stream, number) in [stdin, stdout, stderr].into_iter().zip(0..) {
        sys::place(stream, number)?;
    }

    let refusal = match read_spec(spec) {
        Ok(spec) if is_child_of(spec.driver) => {
            return match spec.profile.tier {
                Tier::Namespaces => launch(&spec, control, go),
                Tier::Landlock => reaper::launch(spec, control, go),
            };
        }
        Ok(_) => return Err(Errno::SRCH),
        Err(errno) => Message::Failed(Failure::at("spec")(errno)),
    };
    messages::send(&control, &refusal.render(), &[])
}

fn read_spec(memory: OwnedFd) -> Result<Spec, Errno> {
    if !rustix::fs::fcntl_get_seals(&memory)?.contains(messages::seals()) {
        return Err(Errno::PERM);
    }
    let mut text = Vec::new();
    File::from(memory)
        .read_to_end(&mut text)
        .map_err(|_| Errno::IO)?;
    json::parse_own(&text).map_err(|_| Errno::BADMSG)
}

fn is_child_of(driver: i32) -> bool {
    rustix::process::getppid()
        .map(Pid::as_raw_nonzero)
        .map(i32::from)
        == Some(driver)
}

/// Makes the sandbox, waits for it, and reports how it ended once all its processes are dead.
fn launch(spec: &Spec, control: OwnedFd, go: OwnedFd) -> Result<(), Errno> {
    let (status, status_of_init) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let inheritance = inherited(&spec.profile, status_of_init, go);
    match sys::clone_into(namespaces(&spec.profile)) {
        Ok(Fork::Child) => {
            // Only the launcher holds these: their closing is a signal.
            drop((status, control));
            init::run(spec, &inheritance);
        }
        Ok(Fork::Parent(pid)) => {
            drop(inheritance);
            accompany(pid, &control, &File::from(status))
        }
        Err(errno) => {
            let failed = Message::Failed(Failure::at("clone")(errno));
            messages::send(&control, &failed.render(), &[])
        }
    }
}

/// The namespaces of a sandbox; a test may leave out some.
fn namespaces(profile: &Profile) -> libc::c_int {
    let left_out = [
        (lacks!(profile, Users), libc::CLONE_NEWUSER),
        (lacks!(profile, Processes), libc::CLONE_NEWPID),
        (lacks!(profile, Ipc), libc::CLONE_NEWIPC),
        (lacks!(profile, HostName), libc::CLONE_NEWUTS),
    ];
    let left_out = left_out.iter().filter(|(lacking, _)| *lacking);
    left_out.fold(NAMESPACES, |all, (_, kind)| all & !kind)
}

/// What init inherits. Drops the supplementary groups of this process where it may.
pub(crate) fn inherited(profile: &Profile, status: OwnedFd, go: OwnedFd) -> Inheritance {
    let inheritance = Inheritance {
        status,
        go,
        // Inside a new user namespace no user has an id until the map is written.
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    // Groups that are not mapped still give access to files, so they are dropped where permitted.
    if !lacks!(profile, Groups) {
        let _ = rustix::thread::set_thread_groups(&[]);
    }
    inheritance
}

/// Waits for the end of the sandbox, and passes on its last message once all of it is dead.
fn accompany(pid: i32, control: &OwnedFd, status: &File) -> Result<(), Errno> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    let init = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    // Held until after the last message, so that init need not unmount them before it is dead.
    let _mounts = sys::mounts_of(init.as_fd());
    let started = Message::InitStarted(pid.as_raw_nonzero().into());
    messages::send(control, &started.render(), &[])?;
    release_streams()?;
    follow(&init, control, || {
        rustix::process::pidfd_send_signal(&init, Signal::KILL)
    })?;
    // An init that is dead has no living process in its namespace.
    let last = last_message(status)?;
    messages::send(control, &last.render(), &[])?;
    rustix::process::waitpid(Some(pid), WaitOptions::empty()).map(drop)
}

/// The first message of a dead init; [`Message::Killed`] if it sent none.
pub(crate) fn last_message(mut status: &File) -> Result<Message, Errno> {
    let mut lines = Vec::new();
    status.read_to_end(&mut lines).map_err(|_| Errno::IO)?;
    let first = lines.split(|byte| *byte == b'\n').next();
    Ok(first.and_then(Message::parse).unwrap_or(Message::Killed))
}

/// Closes the payload's streams in this process, so that they end when the sandbox ends.
pub(crate) fn release_streams() -> Result<(), Errno> {
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|_| Errno::NOENT)?;
    for number in 0..3 {
        sys::place(&null, number)?;
    }
    Ok(())
}

/// Waits until init is dead; calls `end` once if the driver is gone or closes its end before.
pub(crate) fn follow(
    init: &OwnedFd,
    control: &OwnedFd,
    mut end: impl FnMut() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut driver_there = true;
    loop {
        let mut polled = vec![PollFd::new(init, PollFlags::IN)];
        if driver_there {
            polled.push(PollFd::new(control, PollFlags::IN));
        }
        match rustix::event::poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        let ready = |at: usize| polled.get(at).is_some_and(|one| !one.revents().is_empty());
        if ready(0) {
            return Ok(());
        }
        if ready(1) {
            driver_there = false;
            end()?;
        }
    }
}
