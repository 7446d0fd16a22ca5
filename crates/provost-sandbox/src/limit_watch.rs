//! Watches the limits of a running sandbox: memory, processes, files, and time without progress.
//!
//! # Invariants
//!
//! - Checks cost a small part of one processor: a pause many times as long follows each check.
//!   A sandbox can exceed a limit for that long; the next check ends it.
//! - A sandbox that ends within a tick is never checked, and costs nothing.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use provost_core::tier::Tier;

use super::cgroup::Group;
use super::error::SandboxError;
use super::file_count;
use super::inactivity::Inactivity;
use super::memory_use::MemoryUse;
use super::process_memory::ProcessList;
use super::profile::{Limits, Mount, Profile};
use super::running::How;

/// The shortest pause between two checks of the processes.
const PROCESSES_PAUSE: Duration = Duration::from_millis(200);
/// The shortest pause between two checks of the files.
const FILES_PAUSE: Duration = Duration::from_millis(500);
/// How many times as long as a check the pause after it is at least.
const PAUSE_FACTOR: u32 = 20;

/// The watch over one sandbox.
#[derive(Debug)]
pub(crate) struct LimitWatch {
    sandbox: WatchedSandbox,
    inactivity: Inactivity,
    thread: Option<WatchThread>,
    group: Option<Group>,
    memory: Option<MemoryUse>,
}

#[derive(Debug, Clone)]
struct WatchedSandbox {
    limits: Limits,
    /// Directories and files of the host that the sandbox writes.
    roots: Vec<PathBuf>,
}

/// The thread that checks, and what it has found.
#[derive(Debug)]
struct WatchThread {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    over: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Found {
    breach: Option<How>,
    /// When the last check of the files began, and the mark of what it saw.
    files: Option<(Instant, u64)>,
}

impl LimitWatch {
    pub(crate) fn new(profile: &Profile) -> Self {
        let root = |mount: &Mount| match mount {
            Mount::Writable { source, .. } => Some(source.clone()),
            Mount::Overlay { upper, .. } => Some(upper.clone()),
            Mount::ReadOnly { .. }
            | Mount::UserFiles { .. }
            | Mount::Masked { .. }
            | Mount::Protect { .. }
            | Mount::Scratch { .. }
            | Mount::File { .. }
            | Mount::Symlink { .. }
            | Mount::Refused { .. }
            | Mount::Reports { .. } => None,
        };
        let roots = profile.mounts.iter().filter_map(root).collect();
        Self {
            sandbox: WatchedSandbox {
                limits: profile.limits,
                roots,
            },
            inactivity: Inactivity::default(),
            thread: None,
            group: None,
            memory: None,
        }
    }

    /// Puts the sandbox of `init` into a control group too, where one can be made.
    pub(crate) fn enter(&mut self, init: i32) {
        if self.sandbox.limits.grouped {
            let group = Group::make(&self.sandbox.limits);
            self.group = group.filter(|group| group.enter(init).is_ok());
        }
    }

    /// Starts to count the memory of a sandbox of `tier`; `go` is the socket to its init.
    pub(crate) fn count(&mut self, tier: Tier, go: Option<OwnedFd>) {
        self.memory = Some(MemoryUse::open(tier, go));
    }

    /// Whether the kernel ended the sandbox because of its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::ran_out_of_memory)
    }

    /// The limit that the sandbox of `init` has exceeded, if any. It began at `since`; `said`
    /// counts its output. The first call starts the watch.
    pub(crate) fn breach(
        &mut self,
        init: i32,
        since: Instant,
        said: u64,
    ) -> Result<Option<How>, SandboxError> {
        if self.thread.is_none() {
            let memory = self.memory.take();
            let memory = memory.unwrap_or_else(|| MemoryUse::open(Tier::Namespaces, None));
            self.thread = Some(WatchThread::start(self.sandbox.clone(), memory, init)?);
        }
        let Found { breach, files } = match &self.thread {
            Some(thread) => *thread.seen.found(),
            None => Found::default(),
        };
        if breach.is_some() {
            return Ok(breach);
        }
        self.inactivity.hear(since.elapsed(), said);
        if let Some((at, mark)) = files {
            self.inactivity
                .look(at.saturating_duration_since(since), mark);
        }
        let quiet = self.sandbox.limits.no_progress_seconds;
        let quiet =
            quiet.is_some_and(|most| self.inactivity.lasting() >= Duration::from_secs(most));
        Ok(quiet.then_some(How::NoProgress))
    }
}

impl WatchThread {
    fn start(
        sandbox: WatchedSandbox,
        mut memory: MemoryUse,
        init: i32,
    ) -> Result<Self, SandboxError> {
        let seen = Arc::new(Seen::default());
        let own = Arc::clone(&seen);
        let thread = std::thread::Builder::new()
            .name("sandbox-guard".to_owned())
            .spawn(move || sandbox.watch(init, &mut memory, &own))
            .map_err(|source| SandboxError::Machine {
                what: "the watch over a sandbox",
                source,
            })?;
        Ok(Self {
            seen,
            thread: Some(thread),
        })
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        self.seen.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Its result is not needed.
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

struct NextLook {
    next: Instant,
    pause: Duration,
}

impl NextLook {
    fn new(pause: Duration) -> Self {
        Self {
            next: Instant::now(),
            pause,
        }
    }

    /// The present time, if a check is due.
    fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        (now >= self.next).then_some(now)
    }

    fn done(&mut self, began: Instant) {
        let pause = began.elapsed().saturating_mul(PAUSE_FACTOR);
        self.next = Instant::now() + pause.max(self.pause);
    }
}

impl WatchedSandbox {
    /// Checks again and again until the watch is over or a limit is exceeded.
    fn watch(&self, init: i32, memory: &mut MemoryUse, seen: &Seen) {
        let room = self.room();
        let mut processes_look = NextLook::new(PROCESSES_PAUSE);
        let mut files_look = NextLook::new(FILES_PAUSE);
        let mut processes = ProcessList::default();
        while !seen.is_over() {
            let mut breach = None;
            if let Some(began) = processes_look.due() {
                // If the kernel gives no list this time, the next check asks again.
                processes = ProcessList::of(init).unwrap_or_default();
                breach = self.process_breach(&processes, memory);
                processes_look.done(began);
            }
            if breach.is_none()
                && self.counts_files()
                && let Some(began) = files_look.due()
            {
                breach = self.look_at_files(&processes, room, began, seen);
                files_look.done(began);
            }
            if breach.is_some() {
                seen.found().breach = breach;
                return;
            }
            let next = if self.counts_files() {
                processes_look.next.min(files_look.next)
            } else {
                processes_look.next
            };
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }

    fn process_breach(&self, processes: &ProcessList, memory: &mut MemoryUse) -> Option<How> {
        let limits = &self.limits;
        if processes.tasks >= limits.processes {
            return Some(How::ProcessLimit);
        }
        let beyond = memory.is_beyond(processes, limits.memory_bytes);
        beyond.then_some(How::MemoryLimit)
    }

    fn counts_files(&self) -> bool {
        let limits = &self.limits;
        limits.disk_bytes.is_some()
            || limits.inodes.is_some()
            || limits.no_progress_seconds.is_some()
    }

    fn look_at_files(
        &self,
        processes: &ProcessList,
        room: u64,
        began: Instant,
        seen: &Seen,
    ) -> Option<How> {
        let most = self.limits.inodes.unwrap_or(u64::MAX);
        let files = file_count::count(&self.roots, most, &|| seen.is_over())?;
        if files.count > most {
            return Some(How::InodeLimit);
        }
        if let Some(most) = self.limits.disk_bytes {
            let nameless = file_count::nameless(&processes.pids, &self.roots);
            let lost = room.saturating_sub(self.room());
            // Files that the count missed are estimated by what the disk has lost. Another program
            // may have used it, so the estimate counts only if the count missed something.
            let hidden = if files.unseen { lost } else { 0 };
            if files.bytes.saturating_add(nameless).max(hidden) > most {
                return Some(How::DiskLimit);
            }
        }
        seen.found().files = Some((began, files.mark));
        None
    }

    /// Free bytes on the file system of the workspace.
    fn room(&self) -> u64 {
        self.roots.first().and_then(file_count::room).unwrap_or(0)
    }
}
