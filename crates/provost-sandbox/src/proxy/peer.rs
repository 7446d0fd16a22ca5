//! One end of an exchange: a connection with its read and write buffers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;

use super::tls::Tls;

/// How many bytes are read ahead.
const ROOM: usize = 32 << 10;

/// A plain or an encrypted socket.
#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// A connection that never blocks.
#[derive(Debug)]
pub(super) struct Peer {
    stream: Stream,
    /// Bytes that were received and not consumed yet.
    pub(super) inbox: Vec<u8>,
    /// Bytes that wait to be written.
    outbox: Vec<u8>,
    /// Whether the other side has closed its sending half.
    pub(super) ended: bool,
    /// Whether the other side reads no more, so that nothing is sent.
    pub(super) left: bool,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Peer {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // The first sender has collected the bytes already.
        stream.set_nodelay(true)?;
        Ok(Self::of(Stream::Plain(stream)))
    }

    /// An encrypted connection; its socket must not block.
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

    /// Reads what is there; returns whether there was anything, the end included.
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

    /// Queues `bytes` for writing.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.left {
            return;
        }
        self.outbox.extend_from_slice(bytes);
    }

    /// Writes as much as possible without blocking; returns whether anything was written.
    pub(super) fn push(&mut self) -> io::Result<bool> {
        let written = match &mut self.stream {
            Stream::Tls(tls) if tls.wants_write() => tls.write_waiting().map(|_| None),
            _ if self.outbox.is_empty() => return Ok(false),
            Stream::Plain(stream) => stream.write(&self.outbox).map(Some),
            Stream::Tls(tls) => tls.write(&self.outbox).map(Some),
        };
        match written {
            // These bytes were taken from the buffer before.
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

    /// Drops what was not written: the other side reads no more.
    pub(super) fn give_up(&mut self) {
        self.outbox.clear();
    }

    /// Notes that the other side has left; drops what was not written.
    pub(super) fn leave(&mut self) {
        self.left = true;
        self.give_up();
    }

    /// Whether everything was written.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty() && !self.wants_write()
    }

    fn wants_write(&self) -> bool {
        matches!(&self.stream, Stream::Tls(tls) if tls.wants_write())
    }

    /// Closes the sending half.
    pub(super) fn close_writing(&self) {
        // An error means that the other side is gone. An encrypted connection ends with its reply.
        if let Stream::Plain(stream) = &self.stream {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// What to poll for: input if `reading`, and output if bytes wait to be written.
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
