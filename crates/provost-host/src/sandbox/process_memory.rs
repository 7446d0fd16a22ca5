//! Counts the processes of a sandbox and their memory, by what the kernel tells about every process.
//!
//! A count is a moment's: what lived only between two of them was never there.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use super::kernel_memory::KernelMemory;
use crate::process::Status;

/// The processes of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct ProcessList {
    /// Their numbers on the host, init first.
    pub(crate) pids: Vec<i32>,
    /// Processes and threads.
    pub(crate) tasks: u64,
}

impl ProcessList {
    /// `init` and everybody it is an ancestor of; orphans of a sandbox belong to its init.
    pub(crate) fn of(init: i32) -> io::Result<Self> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            // One that is gone again is none.
            let stat = fs::read(format!("/proc/{pid}/stat")).ok();
            let Some(status) = stat.and_then(|stat| Status::parse(&stat)) else {
                continue;
            };
            children.entry(status.parent).or_default().push(pid);
            threads.insert(pid, status.threads);
        }
        let mut crew = Self::default();
        let mut next = vec![init];
        while let Some(pid) = next.pop() {
            if let Some(threads) = threads.remove(&pid) {
                crew.pids.push(pid);
                crew.tasks += threads;
                next.extend(children.remove(&pid).unwrap_or_default());
            }
        }
        Ok(crew)
    }

    /// Bytes that processes have mapped, with what is swapped out. What they share counts for each
    /// of them.
    pub(crate) fn mapped(&self) -> u64 {
        self.pids.iter().map(|pid| mapped(*pid)).sum()
    }

    /// The same where what is shared counts once, and without the files of `held`, which are
    /// counted by themselves. Finding out has its price.
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

/// The sum of two lines of a file about a process, in bytes; nothing if it cannot be read.
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
    fn a_crew_is_everybody_below_its_init() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & (sleep 60 & wait) & read word"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let init = i32::try_from(shell.id()).unwrap();
        let mut crew = ProcessList::default();
        for _ in 0..200 {
            crew = ProcessList::of(init).unwrap();
            if crew.tasks == 4 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let memory = (crew.mapped(), crew.shared(&KernelMemory::default()));
        for pid in crew.pids.iter().rev() {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        assert_eq!(crew.tasks, 4, "{crew:?}");
        assert_eq!(crew.pids[0], init);
        assert!(memory.1 > 0 && memory.1 < memory.0, "{memory:?}");
        assert_eq!(ProcessList::of(init).unwrap().tasks, 0);
    }
}
