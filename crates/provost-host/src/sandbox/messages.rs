//! The words between driver, launcher and init.
//!
//! The nursery gets one packet a sandbox, with descriptors: the spec, the payload's three streams, the go
//! socket and the launcher's control socket; it answers with the launcher's number. Out of the control
//! socket come [`Message`]s. When the driver's end closes, whatever lives is killed. The go socket
//! leads from the driver straight to init.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

use super::error::Failure;
use super::profile::Profile;

/// The driver's word that the payload may start.
pub(crate) const GO: &[u8] = b"go";
/// How many descriptors a launcher gets.
pub(crate) const PASSED: usize = 6;
/// Longer than any message.
const LONGEST: usize = 16 << 10;

/// What the launcher is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The driver, to notice that it died before the launcher could ask for its death signal.
    pub(crate) driver: i32,
    pub(crate) profile: Profile,
    pub(crate) argv: Vec<String>,
    /// Whether its input is a terminal, which becomes its own.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// Where directories may be made that are gone with the sandbox.
    pub(crate) temporary: PathBuf,
}

/// What the launcher says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// Init exists, with this number on the host.
    Born(i32),
    /// A step of the set-up was refused; nothing ran.
    Failed(Failure),
    /// The payload ended by itself.
    Exited(i32),
    /// The payload was ended by a signal.
    Signalled(i32),
    /// The payload failed when the sandbox had used up its processes.
    UsedUp,
    /// Init was killed.
    Killed,
    /// The sandbox is over, but not all of its processes are dead.
    Undead,
}

impl Message {
    pub(crate) fn render(&self) -> Vec<u8> {
        // Strings and integers always have a rendering.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Bytes that nobody can change any more, to be read from the start.
pub(crate) fn sealed(name: &str, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    rustix::fs::fcntl_add_seals(&file, seals())?;
    Ok(file)
}

/// The seals of [`sealed`].
pub(crate) fn seals() -> SealFlags {
    SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL
}

/// Sends one packet with descriptors.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::NOBUFS);
    }
    let parts = [IoSlice::new(bytes)];
    rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one packet with its descriptors; an empty one is the end.
pub(crate) fn receive(socket: impl AsFd) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let got = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let length = got.bytes;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    bytes.truncate(length);
    Ok((bytes, descriptors))
}
