//! Counts the bytes that wait in the sockets of a network namespace, by `sock_diag`.
//!
//! Init makes the netlink socket, because a socket stays in the namespace it was made in, and sends
//! it to the driver. The kernel also lists sockets in transit through another socket, and those
//! whose process is gone.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// The request for sockets of one family.
const BY_FAMILY: u16 = 20;
/// A request for all of them.
const DUMP: u16 = 0x301;
/// The message that ends a list, and the one that says why there is none.
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// The length of a netlink header.
const HEAD: usize = 16;
/// How long to wait for an answer; the kernel gives it at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// The families that are queried beside unix sockets, each with TCP and UDP.
const INTERNET: [i32; 2] = [libc::AF_INET, libc::AF_INET6];
const PROTOCOLS: [i32; 2] = [libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// Makes the netlink socket for the network namespace of this process.
pub(crate) fn open() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
}

/// Bytes that wait in the sockets of the namespace, or only in those of `only`; `None` if the
/// kernel does not say.
pub(crate) fn waiting(socket: &OwnedFd, only: Option<&BTreeSet<u64>>) -> Option<u64> {
    rustix::net::sockopt::set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE)).ok()?;
    let mut sum = dump(socket, &unix_request(), &UNIX, only)?;
    for family in INTERNET {
        for protocol in PROTOCOLS {
            // A kernel without IPv6 has no such sockets.
            let bytes = dump(socket, &internet_request(family, protocol), &INET, only);
            sum = sum.saturating_add(bytes.unwrap_or(0));
        }
    }
    Some(sum)
}

/// Layout of the kernel's message about a socket.
struct Layout {
    /// The length of the part before the attributes.
    fixed: usize,
    /// Offset of the socket's inode number.
    number: usize,
    /// The attribute with the memory counters.
    memory: u16,
}

const UNIX: Layout = Layout {
    fixed: 16,
    number: 4,
    memory: 5,
};
const INET: Layout = Layout {
    fixed: 72,
    number: 68,
    memory: 7,
};

fn unix_request() -> Vec<u8> {
    const SHOW_MEMORY: u32 = 0x20;
    let mut body = vec![byte(libc::AF_UNIX), 0, 0, 0];
    for number in [u32::MAX, 0, SHOW_MEMORY, u32::MAX, u32::MAX] {
        body.extend(number.to_ne_bytes());
    }
    request(&body)
}

fn internet_request(family: i32, protocol: i32) -> Vec<u8> {
    let memory = 1 << (INET.memory - 1);
    let mut body = vec![byte(family), byte(protocol), memory, 0];
    body.extend(u32::MAX.to_ne_bytes());
    body.resize(body.len() + 48, 0);
    request(&body)
}

fn byte(number: i32) -> u8 {
    u8::try_from(number).unwrap_or(0)
}

fn request(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEAD + body.len()).unwrap_or(0);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Requests a list, and adds up what waits in its sockets.
fn dump(
    socket: &OwnedFd,
    request: &[u8],
    layout: &Layout,
    only: Option<&BTreeSet<u64>>,
) -> Option<u64> {
    rustix::net::send(socket, request, SendFlags::empty()).ok()?;
    let mut buffer = vec![0_u8; 64 << 10];
    let mut sum = 0_u64;
    loop {
        let (_, length) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).ok()?;
        let mut rest = buffer.get(..length).filter(|rest| !rest.is_empty())?;
        while rest.len() >= HEAD {
            let length = usize::try_from(u32_at(rest, 0)?).ok()?;
            let message = rest.get(..length).filter(|_| length >= HEAD)?;
            match u16_at(message, 4)? {
                DONE => return Some(sum),
                ERROR => return None,
                _ => {}
            }
            sum = sum.saturating_add(one(&message[HEAD..], layout, only).unwrap_or(0));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// What waits in the socket of one message.
fn one(body: &[u8], layout: &Layout, only: Option<&BTreeSet<u64>>) -> Option<u64> {
    let number = u64::from(u32_at(body, layout.number)?);
    if only.is_some_and(|only| !only.contains(&number)) {
        return None;
    }
    let mut rest = body.get(layout.fixed..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16_at(rest, 0)?);
        let value = rest.get(4..length)?;
        if u16_at(rest, 2)? == layout.memory {
            // Received, sent, set aside, queued, options, backlog.
            let places = [0, 2, 4, 5, 6, 7].map(|at| u32_at(value, at * 4).unwrap_or(0));
            return Some(places.into_iter().map(u64::from).sum());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_ne_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_waits_in_a_socket_is_counted() {
        let asked = open().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let number = |stream: &UnixStream| {
            let file = std::fs::File::from(OwnedFd::from(stream.try_clone().unwrap()));
            file.metadata().unwrap().ino()
        };
        let pair = BTreeSet::from([number(&one), number(&other)]);
        let before = waiting(&asked, Some(&pair)).unwrap();
        (&one).write_all(&vec![7; 100_000]).unwrap();
        let after = waiting(&asked, Some(&pair)).unwrap();
        assert!(after >= before + 100_000, "{before} {after}");
        assert!(waiting(&asked, None).unwrap() >= after);
        assert_eq!(waiting(&asked, Some(&BTreeSet::new())), Some(0));
    }
}
