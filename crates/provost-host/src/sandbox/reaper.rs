//! Keeps a sandbox that has no namespaces: two processes inherit whatever the payload leaves, and end it.
//!
//! The launcher is the outer keeper, init the inner one. A pid namespace would do this in one stroke;
//! here each of the two notices when the other or the driver is gone, and ends everybody.
//!
//! # Invariants
//!
//! - Init leaves last, after every process of the sandbox, unless somebody outside kills it; then the
//!   launcher ends its orphans before it reports.
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
use super::without_mounts::settle;

/// How often orphans are reaped.
const ROUND: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Is the outer keeper: makes the sandbox, follows it, and says how it ended once all of it is dead.
pub(crate) fn launch(spec: Spec, control: OwnedFd, go: OwnedFd) -> Result<(), Errno> {
    // Init lets go of it: its closing tells the driver that the launcher is gone.
    let mut control = Some(control);
    // The end of the control socket tells that the driver is gone; dying with it would leave others.
    rustix::process::set_parent_process_death_signal(None)?;
    descendants::keep()?;
    let made = Scratch::make(&spec.temporary).map_err(Failure::io("place for scratch"));
    let last = made.and_then(|scratch| {
        let last = settle(spec, &scratch).map(|spec| accompany(&spec, &scratch, &mut control, go));
        let dead = descendants::end();
        scratch.remove();
        last.map(|last| if dead { last } else { Message::Undead })
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
            let born = Message::Born(pid.as_raw_nonzero().into());
            messages::send(control, &born.render(), &[])?;
            launcher::release_streams()?;
            follow(&init, control, File::from(status))
        }
    }
}

/// Waits until init is dead; when the driver is gone or closes its end, init is told to end all.
fn follow(init: &OwnedFd, control: &OwnedFd, status: File) -> Result<Message, Errno> {
    let mut status = Some(status);
    launcher::follow(init, control, || {
        // Nobody reads what init says any more, which is its word to end all.
        status = None;
        Ok(())
    })?;
    status.map_or(Ok(Message::Killed), |status| launcher::last_word(&status))
}

/// Is the inner keeper until everything the payload started is dead.
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
    init::report(status, if dead { &last } else { &Message::Undead });
    sys::leave(0)
}

fn set_up(inheritance: &Inheritance) -> Result<(), Failure> {
    // Until there is a payload, dying with the launcher leaves nobody behind.
    let die = rustix::process::set_parent_process_death_signal;
    die(Some(Signal::KILL)).map_err(Failure::at("death signal"))?;
    if init::launcher_is_gone(&inheritance.status).map_err(Failure::at("death signal"))? {
        sys::leave(1);
    }
    descendants::keep().map_err(Failure::at("keeper"))?;
    // What init holds, the pipes above all, is not for the payload.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Failure::at("dumpable"))?;
    init::wait_for_word(&inheritance.go)?;
    die(None).map_err(Failure::at("death signal"))
}

/// Reaps until the payload has ended, and says how; nothing if the launcher wants all to end.
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
