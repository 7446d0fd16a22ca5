//! The payload of the self-test: tries to get out, and says what happened.
//!
//! # Invariants
//!
//! - Every probe of [`PROBES`] is reported, in that order, whatever became of those before.
//! - What it changes inside it removes again; outside it changes nothing even if it can.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Resource;
use serde::{Deserialize, Serialize};

use super::attempts;
use super::minimal::INSIDE_ID;
use super::outlet;
use super::profile::{Limits, Network};

/// Argument of a probe that only shows that it runs.
pub(crate) const NOTHING: &str = "nothing";
/// Argument of a process outside that waits to be attacked until its standard input ends.
pub(crate) const VICTIM: &str = "victim";
/// The variable in the victim's environment that nobody inside may read.
pub(crate) const CANARY: &str = "PROVOST_CANARY";

/// What the probe needs to know about the outside to try to reach it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) secret: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) abstract_name: String,
    pub(crate) tcp: SocketAddr,
    pub(crate) udp: SocketAddr,
    pub(crate) victim: i32,
    pub(crate) home: PathBuf,
    /// Device and number of the home's directory.
    pub(crate) home_inode: (u64, u64),
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
}

/// What became of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What was tried.
    pub name: String,
    /// Whether the wall held.
    pub held: bool,
    /// What the kernel answered, or what was seen.
    pub note: String,
}

type Attempt = fn(&Task) -> Outcome;
type Outcome = (bool, String);

/// Every attempt. A report without one of them does not hold.
///
/// The descriptors come first: later attempts may leave some of their own.
pub(crate) const PROBES: [(&str, Attempt); 33] = [
    ("descriptors", descriptors),
    ("secret_read", |task| denied(fs::read(&task.secret))),
    ("secret_write", |task| denied(append(&task.secret))),
    ("secret_chmod", |task| denied(set_mode(&task.secret, 0o666))),
    ("home_hidden", home_hidden),
    ("tcp_connect", |task| {
        denied(TcpStream::connect_timeout(
            &task.tcp,
            Duration::from_millis(500),
        ))
    }),
    ("udp_send", udp_send),
    ("proxy", proxy),
    ("abstract_socket", abstract_socket),
    ("path_socket", |task| {
        denied(UnixStream::connect(&task.socket))
    }),
    ("inet_socket", inet_socket),
    ("other_sockets", other_sockets),
    ("signal_host", |task| {
        if is_ours(task.victim) {
            return (true, "the number is one of the box's own".to_owned());
        }
        refused(attempts::signal(task.victim))
    }),
    ("trace_host", |task| refused(attempts::trace(task.victim))),
    ("environ_host", environ_host),
    ("processes_hidden", processes_hidden),
    ("mount", |_| refused(attempts::mount())),
    ("keyctl", |_| refused(attempts::keyctl())),
    ("io_uring", |_| refused(attempts::io_uring())),
    ("bpf", |_| refused(attempts::bpf())),
    ("unshare_user", |_| refused(attempts::unshare_user())),
    ("clone_user", |_| refused(attempts::clone_user())),
    ("clone3", |_| refused(attempts::clone_hidden())),
    ("terminal", |_| filtered(attempts::type_letter())),
    ("capabilities", capabilities),
    ("no_new_privileges", |_| status_is("NoNewPrivs", "1")),
    ("ids", ids),
    ("device_nodes", device_nodes),
    ("device_chmod", |_| {
        denied(set_mode(Path::new("/dev/null"), 0o666))
    }),
    ("sysctl", |_| {
        denied(
            OpenOptions::new()
                .write(true)
                .open("/proc/sys/kernel/core_pattern"),
        )
    }),
    ("read_only", read_only),
    ("writable", writable),
    ("limits", limits),
];

/// Does what `argument` says, and returns the exit code.
pub(crate) fn run(argument: &str) -> i32 {
    match argument {
        NOTHING => 0,
        VICTIM => i32::from(io::stdin().read_to_end(&mut Vec::new()).is_err()),
        task => match serde_json::from_str(task) {
            Ok(task) => i32::from(report(&task).is_err()),
            Err(_) => 2,
        },
    }
}

fn report(task: &Task) -> io::Result<()> {
    let probes: Vec<Probe> = PROBES
        .iter()
        .map(|(name, attempt)| {
            let (held, note) = attempt(task);
            let name = (*name).to_owned();
            Probe { name, held, note }
        })
        .collect();
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &probes)?;
    stdout.flush()
}

/// Holds if the attempt failed, for whatever reason.
fn denied<T>(result: io::Result<T>) -> Outcome {
    match result {
        Ok(_) => (false, "allowed".to_owned()),
        Err(error) => (true, error.to_string()),
    }
}

fn refused(result: Result<(), Errno>) -> Outcome {
    denied(result.map_err(io::Error::from))
}

/// Holds if the filter answered, and not the thing the call was about.
fn filtered(result: Result<(), Errno>) -> Outcome {
    let (held, note) = refused(result);
    (held && result == Err(Errno::PERM), note)
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Something may be at that path, but not the host's directory.
fn home_hidden(task: &Task) -> Outcome {
    match fs::metadata(&task.home) {
        Ok(found) => (
            (found.dev(), found.ino()) != task.home_inode,
            "another directory is there".to_owned(),
        ),
        Err(error) => (true, error.to_string()),
    }
}

/// Whether something arrived is for the host to say.
fn udp_send(task: &Task) -> Outcome {
    let sent = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", task.udp));
    (
        true,
        sent.map_or_else(|error| error.to_string(), |_| "sent".to_owned()),
    )
}

/// A proxy leads only where it was told to, and that is not here.
fn proxy(task: &Task) -> Outcome {
    if !matches!(task.network, Network::Proxy(_)) {
        return (true, "there is none".to_owned());
    }
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(outlet::PROXY)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let (place, end) = (task.tcp, "\r\n");
        write!(
            stream,
            "CONNECT {place} HTTP/1.1{end}Host: {place}{end}{end}"
        )?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    match asked() {
        Ok(answer) => (answer == "HTTP/1.1 403", answer),
        Err(error) => (false, error.to_string()),
    }
}

fn abstract_socket(task: &Task) -> Outcome {
    let address = UnixAddress::from_abstract_name(&task.abstract_name);
    denied(address.and_then(|address| UnixStream::connect_addr(&address)))
}

fn inet_socket(task: &Task) -> Outcome {
    let result = attempts::socket(libc::AF_INET);
    match task.network {
        Network::Deny => refused(result),
        Network::Loopback | Network::Proxy(_) => {
            let (held, note) = refused(result);
            (!held, note)
        }
    }
}

fn other_sockets(_: &Task) -> Outcome {
    let families = [
        libc::AF_VSOCK,
        libc::AF_ALG,
        libc::AF_PACKET,
        libc::AF_BLUETOOTH,
    ];
    let results = families.map(|family| filtered(attempts::socket(family)));
    let notes: Vec<String> = results.iter().map(|(_, note)| note.clone()).collect();
    (results.iter().all(|(held, _)| *held), notes.join(", "))
}

/// A number of the host may be used inside too.
fn is_ours(pid: i32) -> bool {
    pid == 1 || u32::try_from(pid) == Ok(std::process::id())
}

fn environ_host(task: &Task) -> Outcome {
    match fs::read(format!("/proc/{}/environ", task.victim)) {
        Ok(bytes) => {
            let canary = CANARY.as_bytes();
            let seen = bytes.windows(canary.len()).any(|part| part == canary);
            (!seen, "read".to_owned())
        }
        Err(error) => (true, error.to_string()),
    }
}

/// Only init and this process exist.
fn processes_hidden(_: &Task) -> Outcome {
    let listed = fs::read_dir("/proc").map(|entries| {
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .collect::<Vec<i32>>()
    });
    match listed {
        Ok(pids) => {
            let own = pids.iter().all(|pid| is_ours(*pid));
            (own && pids.len() == 2, format!("{} processes", pids.len()))
        }
        Err(error) => (false, error.to_string()),
    }
}

fn status_is(field: &str, wanted: &str) -> Outcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == field).then(|| value.trim().to_owned())
    });
    let held = value.as_deref() == Some(wanted);
    (held, value.unwrap_or_else(|| "not there".to_owned()))
}

fn capabilities(_: &Task) -> Outcome {
    const NONE: &str = "0000000000000000";
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let outcomes = sets.map(|set| status_is(set, NONE));
    let notes: Vec<String> = outcomes.iter().map(|(_, note)| note.clone()).collect();
    (outcomes.iter().all(|(held, _)| *held), notes.join(" "))
}

fn ids(_: &Task) -> Outcome {
    let all = format!("{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}");
    let (users, user) = status_is("Uid", &all);
    let (groups, group) = status_is("Gid", &all);
    (
        users && groups,
        format!("{user} / {group}").replace('\t', " "),
    )
}

/// Only the three streams are open, and the listing of them.
fn descriptors(_: &Task) -> Outcome {
    let listed =
        fs::read_dir("/proc/self/fd").map(|entries| entries.filter_map(Result::ok).count());
    match listed {
        Ok(count) => (count == 4, format!("{} open", count.saturating_sub(1))),
        Err(error) => (false, error.to_string()),
    }
}

fn device_nodes(task: &Task) -> Outcome {
    let Some(directory) = task.writable.iter().find(|path| path.is_dir()) else {
        return (true, "no place to make one".to_owned());
    };
    let path = scratch(directory);
    let outcome = refused(attempts::whiteout(&path.to_string_lossy()));
    let _ = fs::remove_file(path);
    outcome
}

/// A place where nothing is: what a probe left that was killed is removed.
fn scratch(directory: &Path) -> PathBuf {
    let path = directory.join(".provost-probe");
    let _ = fs::remove_file(&path);
    path
}

/// Opens a file for writing, or makes one in a directory and removes it again.
fn touch(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return append(path).map(drop);
    }
    let file = scratch(path);
    File::create_new(&file)?;
    fs::remove_file(file)
}

fn read_only(task: &Task) -> Outcome {
    let root = Path::new("/");
    let places = task.read_only.iter().map(PathBuf::as_path);
    let written: Vec<String> = places
        .chain([root])
        .filter(|path| touch(path).is_ok())
        .map(|path| path.display().to_string())
        .collect();
    (written.is_empty(), written.join(" "))
}

fn writable(task: &Task) -> Outcome {
    let failed: Vec<String> = task
        .writable
        .iter()
        .filter_map(|path| {
            let error = touch(path).err()?;
            Some(format!("{}: {error}", path.display()))
        })
        .collect();
    (failed.is_empty(), failed.join(" "))
}

fn limits(task: &Task) -> Outcome {
    let wanted = [
        (Resource::Core, 0),
        (Resource::Nofile, task.limits.open_files),
        (Resource::Fsize, task.limits.file_bytes),
        (Resource::Nproc, task.limits.processes),
    ];
    let held = wanted.iter().all(|(resource, most)| {
        let limit = rustix::process::getrlimit(*resource).maximum;
        limit.is_some_and(|limit| limit <= *most)
    });
    (held, String::new())
}
