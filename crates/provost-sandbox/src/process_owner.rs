//! Identifies this process, and finds out whether another one is still alive.
//!
//! A process is dead only when that is certain: its machine has booted again, or its pid is free, a
//! zombie, or taken by a later process. A process on another machine or in another pid namespace
//! cannot be checked, and counts as alive until its lease runs out.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::approval::Person;
use provost_core::lease::Owner;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::process::{self, Status};

/// Why this process cannot be identified.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// A file of `/proc` or `/etc` cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        path: &'static str,
        source: io::Error,
    },
    /// A file of `/proc` or `/etc` does not have the expected content.
    #[error("{path} does not say what it should")]
    Unknown { path: &'static str },
}

const HOSTNAME: &str = "/proc/sys/kernel/hostname";
const ACCOUNTS: &str = "/etc/passwd";
const MACHINE: &str = "/etc/machine-id";
const NAMESPACE: &str = "/proc/self/ns/pid";
const SELF: &str = "/proc/self/stat";

pub fn current() -> Result<Owner, OwnerError> {
    let stat = fs::read(SELF).map_err(|source| OwnerError::Unreadable { path: SELF, source })?;
    let status = Status::parse(&stat).ok_or(OwnerError::Unknown { path: SELF })?;
    Ok(Owner {
        host: host()?,
        boot: line(process::BOOT)?,
        pid_namespace: namespace()?,
        pid: std::process::id(),
        started: status.started,
    })
}

/// The process that started this one: for commands, the shell of the user.
pub fn parent() -> Result<Owner, OwnerError> {
    let unknown = || OwnerError::Unknown { path: SELF };
    let pid = rustix::process::getppid().ok_or_else(unknown)?;
    let pid = u32::try_from(pid.as_raw_nonzero().get()).map_err(|_| unknown())?;
    let stat = fs::read(format!("/proc/{pid}/stat"));
    let stat = stat.map_err(|source| OwnerError::Unreadable { path: SELF, source })?;
    Ok(Owner {
        pid,
        started: Status::parse(&stat).ok_or_else(unknown)?.started,
        ..current()?
    })
}

/// The user who runs this process, from the system's list of accounts.
///
/// The environment does not count: any program can set it.
pub fn person() -> Result<Person, OwnerError> {
    let uid = rustix::process::getuid().as_raw();
    let accounts = fs::read_to_string(ACCOUNTS).unwrap_or_default();
    Ok(Person {
        user: account(&accounts, uid).unwrap_or_else(|| uid.to_string()),
        uid,
        host: line(HOSTNAME)?,
    })
}

/// The name of the account `uid`, if the list has it.
fn account(accounts: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let found = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then_some(name)
    });
    found.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Whether `owner` may still be alive; `true` unless it is certainly dead.
pub fn alive(owner: &Owner) -> bool {
    let (Ok(host), Ok(boot), Ok(pid_namespace)) = (host(), line(process::BOOT), namespace()) else {
        return true;
    };
    if owner.host != host {
        return true;
    }
    if owner.boot != boot {
        return false;
    }
    if owner.pid_namespace != pid_namespace || !proc_counts_as_we_do() {
        return true;
    }
    match fs::read(format!("/proc/{}/stat", owner.pid)) {
        Ok(stat) => {
            let same = |status: Status| status.started == owner.started && !status.is_dead();
            Status::parse(&stat).is_none_or(same)
        }
        // `/proc` may hide other users' processes, so only a signal test counts.
        Err(_) => !is_free(owner.pid),
    }
}

/// The machine: its id and its name, as far as it has them.
///
/// Containers of one image share one id; the name distinguishes them.
fn host() -> Result<String, OwnerError> {
    let name = line(HOSTNAME)?;
    match line(MACHINE) {
        Ok(id) => Ok(format!("{id}/{name}")),
        Err(_) => Ok(name),
    }
}

fn namespace() -> Result<String, OwnerError> {
    let link = fs::read_link(NAMESPACE).map_err(|source| OwnerError::Unreadable {
        path: NAMESPACE,
        source,
    })?;
    let text = link.to_str().filter(|text| !text.is_empty());
    Ok(text
        .ok_or(OwnerError::Unknown { path: NAMESPACE })?
        .to_owned())
}

/// The one line of a small file, which must not be empty.
fn line(path: &'static str) -> Result<String, OwnerError> {
    let text =
        fs::read_to_string(path).map_err(|source| OwnerError::Unreadable { path, source })?;
    match text.trim() {
        "" => Err(OwnerError::Unknown { path }),
        text => Ok(text.to_owned()),
    }
}

/// Whether `/proc` shows the pid namespace of this process; in a sandbox it may show another one.
fn proc_counts_as_we_do() -> bool {
    let own = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&own))
}

/// Whether no process has this pid.
fn is_free(pid: u32) -> bool {
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(pid) => test_kill_process(pid) == Err(Errno::SRCH),
        // No process ever has such a pid.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper(program: &Path) -> (Child, Owner) {
        let child = Command::new(program)
            .arg0("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let stat = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
        let owner = Owner {
            pid: child.id(),
            started: Status::parse(&stat).unwrap().started,
            ..current().unwrap()
        };
        (child, owner)
    }

    fn eventually(fact: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if fact() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn only_a_process_that_is_certainly_dead_counts_as_dead() {
        type Change = fn(&mut Owner);
        let cases: [(&str, Change, bool); 9] = [
            ("ourselves", |_| (), true),
            ("a later process", |owner| owner.started += 1, false),
            ("another start", |owner| owner.boot.push('x'), false),
            ("another machine", |owner| owner.host.push('x'), true),
            (
                "another name space",
                |owner| owner.pid_namespace.clear(),
                true,
            ),
            ("a pid that cannot be", |owner| owner.pid = u32::MAX, false),
            ("pid 0", |owner| owner.pid = 0, false),
            (
                "a pid beyond the last",
                |owner| owner.pid = 4_194_305,
                false,
            ),
            (
                "another machine and start",
                |owner| {
                    owner.host.push('x');
                    owner.boot.push('x');
                },
                true,
            ),
        ];
        for (name, change, want) in cases {
            let mut owner = current().unwrap();
            change(&mut owner);
            assert_eq!(alive(&owner), want, "{name}");
        }
    }

    #[test]
    fn a_person_is_who_the_list_of_accounts_says() {
        let list = "root:x:0:0::/root:/bin/sh\n+\nbroken\n:x:7:7::/:\nann:x:1000:1000::/:\n";
        assert_eq!(account(list, 1000).as_deref(), Some("ann"));
        assert_eq!(account(list, 0).as_deref(), Some("root"));
        assert_eq!(account(list, 7), None);
        assert_eq!(account(list, 100), None);
        assert!(!person().unwrap().user.is_empty());
    }

    #[test]
    fn a_killed_process_is_dead_before_and_after_its_parent_waits_for_it() {
        let (mut child, owner) = sleeper(Path::new("sleep"));
        assert!(alive(&owner));
        child.kill().unwrap();
        assert!(eventually(|| !alive(&owner)), "a zombie counts as alive");
        child.wait().unwrap();
        assert!(!alive(&owner));
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join(") Z 1 (x\n");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .unwrap();
        std::os::unix::fs::symlink(sleep, &program).unwrap();
        let (mut child, owner) = sleeper(&program);
        let lives = alive(&owner);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives);
    }
}
