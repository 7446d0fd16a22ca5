//! Tries to get out of a box before anybody else does.
//!
//! A probe runs through the same profile as the payload and attacks things that [`Outside`] put up
//! for it; then the host looks whether anything reached them.
//!
//! # Invariants
//!
//! - A report holds only if every probe is in it and held; a missing or garbled one never holds.
//! - The probe runs with the mounts, network and limits of the payload.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use provost_core::object::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::availability::kernel;
use super::driver::{Command, Launcher, Stdin};
use super::error::BoxError;
use super::launcher::PROBE;
pub use super::probe::Probe;
use super::probe::{CANARY, PROBES, Task, VICTIM};
use super::profile::{Mount, Profile};
use super::root::OWN_PROGRAM;
use super::running::{Control, How};

/// How long the probe may take.
const PATIENCE: Duration = Duration::from_secs(20);
const SECRET: &str = "nobody inside may read this\n";
/// How the directories of self-tests begin.
const PREFIX: &str = "provost-selftest-";
/// A self-test that began longer ago is over.
const LONG_AGO: Duration = Duration::from_mins(10);
/// Found by the host, not by the probe.
const UNTOUCHED: &str = "outside_untouched";

/// What a self-test found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was tried and what became of it.
    pub probes: Vec<Probe>,
    /// The kernel's release.
    pub kernel: String,
    /// SHA-256 of the launcher's program.
    pub launcher_digest: String,
    /// SHA-256 of the profile.
    pub profile_digest: String,
}

impl Report {
    /// Whether every probe there has to be is there and held.
    pub fn held(&self) -> bool {
        let wanted = PROBES.iter().map(|(name, _)| *name).chain([UNTOUCHED]);
        self.probes
            .iter()
            .map(|probe| probe.name.as_str())
            .eq(wanted)
            && self.probes.iter().all(|probe| probe.held)
    }

    /// The probes that did not hold.
    pub fn leaks(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| !probe.held)
    }
}

/// Things of the host that the probe attacks; they are gone with this value.
#[derive(Debug)]
pub struct Outside {
    directory: PathBuf,
    abstract_name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: [UnixListener; 2],
    victim: Child,
}

impl Outside {
    /// Puts up a secret, listeners and a process; `launcher` is the process's program.
    pub fn new(launcher: &Launcher) -> Result<Self, BoxError> {
        Self::put_up(launcher).map_err(|source| BoxError::Machine {
            what: "the targets of the self-test",
            source,
        })
    }

    fn put_up(launcher: &Launcher) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let abstract_name = format!("{PREFIX}{}", hex(&random));
        let temporary = std::env::temp_dir();
        sweep(&temporary);
        let directory = temporary.join(&abstract_name);
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let result = Self::fill(launcher, directory.clone(), abstract_name);
        if result.is_err() {
            let _ = fs::remove_dir_all(directory);
        }
        result
    }

    fn fill(launcher: &Launcher, directory: PathBuf, abstract_name: String) -> io::Result<Self> {
        fs::write(directory.join("secret"), SECRET)?;
        fs::set_permissions(directory.join("secret"), fs::Permissions::from_mode(0o600))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let abstract_address = UnixAddress::from_abstract_name(&abstract_name)?;
        let sockets = [
            UnixListener::bind(directory.join("socket"))?,
            UnixListener::bind_addr(&abstract_address)?,
        ];
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        for socket in &sockets {
            socket.set_nonblocking(true)?;
        }
        let victim = std::process::Command::new(&launcher.exe)
            .args([PROBE, VICTIM])
            .env_clear()
            .env(CANARY, &abstract_name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            directory,
            abstract_name,
            tcp,
            udp,
            sockets,
            victim,
        })
    }

    /// The directory of the host that holds the secret.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn task(&self, profile: &Profile) -> io::Result<Task> {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
        let home_inode = fs::metadata(&home).map_or((0, 0), |found| (found.dev(), found.ino()));
        let places = |wanted: fn(&Mount) -> bool| {
            let mounts = profile.mounts.iter().filter(|mount| wanted(mount));
            mounts.map(|mount| mount.target().to_owned()).collect()
        };
        Ok(Task {
            secret: self.directory.join("secret"),
            socket: self.directory.join("socket"),
            abstract_name: self.abstract_name.clone(),
            tcp: self.tcp.local_addr()?,
            udp: self.udp.local_addr()?,
            victim: i32::try_from(self.victim.id()).unwrap_or(0),
            home,
            home_inode,
            network: profile.network.clone(),
            limits: profile.limits,
            writable: places(Mount::is_writable),
            read_only: places(|mount| {
                !mount.is_writable() && !matches!(mount, Mount::Symlink { .. })
            }),
        })
    }

    /// Corrects `probes` by what is seen from here.
    fn inspect(&self, probes: &mut Vec<Probe>) {
        let [path_socket, abstract_socket] = &self.sockets;
        let reached = [
            ("tcp_connect", self.tcp.accept().is_ok()),
            ("udp_send", self.udp.recv(&mut [0; 16]).is_ok()),
            ("path_socket", path_socket.accept().is_ok()),
            ("abstract_socket", abstract_socket.accept().is_ok()),
        ];
        for (name, reached) in reached {
            for probe in probes
                .iter_mut()
                .filter(|probe| probe.name == name && reached)
            {
                probe.held = false;
                "it reached the host".clone_into(&mut probe.note);
            }
        }
        let secret = self.directory.join("secret");
        let same_text = fs::read_to_string(&secret).is_ok_and(|text| text == SECRET);
        let same_mode = fs::metadata(&secret).is_ok_and(|found| found.mode() & 0o777 == 0o600);
        probes.push(Probe {
            name: UNTOUCHED.to_owned(),
            held: same_text && same_mode,
            note: String::new(),
        });
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Removes what self-tests left whose driver was killed. Nothing depends on it, so nothing fails.
fn sweep(temporary: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !named {
            continue;
        }
        let Ok(found) = entry.metadata() else {
            continue;
        };
        let age = found.modified().map(|time| time.elapsed());
        let old = matches!(age, Ok(Ok(age)) if age > LONG_AGO);
        if found.is_dir() && found.uid() == user && old {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Sends a probe through `profile` and reports what it could do.
pub fn run(launcher: &Launcher, profile: &Profile, outside: &Outside) -> Result<Report, BoxError> {
    let machine = |source| BoxError::Machine {
        what: "the self-test",
        source,
    };
    let task = outside.task(profile).map_err(machine)?;
    let task = serde_json::to_string(&task).map_err(BoxError::Profile)?;
    let command = Command {
        argv: vec![OWN_PROGRAM.to_owned(), PROBE.to_owned(), task],
        stdin: Stdin::Null,
        stdout: outside.directory.join("report"),
        stderr: outside.directory.join("complaints"),
    };
    let mut patient = profile.clone();
    // A probe says nothing before its end.
    patient.limits.no_progress_seconds = None;
    let running = launcher.start(&patient, &command, |_| Ok(()))?;
    let ended = running.wait(&mut |progress| {
        if progress.wall < PATIENCE {
            Control::Continue
        } else {
            Control::Cancel
        }
    })?;
    let text = fs::read(&command.stdout).map_err(machine)?;
    let mut probes = match ended.how {
        How::Exited(0) => serde_json::from_slice(&text).unwrap_or_default(),
        _ => Vec::new(),
    };
    outside.inspect(&mut probes);
    Ok(Report {
        probes,
        kernel: kernel(),
        launcher_digest: digest(&launcher.exe).map_err(machine)?,
        profile_digest: profile.digest()?,
    })
}

/// SHA-256 of the program at `path`, computed once a process as long as the file stays the same.
fn digest(path: &Path) -> io::Result<String> {
    type Identity = (u64, u64, u64, i64, i64);
    static KNOWN: Mutex<BTreeMap<Identity, String>> = Mutex::new(BTreeMap::new());
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let identity = (
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
    );
    let mut known = KNOWN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(digest) = known.get(&identity) {
        return Ok(digest.clone());
    }
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => hasher.update(&chunk[..length]),
        }
    }
    let digest = hex(&hasher.finalize());
    known.insert(identity, digest.clone());
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(names: impl Iterator<Item = &'static str>) -> Report {
        let probe = |name: &str| Probe {
            name: name.to_owned(),
            held: true,
            note: String::new(),
        };
        Report {
            probes: names.map(probe).collect(),
            kernel: String::new(),
            launcher_digest: String::new(),
            profile_digest: String::new(),
        }
    }

    fn all() -> impl Iterator<Item = &'static str> {
        PROBES.iter().map(|(name, _)| *name).chain([UNTOUCHED])
    }

    #[test]
    fn a_report_holds_only_if_it_is_whole() {
        assert!(report(all()).held());
        assert!(!report(std::iter::empty()).held());
        for left_out in all() {
            assert!(
                !report(all().filter(|name| *name != left_out)).held(),
                "{left_out}"
            );
        }
        for leaking in all() {
            let mut report = report(all());
            for probe in &mut report.probes {
                probe.held = probe.name != leaking;
            }
            assert!(!report.held(), "{leaking}");
            assert_eq!(report.leaks().count(), 1, "{leaking}");
        }
    }
}
