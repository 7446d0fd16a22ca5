//! Ends everything that a process started, where no namespace does it in one stroke.
//!
//! A keeper inherits the orphans among its descendants. Killing its children hands it their
//! children, and so on until nobody is left. Somebody who forks all the time loses this race, because
//! each round costs the keeper less than a fork costs the runner; a limit is kept all the same.

use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::running::PATIENCE;
use crate::process::Status;

/// How long a keeper waits for the next process to die.
const PAUSE: Duration = Duration::from_micros(200);

/// Makes this process a keeper: it inherits the orphans among its descendants.
pub(crate) fn keep() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Kills every descendant of this process; answers whether all of them are dead.
pub(crate) fn end() -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let children = children();
        for child in &children {
            // One that died meanwhile is reaped below; its number is not used again before.
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
