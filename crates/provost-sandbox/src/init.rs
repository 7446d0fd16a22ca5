//! The first process of a sandbox: sets up its restrictions, starts the payload, and reaps.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use provost_core::tier::Processes;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal, WaitOptions, WaitStatus};

use super::error::Failure;
use super::messages::{Message, Spec};
use super::minimal_root::INSIDE_ID;
use super::profile::{Network, Profile, lacks};
use super::sys;
use super::{broker_listener, launcher, memory_use, network, payload, proxy_listener, root};

/// How long, and after which pauses, init retries while the machine has no free process.
const CROWDED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// What init inherits from the launcher.
pub(crate) struct Inheritance {
    /// Init writes [`Message`]s here, one a line; only the first one counts.
    pub(crate) status: OwnedFd,
    /// Carries [`super::messages::GO`] from the driver, and the listener of a proxy to it.
    pub(crate) go: OwnedFd,
    /// The driver's user id.
    pub(crate) user: u32,
    /// The driver's group id.
    pub(crate) group: u32,
}

/// Runs init until the payload ends; then the kernel kills every process that is left.
pub(crate) fn run(spec: &Spec, inheritance: &Inheritance) -> ! {
    let status = &inheritance.status;
    match set_up(spec, inheritance).and_then(|()| start(spec)) {
        Ok(pid) => {
            let _ = launcher::release_streams();
            let ended = reap(pid);
            let failed = !matches!(ended, Message::Exited(0));
            let last = if failed && is_full(&spec.profile) {
                Message::UsedUp
            } else {
                ended
            };
            report(status, &last);
        }
        Err(failure) => report(status, &Message::Failed(failure)),
    }
    sys::leave(0)
}

/// Whether the sandbox has as many processes as it may, counting the payload that just ended.
///
/// The kernel has then refused another one, and programs seldom say that this is why they failed.
fn is_full(profile: &Profile) -> bool {
    if profile.processes != Processes::Own {
        return false;
    }
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries(Path::new("/proc")).filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
    });
    let tasks: usize = processes
        .map(|process| entries(&process.path().join("task")).count())
        .sum();
    tasks as u64 + 1 >= profile.limits.processes
}

/// Starts the payload; fails if its program could not be executed.
pub(crate) fn start(spec: &Spec) -> Result<i32, Failure> {
    let mut refused = None;
    let deadline = Instant::now() + CROWDED;
    let pid = loop {
        let forked = sys::spawn(&mut || {
            refused = Some(payload::run(spec));
            127
        });
        match forked {
            // The machine may lack a free process only for a moment.
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            forked => break forked.map_err(Failure::at("fork"))?,
        }
    };
    refused.map_or(Ok(pid), Err)
}

fn set_up(spec: &Spec, inheritance: &Inheritance) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Failure::at("death signal"))?;
    if launcher_is_gone(&inheritance.status).map_err(Failure::at("death signal"))? {
        sys::leave(1);
    }
    let set_up = || {
        map_ids(spec, inheritance)?;
        root::build(&spec.profile)?;
        if lacks!(spec.profile, HostName) {
            return Ok(());
        }
        rustix::system::sethostname(b"sandbox").map_err(Failure::at("hostname"))
    };
    if lacks!(spec.profile, Network) {
        set_up()?;
    } else {
        network::enter_beside(set_up)?;
        if spec.profile.network != Network::Deny {
            sys::loopback_up().map_err(Failure::at("loopback"))?;
        }
    }
    if matches!(spec.profile.network, Network::Proxy(_)) {
        proxy_listener::open(&inheritance.go).map_err(Failure::at("proxy"))?;
    }
    if spec.profile.broker {
        broker_listener::open(&inheritance.go).map_err(Failure::at("broker"))?;
    }
    memory_use::hand_over(&inheritance.go).map_err(Failure::at("memory lists"))?;
    // The payload must not reach the descriptors of init, above all the pipes.
    if !lacks!(spec.profile, Init) {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(Failure::at("dumpable"))?;
    }
    wait_for_go(&inheritance.go)
}

/// Whether the read end of the status pipe is closed. Notices a launcher that died before init set
/// its death signal.
pub(crate) fn launcher_is_gone(status: &OwnedFd) -> Result<bool, Errno> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::new(status, PollFlags::OUT)];
    rustix::event::poll(&mut polled, Some(&now))?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

/// Maps the user inside to the driver's user; no other user exists inside.
fn map_ids(spec: &Spec, inheritance: &Inheritance) -> Result<(), Failure> {
    let Inheritance { user, group, .. } = *inheritance;
    if lacks!(spec.profile, Users) {
        return Ok(());
    }
    let inside = |outside: u32| {
        if lacks!(spec.profile, Ids) {
            outside
        } else {
            INSIDE_ID
        }
    };
    let files = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{} {user} 1", inside(user))),
        ("gid_map", format!("{} {group} 1", inside(group))),
    ];
    for (name, text) in files {
        File::options()
            .write(true)
            .open(format!("/proc/self/{name}"))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .map_err(Failure::at(name))?;
    }
    Ok(())
}

/// Waits until the driver has recorded that this sandbox exists.
pub(crate) fn wait_for_go(go: impl AsFd + Copy) -> Result<(), Failure> {
    let mut word = [0; 8];
    loop {
        match rustix::io::read(go, &mut word) {
            Ok(0) => sys::leave(1),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Failure::at("go")(errno)),
        }
    }
}

/// Reaps every process until the payload has ended; returns how it ended.
fn reap(payload: i32) -> Message {
    loop {
        let (pid, status) = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(Errno::INTR) => continue,
            Err(errno) => return Message::Failed(Failure::at("wait")(errno)),
        };
        if i32::from(pid.as_raw_nonzero()) != payload {
            continue;
        }
        if let Some(message) = ending(status) {
            return message;
        }
    }
}

/// How a process ended, if it did.
pub(crate) fn ending(status: WaitStatus) -> Option<Message> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Message::Exited(code)),
        (_, Some(signal)) => Some(Message::Signalled(signal)),
        _ => None,
    }
}

pub(crate) fn report(status: impl AsFd, message: &Message) {
    let mut line = message.render();
    line.push(b'\n');
    // If the launcher is gone, no process reads this, and init is dying already.
    let _ = rustix::io::write(status, &line);
}
