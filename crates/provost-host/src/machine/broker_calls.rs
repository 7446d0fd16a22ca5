//! Reads the messages that a sandbox sends to its broker.
//!
//! # Invariants
//!
//! - At most [`PER_SECOND`] messages a second are read, one after the other; the others wait.
//! - A message is one line of at most 64 KiB; a longer one is not read to its end.
//! - Nothing waits without a limit: a sender that is silent loses its turn.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use provost_core::children::{BrokerAnswer, BrokerRequest, LONGEST_MESSAGE};
use provost_core::json;

/// How many messages a second are read.
const PER_SECOND: u32 = 20;
/// How long a sender may take for a message, and the receiver of an answer to take it.
const TURN: Duration = Duration::from_millis(500);
/// How often the end of the sandbox is looked for.
const GLANCE: Duration = Duration::from_millis(20);
/// How many messages wait to be answered.
const WAITING: usize = 64;

/// A message, or why it is none, and where its answer goes.
pub(super) struct BrokerCall {
    pub(super) request: Result<BrokerRequest, String>,
    stream: UnixStream,
}

impl BrokerCall {
    /// Sends the answer; a sender that is gone gets none.
    pub(super) fn answer(&mut self, answer: &BrokerAnswer) {
        let mut text = serde_json::to_vec(answer).unwrap_or_default();
        text.push(b'\n');
        let _ = self.stream.write_all(&text);
    }
}

/// The thread that reads the messages of one sandbox.
pub(super) struct BrokerCalls {
    calls: Receiver<BrokerCall>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BrokerCalls {
    pub(super) fn start(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (sender, calls) = mpsc::sync_channel(WAITING);
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let named = thread::Builder::new().name("broker".to_owned());
        let thread = named.spawn(move || read_all(&listener, &sender, &ends))?;
        Ok(Self {
            calls,
            over,
            thread: Some(thread),
        })
    }

    /// The next message that was read, if there is one.
    pub(super) fn next(&self) -> Option<BrokerCall> {
        self.calls.try_recv().ok()
    }
}

impl Drop for BrokerCalls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A full channel would keep the thread from ending.
        while self.calls.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_all(listener: &UnixListener, sender: &SyncSender<BrokerCall>, over: &AtomicBool) {
    let mut next = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((stream, _)) if Instant::now() >= next => stream,
            Ok((stream, _)) => {
                thread::sleep(next.saturating_duration_since(Instant::now()));
                stream
            }
            Err(_) => {
                thread::sleep(GLANCE);
                continue;
            }
        };
        next = Instant::now() + Duration::from_secs(1) / PER_SECOND;
        if let Some(call) = read(stream)
            && sender.try_send(call).is_err()
        {
            // The sender sees a closed connection, and may ask again.
            thread::sleep(GLANCE);
        }
    }
}

fn read(mut stream: UnixStream) -> Option<BrokerCall> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(TURN)).ok()?;
    stream.set_write_timeout(Some(TURN)).ok()?;
    let until = Instant::now() + TURN;
    let mut bytes = Vec::new();
    let mut part = [0; 8 << 10];
    let request = loop {
        if bytes.len() > LONGEST_MESSAGE {
            break Err(format!("a message has at most {LONGEST_MESSAGE} bytes"));
        }
        if bytes.last() == Some(&b'\n') {
            break json::parse_as(&bytes).map_err(|error| error.to_string());
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break Err("a message is one line of JSON".to_owned()),
            Ok(_) if Instant::now() > until => break Err("a message took too long".to_owned()),
            Ok(count) => bytes.extend(&part[..count]),
        }
    };
    Some(BrokerCall { request, stream })
}
