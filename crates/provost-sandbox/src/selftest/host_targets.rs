//! Sets up targets on the host for a probe to attack, and checks whether anything reached them.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use provost_core::object::hex;
use provost_core::tier::Tier;

use super::super::error::SandboxError;
use super::super::launcher::PROBE;
use super::super::launcher_program::LauncherProgram;
use super::super::probe::{CANARY, Hidden, Probe, Task, VICTIM};
use super::super::profile::{Mount, Profile};
use super::super::scratch::Scratch;
use super::super::wall::Wall;
use super::resolver::Resolver;

const SECRET: &str = "no process inside may read this\n";
/// Prefix of the names of abstract sockets.
const PREFIX: &str = "provost-selftest-";
/// A result that the host finds, not the probe.
pub(super) const UNTOUCHED: &str = "outside_untouched";

/// Targets on the host that the probe attacks; dropping this value removes them.
#[derive(Debug)]
pub struct Outside {
    scratch: Scratch,
    abstract_name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    resolver: Resolver,
    sockets: [UnixListener; 2],
    datagrams: UnixDatagram,
    victim: Child,
    hidden: Vec<PathBuf>,
}

impl Outside {
    /// Sets up a secret, listeners and a process; `launcher` is the process's program.
    pub fn new(launcher: &LauncherProgram) -> Result<Self, SandboxError> {
        Self::put_up(launcher).map_err(|source| SandboxError::Machine {
            what: "the targets of the self-test",
            source,
        })
    }

    /// Requires that `directory` of the host is not visible inside either.
    #[must_use]
    pub fn hiding(mut self, directory: &Path) -> Self {
        self.hidden.push(directory.to_owned());
        self
    }

    fn put_up(launcher: &LauncherProgram) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let abstract_name = format!("{PREFIX}{}", hex(&random));
        // If this process is killed, the next sandbox removes it.
        let scratch = Scratch::make(&temporary())?;
        Self::fill(launcher, scratch, abstract_name)
    }

    fn fill(
        launcher: &LauncherProgram,
        scratch: Scratch,
        abstract_name: String,
    ) -> io::Result<Self> {
        let directory = scratch.path();
        fs::write(directory.join("secret"), SECRET)?;
        fs::set_permissions(directory.join("secret"), fs::Permissions::from_mode(0o600))?;
        // A stand-in, because there may be no repository.
        let git = directory.join("repository/.git");
        fs::create_dir_all(&git)?;
        fs::write(git.join("config"), "[core]\n")?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let resolver = Resolver::start()?;
        let abstract_address = UnixAddress::from_abstract_name(&abstract_name)?;
        let sockets = [
            UnixListener::bind(directory.join("socket"))?,
            UnixListener::bind_addr(&abstract_address)?,
        ];
        let datagrams = UnixDatagram::bind(directory.join("datagrams"))?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
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
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
        Ok(Self {
            scratch,
            abstract_name,
            tcp,
            udp,
            resolver,
            sockets,
            datagrams,
            victim,
            hidden: vec![home, git],
        })
    }

    /// The directory of the host that holds the secret.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    pub(super) fn task(&self, profile: &Profile) -> io::Result<Task> {
        let hidden = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            Some(Hidden {
                path: path.clone(),
                device: found.dev(),
                inode: found.ino(),
            })
        };
        // A tree may be protected as a whole, whatever its mount is.
        let is_covered = |mount: &Mount| {
            let protects = |other: &Mount| matches!(other, Mount::Protect { target } if target == mount.target());
            mount.is_writable() && profile.mounts.iter().any(protects)
        };
        let places = |wanted: fn(&Mount) -> bool| {
            let mounts = profile.mounts.iter().filter(|mount| wanted(mount));
            mounts
                .filter(|mount| !is_covered(mount))
                .filter_map(|mount| place(mount, profile.tier))
                .map(Path::to_owned)
                .collect()
        };
        Ok(Task {
            secret: self.directory().join("secret"),
            socket: self.directory().join("socket"),
            datagram: self.directory().join("datagrams"),
            abstract_name: self.abstract_name.clone(),
            tcp: self.tcp.local_addr()?,
            udp: self.udp.local_addr()?,
            resolver: self.resolver.address(),
            ipc: fs::read_link("/proc/self/ns/ipc")?,
            victim: i32::try_from(self.victim.id()).unwrap_or(0),
            keeps_groups: !rustix::process::geteuid().is_root(),
            hidden: hidden_from(profile, &self.hidden)
                .iter()
                .filter_map(hidden)
                .collect(),
            tier: profile.tier,
            network: profile.network.clone(),
            limits: profile.limits,
            env: profile.env.clone(),
            writable: places(Mount::is_writable),
            read_only: places(|mount| {
                let other = matches!(mount, Mount::Symlink { .. } | Mount::Reports { .. });
                !mount.is_writable() && !other
            }),
        })
    }

    /// Corrects `probes` by what the host sees.
    pub(super) fn inspect(&self, tier: Tier, probes: &mut Vec<Probe>) {
        let [path_socket, abstract_socket] = &self.sockets;
        let reached = [
            ("tcp_connect", self.tcp.accept().is_ok()),
            ("udp_send", self.udp.recv(&mut [0; 16]).is_ok()),
            ("resolve", self.resolver.was_asked()),
            ("path_socket", path_socket.accept().is_ok()),
            ("path_datagram", self.datagrams.recv(&mut [0; 16]).is_ok()),
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
        let secret = self.directory().join("secret");
        let same_text = fs::read_to_string(&secret).is_ok_and(|text| text == SECRET);
        let same_mode = fs::metadata(&secret).is_ok_and(|found| found.mode() & 0o777 == 0o600);
        // Another probe tests changes of modes, and a tier may declare them as a hole.
        let excused = tier == Tier::Landlock;
        probes.push(Probe {
            name: UNTOUCHED.to_owned(),
            walls: vec![Wall::Root],
            tried: "leave a trace at the file of the host".to_owned(),
            held: same_text && (same_mode || excused),
            errno: None,
            note: String::new(),
        });
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        self.scratch.remove();
    }
}

/// What must not be visible inside: the directories `always`, but for those that the profile shows,
/// and everything that it masks.
fn hidden_from(profile: &Profile, always: &[PathBuf]) -> Vec<PathBuf> {
    let masked: Vec<PathBuf> = profile
        .mounts
        .iter()
        .filter(|mount| matches!(mount, Mount::Masked { .. }))
        .map(|mount| mount.target().to_owned())
        .collect();
    let is_shown = |path: &PathBuf| {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let shows =
            |mount: &Mount| matches!(mount, Mount::UserFiles { path } if real.starts_with(path));
        let covered = masked.iter().any(|masked| real.starts_with(masked));
        profile.mounts.iter().any(shows) && !covered
    };
    let always = always.iter().filter(|path| !is_shown(path)).cloned();
    always.chain(masked.clone()).collect()
}

/// Where a probe finds the target of `mount`. Without a mount namespace that is its path on the
/// host; the path of a scratch directory is not known beforehand.
fn place(mount: &Mount, tier: Tier) -> Option<&Path> {
    match (tier, mount) {
        (Tier::Landlock, Mount::ReadOnly { source, .. } | Mount::Writable { source, .. }) => {
            Some(source)
        }
        (Tier::Landlock, _) => None,
        (Tier::Namespaces, mount) => Some(mount.target()),
    }
}

/// The directory for temporary files, or the usual one where the path of a socket would be too
/// long.
fn temporary() -> PathBuf {
    const LONGEST: usize = 40;
    let asked = std::env::temp_dir();
    if asked.as_os_str().len() <= LONGEST {
        return asked;
    }
    PathBuf::from("/tmp")
}
