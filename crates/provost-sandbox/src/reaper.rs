//! Reaps a sandbox without namespaces: two processes adopt the payload's orphans, and kill them.
//!
//! The launcher is the outer reaper, init the inner one. A pid namespace would do this in one step.
//! Here each of the two notices when the other or the driver is gone, and kills all the others.
//!
//! # Invariants
//!
//! - Init exits last, after every process of the sandbox, unless a process outside kills it; then
//!   the launcher kills its orphans before it reports.
//! - The scratch directory is gone before the end is reported.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use super::descendants;
use super::error::Failure;
use super::init::{self, Inheritance};
use super::launcher::{self, inherited};
use super::messages::{self, Message, Spec};
use super::scratch::Scratch;
use super::sys::{self, Fork};
use super::without_mounts::rewrite;

/// How often orphans are reaped.
const ROUND: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Runs the outer reaper: makes the sandbox, waits for it, and reports how it ended once all its
/// processes are dead.
pub(crate) fn launch(spec: Spec, control: OwnedFd, go: OwnedFd) -> Result<(), Errno> {
    // Init closes its copy: the driver takes the closing as a sign that the launcher is gone.
    let mut control = Some(control);
    // The launcher notices the driver's death by the control socket. Dying with the driver would
    // leave other processes behind.
    rustix::process::set_parent_process_death_signal(None)?;
    descendants::adopt()?;
    let made = Scratch::make(&spec.temporary).map_err(Failure::io("place for scratch"));
    let last = made.and_then(|scratch| {
        let last = rewrite(spec, &scratch).map(|spec| accompany(&spec, &scratch, &mut control, go));
        let dead = descendants::end();
        scratch.remove();
        last.map(|last| if dead { last } else { Message::NotReaped })
    });
    let last = last.unwrap_or_else(Message::Failed);
    let control = control.ok_or(Errno::BADF)?;
    messages::send(control, &last.render(), &[])
}

fn accompany(
    spec: &Spec,
    scratch: &Scratch,
    control: &mut Option<OwnedFd>,
    go: OwnedFd,
) -> Message {
    match begin(spec, scratch, control, go) {
        Ok(message) => message,
        Err(errno) => Message::Failed(Failure::at("fork")(errno)),
    }
}

fn begin(
    spec: &Spec,
    scratch: &Scratch,
    control: &mut Option<OwnedFd>,
    go: OwnedFd,
) -> Result<Message, Errno> {
    let (status, status_of_init) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let inheritance = inherited(&spec.profile, status_of_init, go);
    match sys::fork()? {
        Fork::Child => {
            drop((status, control.take()));
            run(spec, &inheritance, scratch)
        }
        Fork::Parent(pid) => {
            drop(inheritance);
            let control = control.as_ref().ok_or(Errno::BADF)?;
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            let init = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
            let started = Message::InitStarted(pid.as_raw_nonzero().into());
            messages::send(control, &started.render(), &[])?;
            launcher::release_streams()?;
            follow(&init, control, File::from(status))
        }
    }
}

/// Waits until init is dead. When the driver is gone or closes its end, init gets the signal to
/// kill all the others.
fn follow(init: &OwnedFd, control: &OwnedFd, status: File) -> Result<Message, Errno> {
    let mut status = Some(status);
    launcher::follow(init, control, || {
        // The closed status pipe is the signal for init to kill all the others.
        status = None;
        Ok(())
    })?;
    status.map_or(Ok(Message::Killed), |status| {
        launcher::last_message(&status)
    })
}

/// Runs the inner reaper until everything the payload started is dead.
fn run(spec: &Spec, inheritance: &Inheritance, scratch: &Scratch) -> ! {
    let status = &inheritance.status;
    let last = match set_up(inheritance).and_then(|()| init::start(spec)) {
        Ok(payload) => {
            let _ = launcher::release_streams();
            wait(payload, status).unwrap_or(Message::Killed)
        }
        Err(failure) => Message::Failed(failure),
    };
    let dead = descendants::end();
    if init::launcher_is_gone(status).unwrap_or(true) {
        scratch.remove();
    }
    init::report(status, if dead { &last } else { &Message::NotReaped });
    sys::leave(0)
}

fn set_up(inheritance: &Inheritance) -> Result<(), Failure> {
    // Until there is a payload, dying with the launcher leaves no process behind.
    let die = rustix::process::set_parent_process_death_signal;
    die(Some(Signal::KILL)).map_err(Failure::at("death signal"))?;
    if init::launcher_is_gone(&inheritance.status).map_err(Failure::at("death signal"))? {
        sys::leave(1);
    }
    descendants::adopt().map_err(Failure::at("subreaper"))?;
    // The payload must not reach the descriptors of init, above all the pipes.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Failure::at("dumpable"))?;
    init::wait_for_go(&inheritance.go)?;
    die(None).map_err(Failure::at("death signal"))
}

/// Reaps until the payload has ended, and returns how; `None` if the launcher wants all to end.
fn wait(payload: i32, status: &OwnedFd) -> Option<Message> {
    let pid = Pid::from_raw(payload)?;
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    loop {
        let mut polled = [
            PollFd::new(&handle, PollFlags::IN),
            PollFd::new(status, PollFlags::empty()),
        ];
        match rustix::event::poll(&mut polled, Some(&ROUND)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        if polled[1].revents().contains(PollFlags::ERR) {
            return None;
        }
        while let Ok(Some((ended, how))) = rustix::process::wait(WaitOptions::NOHANG) {
            if ended == pid {
                return init::ending(how);
            }
        }
    }
}
