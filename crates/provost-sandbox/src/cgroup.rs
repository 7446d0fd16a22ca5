//! Control groups: the kernel enforces the memory and process limits exactly, where it permits us.
//!
//! Only version 2 is used, and only a parent that already enables both controllers: for root that
//! is mostly the top, for a user a delegated subtree, as `systemd` makes it.
//!
//! # Invariants
//!
//! - The name of a group contains its driver. A driver that makes a group empties and removes the
//!   groups beside it whose drivers are dead.
//! - Where no group can be made, no error is reported: [`super::limit_watch`] counts all the same.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::process_identity::ProcessIdentity;
use super::profile::Limits;

const PREFIX: &str = "provost-box.";
/// How often, and after which pauses, removal of a group is tried while its processes exit.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// The process that makes a group. A pid is meaningful in one namespace only.
struct Driver {
    own: ProcessIdentity,
    space: u64,
}

impl Driver {
    fn prefix(&self) -> String {
        let ProcessIdentity {
            pid, start_time, ..
        } = self.own;
        format!("{PREFIX}{}.{pid}.{start_time}.", self.space)
    }
}

/// The pid namespace of this process.
fn space() -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let facts = fs::metadata("/proc/self/ns/pid").ok()?;
    Some(facts.ino())
}

/// The group of one sandbox. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// A group that enforces `limits`, if one can be made.
    pub(crate) fn make(limits: &Limits) -> Option<Self> {
        let own = ProcessIdentity::of(i32::try_from(std::process::id()).ok()?)?;
        Self::make_in(
            &place()?,
            &Driver {
                own,
                space: space()?,
            },
            limits,
        )
        .ok()
    }

    fn make_in(parent: &Path, driver: &Driver, limits: &Limits) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        sweep(parent, driver.space);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}", driver.prefix());
        let group = Self {
            path: parent.join(name),
        };
        fs::create_dir(&group.path)?;
        group.set("memory.max", limits.memory_bytes)?;
        // If one process exceeds the limit the kernel kills all of them, so that no part remains.
        group.set("memory.oom.group", 1)?;
        group.set("pids.max", limits.processes)?;
        // Not every machine has swap; where there is some, it must not weaken the limit.
        let _ = group.set("memory.swap.max", 0);
        Ok(group)
    }

    /// Puts a process into the group; its later children belong to the group too.
    pub(crate) fn enter(&self, pid: i32) -> io::Result<()> {
        self.set("cgroup.procs", u64::try_from(pid).unwrap_or(0))
    }

    /// Whether the kernel ended the group because of its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events"));
        events.is_ok_and(|events| counts(&events, "oom_kill"))
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        let mut file = fs::File::options().write(true).open(self.path.join(file))?;
        file.write_all(value.to_string().as_bytes())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Whether `events` counts at least one event `name`.
fn counts(events: &str, name: &str) -> bool {
    let mut lines = events.lines().filter_map(|line| line.split_once(' '));
    lines.any(|(line, count)| line == name && count.trim() != "0")
}

/// Where a group for a sandbox can be made: the nearest ancestor group that enables both
/// controllers and that this process may write.
pub fn place() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (top, from) = mounted(&mounts)?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(from).ok()?;
    let own = top.join(below);
    let above = own.ancestors().take_while(|path| path.starts_with(&top));
    let hands_out = |path: &&Path| {
        let given = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        let given: Vec<&str> = given.split_ascii_whitespace().collect();
        ["memory", "pids"].iter().all(|name| given.contains(name))
    };
    let writable = |path: &&Path| {
        rustix::fs::access(*path, rustix::fs::Access::WRITE_OK).is_ok()
            && rustix::fs::access(path.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
    };
    above.filter(hands_out).find(writable).map(Path::to_owned)
}

/// Where groups of version 2 are mounted, and which of them is there.
fn mounted(mounts: &str) -> Option<(PathBuf, &str)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (from, to) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ")
            .then(|| (PathBuf::from(to), from))
    })
}

/// Removes the groups of dead drivers of the pid namespace `space`.
fn sweep(parent: &Path, space: u64) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(mut numbers) = name.map(|name| name.split('.')) else {
            continue;
        };
        let mut number = || numbers.next().and_then(|text| text.parse::<u64>().ok());
        let (Some(of), Some(pid), Some(start)) = (number(), number(), number()) else {
            continue;
        };
        let pid = i32::try_from(pid).unwrap_or(0);
        let lives = ProcessIdentity::of(pid).is_some_and(|birth| birth.start_time == start);
        if of == space && !lives {
            remove(&entry.path());
        }
    }
}

/// Kills every process of the group at `path`, and removes the group.
fn remove(path: &Path) {
    for _ in 0..TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let _ = fs::write(path.join("cgroup.kill"), "1");
                std::thread::sleep(PAUSE);
            }
            // Gone, or not removable by us; the next driver tries again.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver() -> Driver {
        let own = ProcessIdentity::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let space = space().unwrap();
        Driver { own, space }
    }

    #[test]
    fn the_mount_of_version_two_is_found_among_others() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            31 25 0:27 /user.slice /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = mounted(mounts).unwrap();
        assert_eq!(found, ("/sys/fs/cgroup/unified".into(), "/user.slice"));
        assert_eq!(
            mounted("30 25 0:26 / /x rw - cgroup cgroup2 rw\nhalf a line"),
            None
        );
    }

    #[test]
    fn only_an_event_that_happened_counts() {
        let events = "low 0\noom 3\noom_kill 0\noom_group_kill 1\n";
        assert!(counts(events, "oom"));
        assert!(!counts(events, "oom_kill"));
        assert!(!counts("", "oom_kill"));
    }

    #[test]
    fn only_groups_of_dead_drivers_are_swept_away() {
        let parent = tempfile::tempdir().unwrap();
        let mine = driver();
        let mut dead = driver();
        dead.own.start_time += 1;
        let mut elsewhere = driver();
        elsewhere.own.start_time += 1;
        elsewhere.space += 1;
        let [mine, dead, elsewhere] = [mine, dead, elsewhere].map(|one| one.prefix() + "0");
        let names = [&mine, &dead, &elsewhere, "other", "provost-box.x.y.z"];
        for name in names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        sweep(parent.path(), space().unwrap());
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [true, false, true, true, true]);
    }

    #[test]
    fn a_place_that_is_no_control_group_makes_none() {
        let parent = tempfile::tempdir().unwrap();
        assert!(Group::make_in(parent.path(), &driver(), &Limits::default()).is_err());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
    /// Where no group is delegated to us there is nothing to try; `doctor` says so.
    #[test]
    fn the_kernel_ends_a_group_that_runs_out_of_memory() {
        use std::os::unix::process::ExitStatusExt as _;
        use std::process::{Command, Stdio};
        let limits = Limits {
            memory_bytes: 64 << 20,
            ..Limits::default()
        };
        let Some(group) = Group::make(&limits) else {
            assert_eq!(place(), None);
            provost_testkit::omit("no control group is delegated to us");
            return;
        };
        let mut child = Command::new("sh")
            .args([
                "-c",
                "read go; dd if=/dev/zero of=/dev/null bs=200M; exit 0",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        group.enter(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(!group.ran_out_of_memory());
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(group.ran_out_of_memory());
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists());
    }
}
