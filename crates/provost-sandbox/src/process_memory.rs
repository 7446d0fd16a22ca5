//! Lists the processes of a sandbox and counts their memory, from `/proc`.
//!
//! A list is a snapshot: a process that lived only between two of them is in neither.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use super::kernel_memory::KernelMemory;
use crate::process::Status;

/// The processes of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct ProcessList {
    /// Their pids on the host, init first.
    pub(crate) pids: Vec<i32>,
    /// Processes and threads.
    pub(crate) tasks: u64,
}

impl ProcessList {
    /// `init` and its descendants; orphans of a sandbox are children of its init.
    pub(crate) fn of(init: i32) -> io::Result<Self> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            // A process that ended meanwhile is skipped.
            let stat = fs::read(format!("/proc/{pid}/stat")).ok();
            let Some(status) = stat.and_then(|stat| Status::parse(&stat)) else {
                continue;
            };
            children.entry(status.parent).or_default().push(pid);
            threads.insert(pid, status.threads);
        }
        let mut processes = Self::default();
        let mut next = vec![init];
        while let Some(pid) = next.pop() {
            if let Some(threads) = threads.remove(&pid) {
                processes.pids.push(pid);
                processes.tasks += threads;
                next.extend(children.remove(&pid).unwrap_or_default());
            }
        }
        Ok(processes)
    }

    /// Bytes that the processes have mapped, with what is swapped out. Shared memory counts for
    /// each process.
    pub(crate) fn mapped(&self) -> u64 {
        self.pids.iter().map(|pid| mapped(*pid)).sum()
    }

    /// The same, but shared memory counts once, and the files of `held` do not count. This is
    /// slower than [`Self::mapped`].
    pub(crate) fn shared(&self, held: &KernelMemory) -> u64 {
        let exact = |pid: &i32| {
            let shared = if held.files.is_empty() {
                read(*pid, "smaps_rollup", ["Pss:", "SwapPss:"])
            } else {
                held.mapped_beside(*pid)
            };
            shared.unwrap_or_else(|| mapped(*pid))
        };
        self.pids.iter().map(exact).sum()
    }
}

fn mapped(pid: i32) -> u64 {
    read(pid, "status", ["VmRSS:", "VmSwap:"]).unwrap_or(0)
}

/// The sum of two lines of a file about a process, in bytes; `None` if it cannot be read.
fn read(pid: i32, file: &str, lines: [&str; 2]) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    Some(sum(&String::from_utf8_lossy(&text), lines))
}

/// The sum of the lines that begin with `names`, which the kernel writes in KiB.
fn sum(text: &str, names: [&str; 2]) -> u64 {
    let size = |line: &str| -> Option<u64> {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        names.contains(&name).then(|| words.next()?.parse().ok())?
    };
    let sizes = text.lines().filter_map(size);
    sizes.fold(0, |sum: u64, kib| {
        sum.saturating_add(kib.saturating_mul(1024))
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn lines_are_added_up_by_their_whole_name() {
        let text = "Name:\tVmRSS: 9\nVmRSS:\t   12 kB\nVmRSSx:\t 5 kB\nVmSwap:\t3 kB\nVmSwap:\n";
        assert_eq!(sum(text, ["VmRSS:", "VmSwap:"]), 15 * 1024);
        assert_eq!(sum("", ["VmRSS:", "VmSwap:"]), 0);
    }

    #[test]
    fn a_list_has_every_descendant_of_init() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & (sleep 60 & wait) & read word"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let init = i32::try_from(shell.id()).unwrap();
        let mut processes = ProcessList::default();
        for _ in 0..200 {
            processes = ProcessList::of(init).unwrap();
            if processes.tasks == 4 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let memory = (
            processes.mapped(),
            processes.shared(&KernelMemory::default()),
        );
        for pid in processes.pids.iter().rev() {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        assert_eq!(processes.tasks, 4, "{processes:?}");
        assert_eq!(processes.pids[0], init);
        assert!(memory.1 > 0 && memory.1 < memory.0, "{memory:?}");
        assert_eq!(ProcessList::of(init).unwrap().tasks, 0);
    }
}
