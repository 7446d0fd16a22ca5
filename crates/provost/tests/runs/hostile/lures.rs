//! Attacks on what lives outside: listeners, sockets, secrets and processes of the host.

use std::cell::Cell;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{Contained, check_verdict, whole};
use crate::stage::{Ask, Stage, lacks};

/// What an agent might want to reach.
struct Lures {
    tcp: TcpListener,
    udp: UdpSocket,
    named: UnixListener,
    hidden: UnixListener,
    victim: Child,
    hits: Cell<u32>,
}

/// A process with a secret, which permits every process to trace it.
const VICTIM: &str = "import ctypes, time\n\
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)\nprint(flush=True)\n\
    time.sleep(600)";

impl Lures {
    fn new(stage: &Stage) -> Self {
        let mut victim = Command::new("python3")
            .args(["-c", VICTIM])
            .env("PRECIOUS", "xyzzy-secret")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        let stdout = victim.stdout.as_mut().unwrap();
        std::io::Read::read_exact(stdout, &mut ready).unwrap();
        let hidden = SocketAddr::from_abstract_name(format!("{:?}", stage.path("")).as_bytes());
        let lures = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            named: UnixListener::bind(stage.path("outside/socket")).unwrap(),
            hidden: UnixListener::bind_addr(&hidden.unwrap()).unwrap(),
            victim,
            hits: Cell::new(0),
        };
        lures.tcp.set_nonblocking(true).unwrap();
        lures.udp.set_nonblocking(true).unwrap();
        lures.named.set_nonblocking(true).unwrap();
        lures.hidden.set_nonblocking(true).unwrap();
        lures
    }

    fn fill(&self, stage: &Stage, script: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        script
            .replace("@TCP@", &port(self.tcp.local_addr()).to_string())
            .replace("@UDP@", &port(self.udp.local_addr()).to_string())
            .replace(
                "@HIDDEN@",
                &format!("\\0{:?}", stage.path("")).replace('"', "\\\""),
            )
            .replace("@PID@", &self.victim.id().to_string())
    }

    /// Whether a process connected since the last call, or the victim is dead.
    fn touched(&mut self) -> bool {
        let no_visitor = |kind: ErrorKind| assert_eq!(kind, ErrorKind::WouldBlock);
        let mut letter = [0];
        let came = [
            self.tcp.accept().map(drop),
            self.udp.recv(&mut letter).map(drop),
            self.named.accept().map(drop),
            self.hidden.accept().map(drop),
        ];
        for one in came {
            match one {
                Ok(()) => self.hits.set(self.hits.get() + 1),
                Err(error) => no_visitor(error.kind()),
            }
        }
        self.hits.take() > 0 || self.victim.try_wait().unwrap().is_some()
    }
}

impl Drop for Lures {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn check(name: &str, script: &str) {
    if lacks("python3") {
        return;
    }
    let stage = Stage::new();
    let mut lures = Lures::new(&stage);
    let script = lures.fill(&stage, &whole(script));
    let before = stage.surroundings();
    let outcome = stage.run(&script, &Ask::default());
    check_verdict(name, &outcome, &Contained);
    assert!(!lures.touched(), "{name}: it got through");
    let printed = stage.printed();
    assert!(!printed.contains("LOOT"), "{name}: it got something");
    assert!(
        !printed.contains("xyzzy-secret"),
        "{name}: it got the secret"
    );
    stage.assert_clean(&before, name);

    let output = stage.run_plainly(&script, "plain");
    let looted = String::from_utf8_lossy(&output.stdout).contains("LOOT");
    sleep(Duration::from_millis(50));
    assert!(
        looted || lures.touched(),
        "{name}: harmless without the sandbox: {output:?}"
    );
}

/// Runs `lines` in Python; whatever fails there does not end the agent.
fn attempt(lines: &str) -> String {
    let lines = lines.replace('\n', "\n    ");
    format!(
        "#!python\nimport ctypes, glob, os, socket\ntry:\n    {lines}\n\
             except BaseException as error:\n    print(repr(error))"
    )
}

/// One test for each attack: its name and its lines in Python.
macro_rules! lured {
    ($($name:ident: $lines:expr;)+) => {
        $(#[test] fn $name() { check(stringify!($name), &attempt($lines)); })+
    };
}

lured! {
    connects_by_tcp:
        "socket.create_connection(('127.0.0.1', @TCP@), 2).send(b'x')";
    connects_by_tcp_over_another_family:
        "socket.create_connection(('::ffff:127.0.0.1', @TCP@), 2).send(b'x')";
    sends_by_udp:
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @UDP@))";
    connects_to_a_named_socket:
        "socket.socket(socket.AF_UNIX).connect('@OUTSIDE@/socket')";
    connects_to_a_named_socket_through_a_link_of_the_base:
        "socket.socket(socket.AF_UNIX).connect('exit/socket')";
    connects_to_an_abstract_socket:
        "socket.socket(socket.AF_UNIX).connect('@HIDDEN@')";
    reads_a_secret:
        "print('LOOT', open('@OUTSIDE@/secret').read())";
    reads_a_secret_through_a_link_of_the_base:
        "print('LOOT', open('exit/secret').read())";
    reads_the_environment_of_a_process:
        "if b'xyzzy-secret' in open('/proc/@PID@/environ', 'rb').read(): print('LOOT')";
    reads_the_environment_of_every_process:
        "for path in glob.glob('/proc/[0-9]*/environ'):\n    try:\n        \
         if b'xyzzy-secret' in open(path, 'rb').read(): print('LOOT')\n    \
         except OSError: pass";
    reads_a_secret_through_the_root_of_a_process:
        "print('LOOT', open('/proc/@PID@/root@OUTSIDE@/secret').read())";
    kills_a_process: "os.kill(@PID@, 9)";
    sees_a_process: "os.kill(@PID@, 0); print('LOOT')";
    traces_a_process: "if ctypes.CDLL(None).ptrace(0x4206, @PID@, 0, 0) == 0: print('LOOT')";
}
