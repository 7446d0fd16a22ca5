//! Decides whether a sandbox uses more memory than its limit, wherever that memory is counted.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};

use provost_core::tier::Tier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::kernel_memory::{self, KernelMemory, MachineMemory};
use super::process_memory::ProcessList;
use super::{messages, socket_memory};

/// What the memory of one sandbox is counted with.
#[derive(Debug)]
pub(crate) struct MemoryUse {
    /// The device of files in memory.
    device: Option<u64>,
    /// The best state of the machine since the sandbox began: other programs may free memory
    /// meanwhile.
    best: Option<MachineMemory>,
    sockets: Sockets,
    /// How many checks in a row found that hidden memory may exceed the limit.
    suspicions: u32,
}

/// How many checks in a row have to suspect hidden memory. Descriptors in transit and processes
/// that begin or end hide memory for a moment, while other programs of the machine take some.
const SUSPICIONS: u32 = 5;

/// Where the kernel lists System V objects, each with the columns that count memory and the bytes
/// of one unit.
const OBJECTS: [(&str, &[usize], u64); 3] = [
    // The pages of a segment that are in use, and those that are swapped out.
    ("/proc/sysvipc/shm", &[14, 15], 1),
    // What waits in a queue.
    ("/proc/sysvipc/msg", &[3], 1),
    // The semaphores of a set.
    ("/proc/sysvipc/sem", &[3], 128),
];

/// Lists that init opens: each shows the namespaces of the process that opened it.
#[derive(Debug, Default)]
struct Lists {
    /// The netlink socket that lists sockets.
    sockets: Option<OwnedFd>,
    /// The lists of [`OBJECTS`], in their order.
    objects: Vec<File>,
}

/// Opens the lists of the namespaces that init is in, and sends them to the driver through `go`.
pub(crate) fn hand_over(go: &OwnedFd) -> Result<(), Errno> {
    let mut lists = vec![socket_memory::open()?];
    for (path, ..) in OBJECTS {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(list) => lists.push(list),
            // The kernel has no such objects.
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

/// How the sockets and objects of the sandbox are listed.
#[derive(Debug)]
enum Sockets {
    /// Init has yet to send the lists through this socket.
    Expected(OwnedFd),
    /// The lists of the sandbox's own namespaces.
    Own(Lists),
    /// The sandbox's sockets are among those of the host's namespace.
    Shared(OwnedFd),
    /// The kernel does not list them.
    Unknown,
}

impl MemoryUse {
    /// Counts for a sandbox of `tier`; `go` is the socket to its init.
    pub(crate) fn open(tier: Tier, go: Option<OwnedFd>) -> Self {
        let sockets = match (tier, go) {
            (Tier::Namespaces, Some(go)) => Sockets::Expected(go),
            (Tier::Namespaces, None) => Sockets::Unknown,
            (Tier::Landlock, _) => socket_memory::open().map_or(Sockets::Unknown, Sockets::Shared),
        };
        Self {
            device: kernel_memory::device(),
            best: MachineMemory::now(),
            sockets,
            suspicions: 0,
        }
    }

    /// Whether `processes` use more than `most` bytes.
    pub(crate) fn is_beyond(&mut self, processes: &ProcessList, most: u64) -> bool {
        let mut held = KernelMemory::of(&processes.pids, self.device);
        let waiting = self.waiting(&held);
        let objects = self.objects(&mut held);
        let beside = held.bytes().saturating_add(waiting).saturating_add(objects);
        let now = MachineMemory::now();
        self.best = self.best.zip(now).map(|(best, now)| best.best(now));
        let lost = match (self.best, now) {
            (Some(best), Some(now)) => now.lost_since(best),
            _ => u64::MAX,
        };
        if processes.mapped().saturating_add(beside) <= most && lost <= most {
            self.suspicions = 0;
            return false;
        }
        let counted = processes.shared(&held).saturating_add(beside);
        // Hidden memory is at most what the machine has lost. Other programs may have taken that,
        // so it counts only as far as memory can be hidden, and only while it can.
        let hidden = || held.most_beside(&processes.pids);
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

    /// Bytes in queues and semaphores of the sandbox; adds its segments to the files of `held`.
    fn objects(&mut self, held: &mut KernelMemory) -> u64 {
        let Sockets::Own(lists) = &mut self.sockets else {
            return 0;
        };
        let mut sum = 0_u64;
        for (list, (path, columns, size)) in lists.objects.iter_mut().zip(OBJECTS) {
            let mut text = String::new();
            // A list that cannot be read is read again by the next check.
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

/// The descriptors that wait in `go`, if there are any.
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
