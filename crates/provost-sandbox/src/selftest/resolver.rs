//! A resolver on the loopback of the host that answers every query with the loopback itself.
//!
//! It belongs to the self-test, so that no real resolver is asked or needed.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How soon it notices its end if no packet wakes it.
const TURN: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Resolver {
    address: SocketAddr,
    asked: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    pub(super) fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(TURN))?;
        let address = socket.local_addr()?;
        let (asked, over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (seen, ended) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                let mut question = [0; 512];
                while !ended.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = socket.recv_from(&mut question) {
                        seen.store(true, Ordering::Relaxed);
                        let _ = socket.send_to(&answer(&question[..length]), from);
                    }
                }
            })?;
        Ok(Self {
            address,
            asked,
            over,
            thread: Some(thread),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = UdpSocket::bind("127.0.0.1:0").map(|socket| socket.send_to(b"", self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The query again, marked as an answer, with one address appended.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    for (at, byte) in [(2, 0x81), (3, 0x80), (7, 1)] {
        if let Some(place) = answer.get_mut(at) {
            *place = byte;
        }
    }
    // The name of the query, type A, class IN, time to live 0, four bytes.
    answer.extend_from_slice(&[0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    answer
}
