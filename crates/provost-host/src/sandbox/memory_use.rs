//! Says whether a sandbox has more memory than it may, wherever that is.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};

use provost_core::tier::Tier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::kernel_memory::{self, KernelMemory};
use super::process_memory::ProcessList;
use super::{messages, socket_memory};

/// What memory is counted by.
#[derive(Debug)]
pub(crate) struct MemoryUse {
    /// The device of files in memory.
    device: Option<u64>,
    /// The most that the machine could give away since the sandbox began: others may give memory
    /// back meanwhile.
    available: Option<u64>,
    sockets: Sockets,
    /// How many times in a row something may have been hidden beyond the limit.
    suspicions: u32,
}

/// So many looks in a row have to find that something may hide: descriptors that are passed on and
/// processes that begin or end hide for a moment, while other programs of the machine take memory.
const SUSPICIONS: u32 = 5;

/// Where the kernel lists System V objects, each with the columns that are memory and the bytes
/// that one of it stands for.
const OBJECTS: [(&str, &[usize], u64); 3] = [
    // The pages of a segment that are in use, and those that are swapped out.
    ("/proc/sysvipc/shm", &[14, 15], 1),
    // What waits in a queue.
    ("/proc/sysvipc/msg", &[3], 1),
    // The semaphores of a set.
    ("/proc/sysvipc/sem", &[3], 128),
];

/// What init opens in the namespaces of the sandbox, because such lists are of those who open them.
#[derive(Debug, Default)]
struct Lists {
    /// What sockets are asked for through.
    sockets: Option<OwnedFd>,
    /// The lists of [`OBJECTS`], in their order.
    objects: Vec<File>,
}

/// Opens the lists of the namespaces that init is in, and hands them to the driver through `go`.
pub(crate) fn hand_over(go: &OwnedFd) -> Result<(), Errno> {
    let mut lists = vec![socket_memory::open()?];
    for (path, ..) in OBJECTS {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(list) => lists.push(list),
            // A kernel without such objects.
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(errno),
        }
    }
    let lists: Vec<_> = lists.iter().map(AsFd::as_fd).collect();
    messages::send(go, b"lists", &lists)
}

impl Lists {
    fn of(descriptors: Vec<OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        Self {
            sockets: descriptors.next(),
            objects: descriptors.map(File::from).collect(),
        }
    }
}

/// The first column of every row of a list, and the sum of these `columns`.
fn rows(text: &str, columns: &[usize]) -> Vec<(u64, u64)> {
    let row = |line: &str| -> Option<(u64, u64)> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let sum = columns.iter().filter_map(|at| number(*at)).sum();
        Some((number(1)?, sum))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// How the sockets and objects of the sandbox are asked for.
#[derive(Debug)]
enum Sockets {
    /// Init hands over what they are asked for through, when it gets there.
    Expected(OwnedFd),
    /// They are those of namespaces.
    Own(Lists),
    /// They are some sockets of this namespace.
    Shared(OwnedFd),
    /// The kernel does not tell.
    Unknown,
}

impl MemoryUse {
    /// Counts for a sandbox of `tier` whose init speaks through `go`.
    pub(crate) fn open(tier: Tier, go: Option<OwnedFd>) -> Self {
        let sockets = match (tier, go) {
            (Tier::Namespaces, Some(go)) => Sockets::Expected(go),
            (Tier::Namespaces, None) => Sockets::Unknown,
            (Tier::Landlock, _) => socket_memory::open().map_or(Sockets::Unknown, Sockets::Shared),
        };
        Self {
            device: kernel_memory::device(),
            available: kernel_memory::available(),
            sockets,
            suspicions: 0,
        }
    }

    /// Whether `crew` has more than `most` bytes.
    pub(crate) fn is_beyond(&mut self, crew: &ProcessList, most: u64) -> bool {
        let mut held = KernelMemory::of(&crew.pids, self.device);
        let waiting = self.waiting(&held);
        let objects = self.objects(&mut held);
        let beside = held.bytes().saturating_add(waiting).saturating_add(objects);
        let now = kernel_memory::available();
        self.available = self.available.zip(now).map(|(most, now)| most.max(now));
        let lost = match (self.available, now) {
            (Some(before), Some(now)) => before.saturating_sub(now),
            _ => u64::MAX,
        };
        if crew.mapped().saturating_add(beside) <= most && lost <= most {
            self.suspicions = 0;
            return false;
        }
        let counted = crew.shared(&held).saturating_add(beside);
        // What hides is at most what the machine has lost, which may be the doing of others, so it
        // counts only as far as something can hide, and for as long as it does.
        let hidden = || held.most_beside(&crew.pids);
        let suspected = lost > most && counted.saturating_add(hidden()) > most;
        self.suspicions = if suspected { self.suspicions + 1 } else { 0 };
        counted > most || self.suspicions >= SUSPICIONS
    }

    /// Bytes that wait in the sockets of the sandbox.
    fn waiting(&mut self, held: &KernelMemory) -> u64 {
        if let Sockets::Expected(go) = &self.sockets
            && let Some(descriptors) = received(go)
        {
            self.sockets = Sockets::Own(Lists::of(descriptors));
        }
        let bytes = match &self.sockets {
            Sockets::Own(lists) => {
                let socket = lists.sockets.as_ref();
                socket.and_then(|socket| socket_memory::waiting(socket, None))
            }
            Sockets::Shared(socket) => socket_memory::waiting(socket, Some(&held.sockets)),
            Sockets::Expected(_) | Sockets::Unknown => None,
        };
        bytes.unwrap_or(0)
    }

    /// Bytes in queues and semaphores of the sandbox; its segments are put with the files of `held`.
    fn objects(&mut self, held: &mut KernelMemory) -> u64 {
        let Sockets::Own(lists) = &mut self.sockets else {
            return 0;
        };
        let mut sum = 0_u64;
        for (list, (path, columns, size)) in lists.objects.iter_mut().zip(OBJECTS) {
            let mut text = String::new();
            // A list that cannot be read for a moment is read again.
            let _ = list.seek(SeekFrom::Start(0));
            let _ = list.read_to_string(&mut text);
            for (number, count) in rows(&text, columns) {
                let bytes = count.saturating_mul(size);
                if path == OBJECTS[0].0 {
                    held.add(number, bytes);
                } else {
                    sum = sum.saturating_add(bytes);
                }
            }
        }
        sum
    }
}

/// The descriptors that wait in `go`, if some do.
fn received(go: &OwnedFd) -> Option<Vec<OwnedFd>> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::new(go, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&now)).ok()?;
    if !polled[0].revents().contains(PollFlags::IN) {
        return None;
    }
    messages::receive(go)
        .ok()
        .map(|(_, descriptors)| descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_objects_are_read_by_their_columns() {
        let text = "       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid \
            atime      dtime      ctime        rss       swap\n         \
            0          7  1600   67108864    12    12      0  1000  1000  1000  1000 \
            1          2          3   67108864       4096\n";
        assert_eq!(rows(text, OBJECTS[0].1), [(7, 67_112_960)]);
        assert_eq!(rows("", &[3]), []);
    }
}
