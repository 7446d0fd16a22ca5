//! Timeouts of the proxy, and the stop signal that ends every wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// How long a proxy waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the whole head of a request, from its connection or its first byte on.
    pub head: Duration,
    /// For the addresses of a name.
    pub resolve: Duration,
    /// For a connection to a server, all its addresses together.
    pub connect: Duration,
    /// For the next request of a client.
    pub next: Duration,
    /// For the remaining tokens, while they are reserved for another request.
    pub turn: Duration,
    /// For any byte during an exchange; models think for a long time.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
            next: Duration::from_mins(1),
            turn: Duration::from_mins(2),
            idle: Duration::from_mins(15),
        }
    }
}

/// Why a wait ended without what it waited for.
#[derive(Debug)]
pub(super) enum Broken {
    /// The proxy is stopped.
    Stopped,
    /// The time ran out.
    Late,
    /// A system call failed.
    Failed(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// A pipe that becomes readable, by its closing, when the proxy is stopped.
#[derive(Debug)]
pub struct Stop(OwnedFd);

impl Stop {
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self(pipe)
    }

    /// Waits for one of `wanted` until `until`; without a time, until the proxy stops.
    pub(super) fn wait(
        &self,
        wanted: &[(BorrowedFd<'_>, PollFlags)],
        until: Option<Instant>,
    ) -> Result<(), Broken> {
        // A descriptor without flags would still wake us when it hangs up.
        let wanted = wanted.iter().filter(|(_, flags)| !flags.is_empty());
        let mut polled: Vec<PollFd<'_>> = std::iter::once(PollFd::new(&self.0, PollFlags::IN))
            .chain(wanted.map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)))
            .collect();
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.map(timespec);
            match rustix::event::poll(&mut polled, timeout.as_ref()) {
                Ok(0) => return Err(Broken::Late),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::Failed(errno.into())),
            }
        }
        if polled[0].revents().is_empty() {
            Ok(())
        } else {
            Err(Broken::Stopped)
        }
    }

    /// Waits for one thing, for as long as the proxy runs.
    pub(super) fn wait_for(&self, thing: impl AsFd, flags: PollFlags) -> Result<(), Broken> {
        self.wait(&[(thing.as_fd(), flags)], None)
    }

    /// Waits for a moment.
    pub(super) fn pause(&self) -> Result<(), Broken> {
        let moment = Instant::now() + Duration::from_millis(10);
        match self.wait(&[], Some(moment)) {
            Ok(()) | Err(Broken::Late) => Ok(()),
            Err(broken) => Err(broken),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
