//! Memory that the kernel holds for a sandbox and that no process need have mapped: memory files
//! without a name, and bytes that wait in sockets and pipes.
//!
//! # Invariants
//!
//! - What processes hold open is counted exactly, each file and each socket once.
//! - Some memory has no descriptor here: descriptors in transit through a socket, shared mappings
//!   whose pages are not in use, processes that we may not read. The result says so, and such
//!   memory is estimated by what the machine has lost since the sandbox began.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::MemfdFlags;

/// The block of `st_blocks`.
const BLOCK: u64 = 512;
/// The least that a pipe takes where a user has many.
const PIPE: u64 = 8 << 10;

/// The device of files in memory that have no name, shared mappings and System V memory included.
pub(crate) fn device() -> Option<u64> {
    let file = rustix::fs::memfd_create("provost-device", MemfdFlags::CLOEXEC).ok()?;
    rustix::fs::fstat(file).ok().map(|facts| facts.st_dev)
}

/// The memory of the whole machine, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineMemory {
    /// What programs could still take. Pages that were just freed are missing here as long as a
    /// processor keeps them for itself, which can be hundreds of megabytes for a minute.
    available: u64,
    /// The pages of processes and of files in memory, which the kernel counts at once.
    taken: u64,
}

impl MachineMemory {
    /// The memory of the machine now; `None` if the kernel does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
            Some(kib.saturating_mul(1024))
        };
        Some(Self {
            available: bytes("MemAvailable:")?,
            taken: bytes("AnonPages:")?.saturating_add(bytes("Shmem:")?),
        })
    }

    /// The most that was available, and the least that was taken.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            available: self.available.max(other.available),
            taken: self.taken.min(other.taken),
        }
    }

    /// What is gone since `before`, by either count.
    pub(crate) fn lost_since(self, before: Self) -> u64 {
        let missing = before.available.saturating_sub(self.available);
        missing.max(self.taken.saturating_sub(before.taken))
    }
}

/// What the descriptors of some processes refer to.
#[derive(Debug, Default)]
pub(crate) struct KernelMemory {
    /// Files in memory without a name, and what each takes.
    pub(crate) files: BTreeMap<u64, u64>,
    pub(crate) sockets: BTreeSet<u64>,
    pipes: BTreeSet<u64>,
    /// Whether there may be memory without a descriptor here.
    unseen: bool,
    /// The device of the files.
    device: Option<u64>,
}

impl KernelMemory {
    /// Reads the descriptors of `pids`; `device` is that of files in memory.
    pub(crate) fn of(pids: &[i32], device: Option<u64>) -> Self {
        let mut held = Self {
            device,
            ..Self::default()
        };
        for pid in pids {
            let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                held.unseen |= is_alive(*pid);
                continue;
            };
            for entry in open.filter_map(Result::ok) {
                let Ok(place) = fs::read_link(entry.path()) else {
                    continue;
                };
                let place = place.to_string_lossy();
                if let Some(number) = numbered(&place, "socket:[") {
                    held.sockets.insert(number);
                } else if let Some(number) = numbered(&place, "pipe:[") {
                    held.pipes.insert(number);
                } else if place.ends_with(" (deleted)")
                    && let Ok(facts) = fs::metadata(entry.path())
                    && Some(facts.dev()) == device
                {
                    let bytes = facts.blocks().saturating_mul(BLOCK);
                    held.files.insert(facts.ino(), bytes);
                }
            }
        }
        held
    }

    /// Adds a segment, which is a file of the same device.
    pub(crate) fn add(&mut self, number: u64, bytes: u64) {
        let known = self.files.entry(number).or_default();
        *known = known.saturating_add(bytes);
    }

    /// What the files and the pipes take.
    pub(crate) fn bytes(&self) -> u64 {
        let pipes = (self.pipes.len() as u64).saturating_mul(PIPE);
        self.files
            .values()
            .fold(pipes, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// What `pid` has mapped beside these files; shared pages count in part. `None` if the kernel
    /// does not let us read it.
    pub(crate) fn mapped_beside(&self, pid: i32) -> Option<u64> {
        let mappings = mappings(pid)?;
        let others = mappings.iter().filter(|mapping| !self.is_of(mapping));
        Some(others.fold(0, |sum, mapping| sum.saturating_add(mapping.share)))
    }

    /// Whether a mapping is of one of these files.
    fn is_of(&self, mapping: &Mapping) -> bool {
        self.device == Some(mapping.device) && self.files.contains_key(&mapping.file)
    }

    /// The most memory that `pids` can hide beside what was counted.
    pub(crate) fn most_beside(&self, pids: &[i32]) -> u64 {
        if self.unseen || pids.iter().any(|pid| passes_descriptors(*pid)) {
            return u64::MAX;
        }
        let mut mapped: BTreeMap<u64, u64> = BTreeMap::new();
        for mapping in pids.iter().filter_map(|pid| mappings(*pid)).flatten() {
            if self.device == Some(mapping.device) && !self.is_of(&mapping) {
                let size = mapping.size.saturating_sub(mapping.resident);
                let known = mapped.entry(mapping.file).or_default();
                *known = size.max(*known);
            }
        }
        mapped
            .values()
            .fold(0, |sum: u64, size| sum.saturating_add(*size))
    }
}

/// The number in a link such as `socket:[12]`.
fn numbered(link: &str, prefix: &str) -> Option<u64> {
    link.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

/// Whether descriptors are in transit through a socket of `pid`.
fn passes_descriptors(pid: i32) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return is_alive(pid);
    };
    let waits = |text: String| {
        let count = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
        count.is_some_and(|count| count.trim() != "0")
    };
    let mut open = open.filter_map(Result::ok);
    open.any(|entry| fs::read_to_string(entry.path()).is_ok_and(waits))
}

/// Whether `pid` still has memory and descriptors; a zombie has none.
fn is_alive(pid: i32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The program name before the state may contain any character.
    let state = text
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// One mapping of a process.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mapping {
    device: u64,
    file: u64,
    size: u64,
    /// Bytes of it that are in use by this process.
    resident: u64,
    /// The same, divided by the processes that share it, with what is swapped out.
    share: u64,
}

fn mappings(pid: i32) -> Option<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/smaps")).ok()?;
    Some(parse(&String::from_utf8_lossy(&text)))
}

/// Reads the mappings of a process as the kernel lists them.
fn parse(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            let device = words.nth(2).and_then(|device| device.split_once(':'));
            let device = device.and_then(|(major, minor)| {
                let number = |text: &str| u32::from_str_radix(text, 16).ok();
                Some(rustix::fs::makedev(number(major)?, number(minor)?))
            });
            mappings.push(Mapping {
                device: device.unwrap_or(0),
                file: words.next().and_then(|file| file.parse().ok()).unwrap_or(0),
                ..Mapping::default()
            });
            continue;
        }
        let Some(mapping) = mappings.last_mut() else {
            continue;
        };
        let bytes = words
            .next()
            .and_then(|kib| kib.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024;
        match first {
            "Size:" => mapping.size = bytes,
            "Rss:" => mapping.resident = bytes,
            "Pss:" | "SwapPss:" => mapping.share += bytes,
            _ => {}
        }
    }
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_as_the_kernel_lists_them() {
        let text = "7f00-7f01 rw-s 00000000 00:01 77   /memfd:a (deleted)\nSize:  8 kB\n\
            Rss:  4 kB\nPss:  2 kB\nSwapPss:  1 kB\nVmFlags: rd wr\n\
            7f02-7f03 r--p 00000000 fe:00 9 /usr/a: b\nSize: 4 kB\nRss: 0 kB\nPss: 0 kB\n";
        let mappings = parse(text);
        let want = Mapping {
            device: rustix::fs::makedev(0, 1),
            file: 77,
            size: 8192,
            resident: 4096,
            share: 3072,
        };
        assert_eq!((mappings.len(), &mappings[0]), (2, &want));
        assert_eq!(mappings[1].file, 9);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn memory_is_lost_though_freed_pages_are_not_available_yet() {
        let text = |available: u64, anonymous: u64, shared: u64| {
            let text = format!(
                "MemTotal: 9 kB\nMemAvailable: {available} kB\nAnonPages: {anonymous} kB\n\
                 Shmem: {shared} kB\n"
            );
            MachineMemory::parse(&text).unwrap()
        };
        let before = text(1000, 50, 10);
        assert_eq!(text(900, 50, 10).lost_since(before), 100 << 10);
        // A processor had kept enough free pages for all that was taken.
        assert_eq!(text(1000, 60, 210).lost_since(before), 210 << 10);
        let best = before.best(text(1100, 90, 20));
        assert_eq!(text(1050, 60, 20).lost_since(best), 50 << 10);
        assert!(MachineMemory::parse("MemAvailable: 1 kB\n").is_none());
    }

    #[test]
    fn a_process_that_ended_hides_nothing() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(is_alive(own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while is_alive(pid) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!is_alive(pid), "it ended and was not waited for");
        child.wait().unwrap();
        assert!(!is_alive(pid), "it is gone");
    }

    #[test]
    fn a_file_in_memory_counts_while_a_descriptor_leads_to_it() {
        let own = [i32::try_from(std::process::id()).unwrap()];
        let file = rustix::fs::memfd_create("counted", MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&file, &vec![7; 1 << 16]).unwrap();
        let number = rustix::fs::fstat(&file).unwrap().st_ino;
        let held = KernelMemory::of(&own, device());
        assert_eq!(held.files.get(&number), Some(&(1 << 16)), "{held:?}");
        drop(file);
        assert!(!KernelMemory::of(&own, device()).files.contains_key(&number));
        assert!(MachineMemory::now().is_some_and(|memory| memory.available > 0));
    }
}
