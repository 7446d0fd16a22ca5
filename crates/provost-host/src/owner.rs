//! Names this process, and says whether another one still lives.
//!
//! A process is dead only when that is certain: its machine has started anew, or its pid is free,
//! a zombie, or taken by a later process. Whoever runs on another machine or counts pids
//! differently cannot be asked, and counts as alive until its lease runs out.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::lease::Owner;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Why this process cannot be named.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// A file of the kernel cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Which file.
        path: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the kernel does not say what it should.
    #[error("{path} does not say what it should")]
    Unknown {
        /// Which file.
        path: &'static str,
    },
}

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
const MACHINE: &str = "/etc/machine-id";
const NAMESPACE: &str = "/proc/self/ns/pid";
const SELF: &str = "/proc/self/stat";

/// What `/proc/<pid>/stat` says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status {
    state: u8,
    started: u64,
}

/// This process.
pub fn current() -> Result<Owner, OwnerError> {
    let stat = fs::read(SELF).map_err(|source| OwnerError::Unreadable { path: SELF, source })?;
    let status = parse(&stat).ok_or(OwnerError::Unknown { path: SELF })?;
    Ok(Owner {
        host: host()?,
        boot: line(BOOT)?,
        pid_namespace: namespace()?,
        pid: std::process::id(),
        started: status.started,
    })
}

/// Whether `owner` may still be at work; `true` unless it is certainly dead.
pub fn alive(owner: &Owner) -> bool {
    let (Ok(host), Ok(boot), Ok(pid_namespace)) = (host(), line(BOOT), namespace()) else {
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
            parse(&stat).is_none_or(|status| status.started == owner.started && !status.is_dead())
        }
        // Other users' processes may be hidden from us, so only the kernel's word counts.
        Err(_) => !is_free(owner.pid),
    }
}

/// The machine: its id and its name, as far as it has them.
///
/// Images of containers carry one id to many machines; the name tells those apart.
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

/// Whether `/proc` numbers processes as we do; in a box it may be that of another name space.
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

impl Status {
    fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Reads a `stat` line; the name of the program may hold anything, so it ends at the last `)`.
fn parse(stat: &[u8]) -> Option<Status> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = match fields.next()?.as_bytes() {
        [state] => *state,
        _ => return None,
    };
    // The state is field 3, the start field 22.
    let started = fields.nth(18)?.parse().ok()?;
    Some(Status { state, started })
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
            started: parse(&stat).unwrap().started,
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
    fn only_who_is_certainly_dead_is_dead() {
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
            ("a pid of nobody", |owner| owner.pid = 0, false),
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
    fn a_killed_process_is_dead_before_and_after_somebody_waits_for_it() {
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

    #[test]
    fn a_status_is_read_behind_the_name_of_the_program() {
        let fields = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        let want = Some(Status {
            state: b'S',
            started: 777,
        });
        for name in ["sh", "a b", ")", ") Z 1 (", "\u{e9})"] {
            let stat = format!("42 ({name}) S {fields}\n");
            assert_eq!(parse(stat.as_bytes()), want, "{name}");
        }
        let bad: [&[u8]; 6] = [
            b"",
            b"42 sh S 1",
            b"42 (sh)",
            b"42 (sh) S 1 2 3",
            b"42 (sh) SS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777",
            b"42 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -7",
        ];
        for stat in bad {
            assert_eq!(parse(stat), None);
        }
    }
}
