//! Kills everything that a process started, where no pid namespace does it in one step.
//!
//! A subreaper adopts the orphans among its descendants. Killing its children makes their children
//! its own, and so on until none is left. A process that forks all the time loses this race,
//! because a round costs the reaper less than a fork costs the process. A time limit applies
//! anyway.

use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::running::PATIENCE;
use crate::process::Status;

/// How long a reaper waits for the next process to die.
const PAUSE: Duration = Duration::from_micros(200);

/// Makes this process a subreaper: it adopts the orphans among its descendants.
pub(crate) fn adopt() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Kills every descendant of this process; returns whether all of them are dead.
pub(crate) fn end() -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let children = children();
        for child in &children {
            // One that died meanwhile is reaped below; the kernel does not reuse its pid before.
            let _ = rustix::process::kill_process(*child, Signal::KILL);
        }
        let mut reaped = false;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => reaped = true,
                Ok(None) => break,
                Err(Errno::CHILD) => return true,
                Err(_) => {}
            }
        }
        if Instant::now() > deadline {
            return false;
        }
        if !reaped {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The children of this process, as the kernel lists them.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let parse = |word: &str| word.parse().ok().and_then(Pid::from_raw);
    let own_list = format!("/proc/self/task/{own}/children");
    if let Ok(text) = fs::read_to_string(own_list) {
        return text.split_ascii_whitespace().filter_map(parse).collect();
    }
    // Not every kernel keeps that list.
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| parse(entry.file_name().to_str()?))
        .filter(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok();
            let parent = stat
                .and_then(|stat| Status::parse(&stat))
                .map(|it| it.parent);
            parent == Some(own.as_raw_nonzero().into())
        })
        .collect()
}
