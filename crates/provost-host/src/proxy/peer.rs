//! One end of an exchange: a connection with what was read from it and what is to be written.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;

use super::tls::Tls;

/// How much is read ahead.
const ROOM: usize = 32 << 10;

/// How bytes get to the other side.
#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// A connection that never blocks.
#[derive(Debug)]
pub(super) struct Peer {
    stream: Stream,
    /// What came and nobody has taken yet.
    pub(super) inbox: Vec<u8>,
    /// What is to go.
    outbox: Vec<u8>,
    /// Whether the other side has said that nothing more comes.
    pub(super) ended: bool,
    /// Whether nothing goes there any more, because nothing is taken.
    pub(super) left: bool,
    /// Bytes that came.
    pub(super) received: u64,
    /// Bytes that went.
    pub(super) sent: u64,
}

impl Peer {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // What is passed on has waited once already.
        stream.set_nodelay(true)?;
        Ok(Self::of(Stream::Plain(stream)))
    }

    /// A connection that is encrypted; its socket does not block.
    pub(super) fn encrypted(tls: Tls) -> Self {
        Self::of(Stream::Tls(Box::new(tls)))
    }

    fn of(stream: Stream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            outbox: Vec::new(),
            ended: false,
            left: false,
            received: 0,
            sent: 0,
        }
    }

    /// Takes in what is there; says whether anything was, the end included.
    pub(super) fn pull(&mut self) -> io::Result<bool> {
        if self.ended || self.inbox.len() >= ROOM {
            return Ok(false);
        }
        let before = self.inbox.len();
        self.inbox.resize(ROOM, 0);
        let room = &mut self.inbox[before..];
        let read = match &mut self.stream {
            Stream::Plain(stream) => stream.read(room),
            Stream::Tls(tls) => tls.read(room),
        };
        self.inbox
            .truncate(before + read.as_ref().map_or(0, |length| *length));
        match read {
            Ok(length) => {
                self.ended = length == 0;
                self.received += length as u64;
                Ok(true)
            }
            Err(error) if is_patience(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Has `bytes` written as soon as it goes.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.left {
            return;
        }
        self.outbox.extend_from_slice(bytes);
    }

    /// Writes what goes now; says whether anything did.
    pub(super) fn push(&mut self) -> io::Result<bool> {
        let written = match &mut self.stream {
            Stream::Tls(tls) if tls.wants_write() => tls.write_waiting().map(|_| None),
            _ if self.outbox.is_empty() => return Ok(false),
            Stream::Plain(stream) => stream.write(&self.outbox).map(Some),
            Stream::Tls(tls) => tls.write(&self.outbox).map(Some),
        };
        match written {
            // Bytes that were taken before.
            Ok(None) => Ok(true),
            Ok(Some(0)) => Err(io::ErrorKind::WriteZero.into()),
            Ok(Some(length)) => {
                self.outbox.drain(..length);
                self.sent += length as u64;
                Ok(true)
            }
            Err(error) if is_patience(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Drops what has not gone: there is nobody to take it.
    pub(super) fn give_up(&mut self) {
        self.outbox.clear();
    }

    /// Takes that the other side has left; what is still to go is dropped.
    pub(super) fn leave(&mut self) {
        self.left = true;
        self.give_up();
    }

    /// Whether everything went.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty() && !self.wants_write()
    }

    fn wants_write(&self) -> bool {
        matches!(&self.stream, Stream::Tls(tls) if tls.wants_write())
    }

    /// Says that nothing more will go.
    pub(super) fn close_writing(&self) {
        // One that is gone need not be told; an encrypted one ends with its reply.
        if let Stream::Plain(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// What to wait for: bytes if `reading`, and room for what is to go.
    pub(super) fn interest(&self, reading: bool) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::empty();
        if reading && !self.ended {
            flags |= PollFlags::IN;
        }
        if !self.is_flushed() {
            flags |= PollFlags::OUT;
        }
        let descriptor = match &self.stream {
            Stream::Plain(stream) => stream.as_fd(),
            Stream::Tls(tls) => tls.as_fd(),
        };
        (descriptor, flags)
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
