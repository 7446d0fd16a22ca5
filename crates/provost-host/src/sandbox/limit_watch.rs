//! Watches over a sandbox at work: its memory, its processes, its files, and whether it gets anywhere.
//!
//! # Invariants
//!
//! - Looking costs a small part of one processor: after each look follows a pause many times as
//!   long. A limit can be passed for that long, and the sandbox is ended at the next look.
//! - A sandbox that ends within a tick is never looked at, and pays nothing.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use provost_core::progress::Inactivity;
use provost_core::tier::Tier;

use super::cgroup::Group;
use super::error::SandboxError;
use super::file_count;
use super::memory_use::MemoryUse;
use super::process_memory::ProcessList;
use super::profile::{Limits, Mount, Profile};
use super::running::How;

/// How often processes are looked at, if that is cheap.
const CREW_PAUSE: Duration = Duration::from_millis(200);
/// How often files are looked at, if that is cheap.
const FILES_PAUSE: Duration = Duration::from_millis(500);
/// How many times as long as a look the pause after it is.
const PAUSE_FACTOR: u32 = 20;

/// The watch over one sandbox.
#[derive(Debug)]
pub(crate) struct LimitWatch {
    post: WatchedSandbox,
    stillness: Inactivity,
    patrol: Option<WatchThread>,
    group: Option<Group>,
    account: Option<MemoryUse>,
}

#[derive(Debug, Clone)]
struct WatchedSandbox {
    limits: Limits,
    /// Directories and files of the host that the sandbox writes.
    roots: Vec<PathBuf>,
}

/// A thread that looks, and what it has seen.
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
    /// When the last look at the files began, and the mark of what it saw.
    files: Option<(Instant, u64)>,
}

impl LimitWatch {
    pub(crate) fn new(profile: &Profile) -> Self {
        let root = |mount: &Mount| match mount {
            Mount::Writable { source, .. } => Some(source.clone()),
            Mount::Overlay { upper, .. } => Some(upper.clone()),
            Mount::ReadOnly { .. }
            | Mount::Protect { .. }
            | Mount::Scratch { .. }
            | Mount::File { .. }
            | Mount::Symlink { .. } => None,
        };
        let roots = profile.mounts.iter().filter_map(root).collect();
        Self {
            post: WatchedSandbox {
                limits: profile.limits,
                roots,
            },
            stillness: Inactivity::default(),
            patrol: None,
            group: None,
            account: None,
        }
    }

    /// Has the kernel hold the limits of the sandbox of `init` too, where it can.
    pub(crate) fn enter(&mut self, init: i32) {
        if self.post.limits.grouped {
            let group = Group::make(&self.post.limits);
            self.group = group.filter(|group| group.enter(init).is_ok());
        }
    }

    /// Begins to count the memory of a sandbox of `tier` whose init speaks through `go`.
    pub(crate) fn count(&mut self, tier: Tier, go: Option<OwnedFd>) {
        self.account = Some(MemoryUse::open(tier, go));
    }

    /// Whether the kernel ended the sandbox because of its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::ran_out_of_memory)
    }

    /// Why the sandbox of `init` has to end, which began at `since` and has said so much; the first
    /// call begins the watch.
    pub(crate) fn breach(
        &mut self,
        init: i32,
        since: Instant,
        said: u64,
    ) -> Result<Option<How>, SandboxError> {
        if self.patrol.is_none() {
            let account = self.account.take();
            let account = account.unwrap_or_else(|| MemoryUse::open(Tier::Namespaces, None));
            self.patrol = Some(WatchThread::start(self.post.clone(), account, init)?);
        }
        let Found { breach, files } = match &self.patrol {
            Some(patrol) => *patrol.seen.found(),
            None => Found::default(),
        };
        if breach.is_some() {
            return Ok(breach);
        }
        self.stillness.hear(since.elapsed(), said);
        if let Some((at, mark)) = files {
            self.stillness
                .look(at.saturating_duration_since(since), mark);
        }
        let quiet = self.post.limits.no_progress_seconds;
        let quiet = quiet.is_some_and(|most| self.stillness.lasting() >= Duration::from_secs(most));
        Ok(quiet.then_some(How::NoProgress))
    }
}

impl WatchThread {
    fn start(
        post: WatchedSandbox,
        mut account: MemoryUse,
        init: i32,
    ) -> Result<Self, SandboxError> {
        let seen = Arc::new(Seen::default());
        let own = Arc::clone(&seen);
        let thread = std::thread::Builder::new()
            .name("sandbox-guard".to_owned())
            .spawn(move || post.patrol(init, &mut account, &own))
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
            // It has nothing to say any more.
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

    /// The time of the look that is due now.
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
    /// Looks again and again until the watch is over or something was found.
    fn patrol(&self, init: i32, account: &mut MemoryUse, seen: &Seen) {
        let room = self.room();
        let (mut crews, mut files) = (NextLook::new(CREW_PAUSE), NextLook::new(FILES_PAUSE));
        let mut crew = ProcessList::default();
        while !seen.is_over() {
            let mut breach = None;
            if let Some(began) = crews.due() {
                // A machine that tells nothing for a moment is asked again.
                crew = ProcessList::of(init).unwrap_or_default();
                breach = self.crew_breach(&crew, account);
                crews.done(began);
            }
            if breach.is_none()
                && self.counts_files()
                && let Some(began) = files.due()
            {
                breach = self.look_at_files(&crew, room, began, seen);
                files.done(began);
            }
            if breach.is_some() {
                seen.found().breach = breach;
                return;
            }
            let next = if self.counts_files() {
                crews.next.min(files.next)
            } else {
                crews.next
            };
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }

    fn crew_breach(&self, crew: &ProcessList, account: &mut MemoryUse) -> Option<How> {
        let limits = &self.limits;
        if crew.tasks >= limits.processes {
            return Some(How::ProcessLimit);
        }
        let beyond = account.is_beyond(crew, limits.memory_bytes);
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
        crew: &ProcessList,
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
            let nameless = file_count::nameless(&crew.pids, &self.roots);
            let lost = room.saturating_sub(self.room());
            // What hides from the count is measured by what the disk has lost, which may be
            // somebody else's doing, so it counts only if something hides.
            let hidden = if files.unseen { lost } else { 0 };
            if files.bytes.saturating_add(nameless).max(hidden) > most {
                return Some(How::DiskLimit);
            }
        }
        seen.found().files = Some((began, files.mark));
        None
    }

    /// The room on the disk of the workspace.
    fn room(&self) -> u64 {
        self.roots.first().and_then(file_count::room).unwrap_or(0)
    }
}
