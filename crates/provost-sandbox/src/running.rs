//! A running sandbox: reads its streams, enforces its limits, and ends it.
//!
//! # Invariants
//!
//! - When [`Running::wait`] returns, or a [`Running`] is dropped, every process of the sandbox is
//!   dead.
//! - Nothing waits without a limit.
//! - The driver does not wait for a launcher that is still exiting: a later sandbox, or the end of
//!   the driver, reaps it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use provost_core::net::traffic::Traffic;
use provost_core::secret::Known;
use provost_core::tier::Tier;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::error::SandboxError;
use super::limit_watch::LimitWatch;
use super::messages::{self, GO, Message};
use super::process_identity::{ProcessIdentity, reap, timespec};
use super::profile::Limits;
use super::streams::{Stream, StreamFacts};
use crate::proxy::Proxy;

/// How often [`Running::wait`] calls its watch.
const TICK: Duration = Duration::from_millis(100);
/// How long a killed sandbox may take to die.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A sandbox that was started. Dropping it ends it.
///
/// Only [`Running::wait`] reads its streams and enforces its limits: call it at once.
#[derive(Debug)]
pub struct Running {
    /// A child of this process that only this value waits for, so that its pid is not reused.
    pub(crate) launcher: Pid,
    pub(crate) control: OwnedFd,
    pub(crate) go: Option<OwnedFd>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) broker: Option<UnixListener>,
    pub(crate) birth: Option<ProcessIdentity>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) limits: Limits,
    pub(crate) limit_watch: LimitWatch,
    pub(crate) since: Instant,
    pub(crate) over: bool,
}

/// What a running sandbox has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the payload started.
    pub wall: Duration,
    /// What it has written to standard output.
    pub stdout_bytes: u64,
    /// What it has written to standard error.
    pub stderr_bytes: u64,
}

/// What a watch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Continue,
    /// Continue; this number counts what the agent said so far, because the watch can distinguish
    /// work from waiting.
    Said(u64),
    /// End the sandbox.
    Cancel,
}

/// A sandbox that ended; none of its processes is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub how: How,
    /// How long the payload ran.
    pub wall: Duration,
    /// Its standard output.
    pub stdout: StreamFacts,
    /// Its standard error.
    pub stderr: StreamFacts,
    /// Its requests to the network.
    #[serde(default)]
    pub network: Vec<Traffic>,
}

/// How a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The payload returned this code.
    Exited(i32),
    /// A signal ended the payload.
    Signalled(i32),
    /// The wall clock ended the sandbox.
    TimedOut,
    /// The watch ended the sandbox.
    Cancelled,
    /// Too much output ended the sandbox.
    OutputLimit,
    /// Too much memory ended the sandbox.
    MemoryLimit,
    /// Too many processes ended the sandbox.
    ProcessLimit,
    /// Too much on disk ended the sandbox.
    DiskLimit,
    /// Too many files ended the sandbox.
    InodeLimit,
    /// Too long a silence ended the sandbox.
    NoProgress,
}

/// What one read of the control socket gave.
enum LauncherReport {
    /// No message yet.
    Nothing,
    /// The launcher closed its end.
    Lost,
    Said(Message),
}

impl Running {
    /// The init of the sandbox, with its pid on the host.
    pub fn birth(&self) -> Option<&ProcessIdentity> {
        self.birth.as_ref()
    }

    /// The listener of its broker, if its profile has one; it can be taken once.
    pub fn take_broker(&mut self) -> Option<UnixListener> {
        self.broker.take()
    }

    /// Removes secrets from the kept streams; those in `known` in any encoding.
    #[must_use]
    pub fn scrubbed(mut self, known: &Known) -> Self {
        self.stdout.scrub(known.clone());
        self.stderr.scrub(known.clone());
        self
    }

    /// Waits until the sandbox ends; calls `watch` about ten times a second.
    ///
    /// Once an end was requested, its reason is the result, even if the payload returned meanwhile.
    pub fn wait(
        mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<Ended, SandboxError> {
        let mut ending: Option<(How, Instant)> = None;
        let mut asked = Instant::now();
        let last = loop {
            if ending.is_none() {
                if let Some(how) = self.reason_to_end(watch, &mut asked)? {
                    self.request_end();
                    ending = Some((how, Instant::now()));
                }
            } else if ending.is_some_and(|(_, since)| since.elapsed() > PATIENCE) {
                break None;
            }
            let left =
                Duration::from_secs(self.limits.wall_seconds).saturating_sub(self.since.elapsed());
            let report = if ending.is_some() {
                // What a dying sandbox still prints does not count: the pipes fill up and hold it.
                self.listen(TICK)?
            } else {
                self.step(left.min(TICK))?
            };
            match report {
                LauncherReport::Nothing => {}
                LauncherReport::Lost => break None,
                LauncherReport::Said(message) => break Some(message),
            }
        };
        let wall = self.since.elapsed();
        self.over = true;
        if last.is_none() {
            self.ensure_dead()?;
        }
        let (stdout, stderr) = (self.stdout.finish()?, self.stderr.finish()?);
        let how = match (ending, last) {
            (_, Some(Message::Failed(failure))) => return Err(failure.into()),
            (_, Some(Message::NotReaped)) => {
                let pid = self.birth.as_ref().map_or(0, |birth| birth.pid);
                return Err(SandboxError::NotReaped { pid });
            }
            (Some((how, _)), _) => how,
            (None, _) if self.limit_watch.ran_out_of_memory() => How::MemoryLimit,
            (None, Some(Message::Exited(code))) => How::Exited(code),
            (None, Some(Message::Signalled(signal))) => How::Signalled(signal),
            (None, Some(Message::UsedUp)) => How::ProcessLimit,
            (None, Some(Message::InitStarted(_) | Message::Killed) | None) => {
                return Err(SandboxError::LauncherLost);
            }
        };
        Ok(Ended {
            how,
            wall,
            stdout,
            stderr,
            network: self.proxy.take().map(Proxy::finish).unwrap_or_default(),
        })
    }

    /// Whether the sandbox has to end now.
    fn reason_to_end(
        &mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        asked: &mut Instant,
    ) -> Result<Option<How>, SandboxError> {
        let progress = Progress {
            wall: self.since.elapsed(),
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
        };
        if progress.stdout_bytes + progress.stderr_bytes > self.limits.output_kill_bytes {
            return Ok(Some(How::OutputLimit));
        }
        if progress.wall >= Duration::from_secs(self.limits.wall_seconds) {
            return Ok(Some(How::TimedOut));
        }
        if asked.elapsed() >= TICK {
            *asked = Instant::now();
            let said = match watch(progress) {
                Control::Cancel => return Ok(Some(How::Cancelled)),
                Control::Continue => progress.stdout_bytes + progress.stderr_bytes,
                Control::Said(said) => said,
            };
            if let Some(birth) = &self.birth {
                return self.limit_watch.breach(birth.pid, self.since, said);
            }
        }
        Ok(None)
    }

    /// Waits up to `timeout` for output or a message of the launcher.
    fn step(&mut self, timeout: Duration) -> Result<LauncherReport, SandboxError> {
        let pipes = [&self.stdout, &self.stderr].map(Stream::pipe);
        let mut polled: Vec<PollFd<'_>> = std::iter::once(&self.control)
            .chain(pipes.into_iter().flatten())
            .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
            .collect();
        poll(&mut polled, timeout)?;
        let has_message = !polled[0].revents().is_empty();
        drop(polled);
        if has_message {
            return self.receive();
        }
        self.stdout.read()?;
        self.stderr.read()?;
        Ok(LauncherReport::Nothing)
    }

    /// Waits up to `timeout` for a message of the launcher.
    fn listen(&self, timeout: Duration) -> Result<LauncherReport, SandboxError> {
        let mut polled = [PollFd::new(&self.control, PollFlags::IN)];
        poll(&mut polled, timeout)?;
        if polled[0].revents().is_empty() {
            return Ok(LauncherReport::Nothing);
        }
        self.receive()
    }

    /// The launcher's next message; `None` if there is none in time.
    pub(crate) fn next_message(&self, timeout: Duration) -> Result<Option<Message>, SandboxError> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.listen(left)? {
                LauncherReport::Said(message) => return Ok(Some(message)),
                LauncherReport::Lost => return Ok(None),
                LauncherReport::Nothing if left.is_zero() => return Ok(None),
                LauncherReport::Nothing => {}
            }
        }
    }

    fn receive(&self) -> Result<LauncherReport, SandboxError> {
        match messages::receive(&self.control) {
            Ok((packet, _)) => {
                Ok(Message::parse(&packet).map_or(LauncherReport::Lost, LauncherReport::Said))
            }
            Err(Errno::CONNRESET) => Ok(LauncherReport::Lost),
            Err(Errno::INTR) => Ok(LauncherReport::Nothing),
            Err(errno) => Err(SandboxError::machine("a socket")(errno)),
        }
    }

    /// Lets the payload start.
    pub(crate) fn go(&mut self, tier: Tier) {
        self.since = Instant::now();
        let go = self.go.take();
        if let Some(go) = &go {
            // A sandbox that is dead already is noticed while waiting.
            let _ = messages::send(go, GO, &[]);
        }
        self.limit_watch.count(tier, go);
    }

    fn request_end(&self) {
        // A launcher that is gone has taken the sandbox with it.
        let _ = rustix::net::shutdown(&self.control, Shutdown::Write);
    }

    /// Kills the launcher and waits until init is dead, if the launcher did not report it.
    fn ensure_dead(&mut self) -> Result<(), SandboxError> {
        // Also kills init, by its death signal; `reap` waits for that.
        let _ = rustix::process::kill_process(self.launcher, Signal::KILL);
        let birth = self.birth.as_ref();
        birth.map_or(Ok(()), |birth| reap(birth, PATIENCE).map(drop))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.ensure_dead();
        }
        reap_launcher(self.launcher);
    }
}

/// Waits without blocking for `launcher`, which sent its last message or was killed.
///
/// If it has not exited yet, a later call reaps it: the kernel takes a while to tear it down.
pub(crate) fn reap_launcher(launcher: Pid) {
    static LEAVING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
    let mut leaving = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    leaving.push(launcher);
    let has_left = |pid: Pid| rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    leaving.retain(|pid| matches!(has_left(*pid), Ok(None)));
}

/// Polls; a signal makes it return early, with nothing ready.
fn poll(polled: &mut [PollFd<'_>], timeout: Duration) -> Result<(), SandboxError> {
    match rustix::event::poll(polled, Some(&timespec(timeout))) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            for one in polled {
                one.clear_revents();
            }
            Ok(())
        }
        Err(errno) => Err(SandboxError::machine("poll")(errno)),
    }
}
