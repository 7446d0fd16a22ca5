//! Connects to a server, at one of the addresses that were checked.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::timeouts::{Broken, Stop};

/// The most addresses of one name that are tried.
const MOST_TRIES: u32 = 4;

/// Connects to the first of `addresses` that answers, within `patience`.
pub(super) fn dial(
    addresses: &[IpAddr],
    port: u16,
    patience: Duration,
    stop: &Stop,
) -> Result<TcpStream, Broken> {
    let until = Instant::now() + patience;
    let mut last = Broken::Late;
    let mut left = u32::try_from(addresses.len()).map_or(MOST_TRIES, |count| count.min(MOST_TRIES));
    for address in addresses {
        if left == 0 {
            break;
        }
        // Each address gets an equal part of the time that is left.
        let share = until.saturating_duration_since(Instant::now()) / left;
        left -= 1;
        match connect(
            SocketAddr::new(*address, port),
            Instant::now() + share,
            stop,
        ) {
            Ok(stream) => return Ok(stream),
            Err(Broken::Stopped) => return Err(Broken::Stopped),
            Err(broken) => last = broken,
        }
    }
    Err(last)
}

fn connect(address: SocketAddr, until: Instant, stop: &Stop) -> Result<TcpStream, Broken> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let socket: OwnedFd = socket.map_err(io::Error::from)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            stop.wait(&[(socket.as_fd(), PollFlags::OUT)], Some(until))?;
            let outcome = rustix::net::sockopt::socket_error(&socket).map_err(io::Error::from)?;
            outcome.map_err(io::Error::from)?;
        }
        Err(errno) => return Err(Broken::Failed(errno.into())),
    }
    Ok(TcpStream::from(socket))
}
