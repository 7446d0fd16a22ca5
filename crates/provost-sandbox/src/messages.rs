//! The messages between driver, fork server, launcher and init.
//!
//! The fork server gets one packet for each sandbox, with descriptors: the spec, the payload's
//! three streams, the go socket and the launcher's control socket. It answers with the launcher's
//! pid. The launcher sends [`Message`]s through the control socket. When the driver's end closes,
//! every process of the sandbox is killed. The go socket connects the driver directly to init.

use provost_core::json;

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

/// The driver's message that the payload may start.
pub(crate) const GO: &[u8] = b"go";
/// How many descriptors a launcher gets.
pub(crate) const PASSED: usize = 6;
/// Longer than any message.
const LONGEST: usize = 16 << 10;

/// What the launcher is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The driver's pid, to notice that it died before the launcher set its death signal.
    pub(crate) driver: i32,
    pub(crate) profile: Profile,
    pub(crate) argv: Vec<String>,
    /// Whether standard input is a terminal, which becomes the payload's controlling terminal.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// Where to make directories that are removed with the sandbox.
    pub(crate) temporary: PathBuf,
}

/// What the launcher reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// Init exists, with this pid on the host.
    InitStarted(i32),
    /// A step of the set-up was refused; nothing ran.
    Failed(Failure),
    /// The payload returned this code.
    Exited(i32),
    /// A signal ended the payload.
    Signalled(i32),
    /// The payload failed when the sandbox had used up its processes.
    UsedUp,
    /// Init was killed.
    Killed,
    /// The sandbox is over, but not all of its processes are dead.
    NotReaped,
}

impl Message {
    pub(crate) fn render(&self) -> Vec<u8> {
        // Strings and integers can always be serialised.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        json::parse_as(bytes).ok()
    }
}

/// A sealed memory file with `bytes`, which no process can change; read from the start.
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

/// Receives one packet with its descriptors; an empty one means that the other end closed.
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
