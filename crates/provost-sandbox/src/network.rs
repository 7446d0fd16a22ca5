//! Makes the network namespace of a sandbox in a second thread, while init builds the root.
//!
//! The kernel takes longer for this namespace than for the others: about as long as init for the
//! whole file system. Neither needs the other.
//!
//! # Invariants
//!
//! - When the other work is done, this process is in the new namespace, or there is no sandbox.
//! - The second thread is gone by then.

use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::LinkNameSpaceType;

use super::error::Failure;
use super::sys;

/// Stack of the second thread, which makes two system calls.
const STACK: usize = 64 << 10;

/// Does `work`, and moves this process into a network namespace of its own.
pub(crate) fn enter_beside(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // By a handle, because `work` changes the root.
    let processes = rustix::fs::open("/proc", place, Mode::empty()).map_err(Failure::at("proc"))?;
    let network = thread::scope(|scope| {
        let maker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || make(&processes))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
            .map_err(Failure::at("network"))?;
        let worked = work();
        let network = maker.join().unwrap_or(Err(Errno::IO));
        worked.and(network.map_err(Failure::at("network")))
    })?;
    let kind = Some(LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(network.as_fd(), kind).map_err(Failure::at("network"))
}

/// Makes a network namespace for the calling thread, and returns a handle of it.
fn make(processes: &OwnedFd) -> Result<OwnedFd, Errno> {
    sys::unshare_network()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(processes, "thread-self/ns/net", flags, Mode::empty())
}
