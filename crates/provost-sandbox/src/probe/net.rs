//! Attempts on the network and on sockets of the host.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream};
use std::time::Duration;

use super::super::attempts;
use super::super::profile::Network;
use super::super::proxy_listener;
use super::super::wall::Wall;
use super::{Outcome, Task, Trial};

/// How long the probe waits for an answer that must not come.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "tcp_connect",
        walls: &[Wall::Network, Wall::Seccomp, Wall::Landlock],
        tried: "connect to a TCP port on the loopback of the host",
        attempt: |task| Outcome::denied(TcpStream::connect_timeout(&task.tcp, PATIENCE)),
    },
    Trial {
        name: "udp_send",
        walls: &[Wall::Network, Wall::Seccomp],
        tried: "send a datagram to the loopback of the host",
        attempt: |task| sent(UdpSocket::bind("127.0.0.1:0"), task.udp),
    },
    Trial {
        name: "resolve",
        walls: &[Wall::Network, Wall::Seccomp],
        tried: "resolve a name by a resolver of the host, and connect to its address",
        attempt: resolve,
    },
    Trial {
        name: "proxy",
        walls: &[Wall::Grants],
        tried: "have the proxy connect to the loopback of the host",
        attempt: proxy,
    },
    Trial {
        name: "abstract_socket",
        walls: &[Wall::Network, Wall::Landlock],
        tried: "connect to an abstract unix socket of the host",
        attempt: abstract_socket,
    },
    Trial {
        name: "path_socket",
        walls: &[Wall::Root],
        tried: "connect to a unix socket of the host by its path",
        attempt: |task| Outcome::denied(UnixStream::connect(&task.socket)),
    },
    Trial {
        name: "path_datagram",
        walls: &[Wall::Root],
        tried: "send a datagram to a unix socket of the host by its path",
        attempt: |task| {
            let socket = UnixDatagram::unbound();
            Outcome::denied(socket.and_then(|socket| socket.send_to(b"x", &task.datagram)))
        },
    },
    Trial {
        name: "inet_socket",
        walls: &[Wall::Seccomp],
        tried: "make an internet socket where there is no network",
        attempt: inet_socket,
    },
    Trial {
        name: "other_sockets",
        walls: &[Wall::Seccomp],
        tried: "make vsock, crypto, packet and bluetooth sockets",
        attempt: other_sockets,
    },
];

/// The host finds out whether the datagram arrived.
fn sent(socket: io::Result<UdpSocket>, place: SocketAddr) -> Outcome {
    match socket.and_then(|socket| socket.send_to(b"x", place)) {
        Ok(_) => Outcome::seen(true, "sent"),
        error => Outcome::denied(error),
    }
}

/// A DNS query for the address of one name.
fn question() -> Vec<u8> {
    let mut question = vec![0x70, 0x76, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["canary", "test"] {
        question.push(u8::try_from(label.len()).unwrap_or(0));
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    question
}

fn resolve(task: &Task) -> Outcome {
    let resolved = || -> io::Result<[u8; 4]> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(task.resolver)?;
        socket.send(&question())?;
        let mut answer = [0; 512];
        let length = socket.recv(&mut answer)?;
        // The address is the last four bytes of the only answer.
        let end = answer[..length].last_chunk::<4>().copied();
        end.ok_or_else(|| io::Error::other("no address"))
    };
    let connected = resolved().and_then(|address| {
        let place = SocketAddr::from((address, task.tcp.port()));
        TcpStream::connect_timeout(&place, PATIENCE)
    });
    Outcome::denied(connected)
}

/// A proxy connects only to granted places, and this is none.
fn proxy(task: &Task) -> Outcome {
    if !matches!(task.network, Network::Proxy(_)) {
        return Outcome::seen(true, "there is none");
    }
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(proxy_listener::PROXY)?;
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
        Ok(answer) => Outcome::seen(answer == "HTTP/1.1 403", answer),
        Err(error) => Outcome::seen(false, error.to_string()),
    }
}

fn abstract_socket(task: &Task) -> Outcome {
    let address = UnixAddress::from_abstract_name(&task.abstract_name);
    Outcome::denied(address.and_then(|address| UnixStream::connect_addr(&address)))
}

fn inet_socket(task: &Task) -> Outcome {
    let seen = Outcome::refused(attempts::socket(libc::AF_INET));
    match task.network {
        Network::Deny => seen,
        // There it has to work, or programs with a granted network fail.
        Network::Loopback | Network::Proxy(_) => Outcome {
            held: !seen.held,
            ..seen
        },
    }
}

fn other_sockets(_: &Task) -> Outcome {
    let families = [
        libc::AF_VSOCK,
        libc::AF_ALG,
        libc::AF_PACKET,
        libc::AF_BLUETOOTH,
    ];
    Outcome::all(families.map(|family| Outcome::filtered(attempts::socket(family))))
}
