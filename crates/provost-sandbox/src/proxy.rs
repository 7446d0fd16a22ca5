//! The only way out of a sandbox: an HTTP proxy that permits what was granted.
//!
//! Init made its listener inside the sandbox's network namespace and passed it out. So the proxy
//! accepts from the sandbox and dials from the host. It speaks HTTP/1: requests with a whole
//! address, and tunnels by CONNECT. `decide` says what is allowed; see `docs/network.md`.
//!
//! # Invariants
//!
//! - No name is resolved and no address dialled unless it is granted; the dialled address is the
//!   one that was checked.
//! - A request is allowed only to exactly a granted host and port; there are no wildcards.
//! - A resolved address is dialled only if it is on the public internet, or was granted itself.
//!   Other addresses lead to the host or its network, whatever name resolves to them.
//! - Every request is counted with its result; of a request only method and place are kept, unless
//!   the user wants the bodies of requests to models.
//! - With a playback no name is resolved and no address dialled at all.
//! - Every wait has a limit and ends when the proxy is stopped; the number of connections, and the
//!   memory of each, is bounded. When a [`Proxy`] is dropped its threads are gone.

mod answer;
mod connection;
mod decide;
mod dial;
pub mod gateway;
mod held_bytes;
mod host_questions;
pub mod http;
mod model;
mod peer;
mod relay;
mod resolve;
mod secret;
#[cfg(test)]
mod tests;
mod timeouts;
mod tls;
mod token_meter;
mod traffic_log;

use std::borrow::Cow;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use provost_core::net::credential::Transport;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::traffic::Traffic;
use provost_model_record::playback::Playback;
use rustix::event::PollFlags;
use rustix::pipe::PipeFlags;
use rustls::ClientConfig;

pub use host_questions::HostQuestions;
pub use resolve::{Getent, Resolve, ResolveError};
pub use secret::{ReadSecret, Secret, SecretField, UnusableSecret};
pub use timeouts::{Stop, Timeouts};
pub use token_meter::TokenMeter;

use connection::Connection;
use traffic_log::TrafficLog;

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 256;
/// The stack of a connection's thread; its buffers are on the heap.
const STACK: usize = 1 << 20;

/// What a proxy needs from the host.
#[derive(Debug, Clone)]
pub struct Outlet {
    pub resolver: Arc<dyn Resolve>,
    /// Added to requests.
    pub secrets: Vec<Secret>,
    pub patience: Timeouts,
    /// Counts the traffic to the model of an agent.
    pub gauge: Option<Arc<TokenMeter>>,
    /// Asks a person about places that are not granted.
    pub questions: Option<Arc<HostQuestions>>,
    /// Whether every place of the public internet is granted.
    pub any_place: bool,
    /// Answers requests to models in place of every server; nothing is reached then.
    pub playback: Option<Arc<Playback>>,
    /// Files of trusted server certificates; the first one that exists counts.
    pub trusted: Vec<PathBuf>,
}

impl Default for Outlet {
    fn default() -> Self {
        Self {
            resolver: Arc::new(Getent::default()),
            secrets: Vec::new(),
            patience: Timeouts::default(),
            gauge: None,
            questions: None,
            any_place: false,
            playback: None,
            trusted: tls::trusted_files(),
        }
    }
}

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// Closing it stops everything.
    running: Option<OwnedFd>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    grants: Vec<Endpoint>,
    outlet: Outlet,
    stop: Stop,
    /// For requests that a secret is added to, if one needs TLS.
    tls: Option<Arc<ClientConfig>>,
    book: Mutex<TrafficLog>,
    connections: AtomicUsize,
    /// Bytes of request bodies that all connections keep.
    held: Arc<AtomicUsize>,
}

impl Proxy {
    /// Serves the clients of `listener`, within `grants`.
    pub fn start(listener: TcpListener, grants: Vec<Endpoint>, outlet: Outlet) -> io::Result<Self> {
        let (stop, running) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        listener.set_nonblocking(true)?;
        let encrypted = |secret: &Secret| secret.credential.transport == Transport::Tls;
        let needed = outlet.secrets.iter().any(encrypted);
        let tls = needed.then(|| tls::config(&outlet.trusted)).transpose()?;
        let shared = Arc::new(Shared {
            grants,
            outlet,
            stop: Stop::new(stop),
            tls,
            book: Mutex::default(),
            connections: AtomicUsize::new(0),
            held: Arc::default(),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .stack_size(STACK)
            .spawn(move || own.accept(&listener))?;
        Ok(Self {
            thread: Some(thread),
            shared,
            running: Some(running),
        })
    }

    /// Ends it, and returns the requests.
    pub fn finish(mut self) -> Vec<Traffic> {
        self.stop();
        std::mem::take(&mut *self.shared.book()).into_lines()
    }

    fn stop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn book(&self) -> std::sync::MutexGuard<'_, TrafficLog> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be reached now: the grants, and the places that a person permitted since.
    fn grants(&self) -> Cow<'_, [Endpoint]> {
        match &self.outlet.questions {
            None => Cow::Borrowed(&self.grants),
            Some(questions) => {
                let mut all = self.grants.clone();
                all.extend(questions.granted());
                Cow::Owned(all)
            }
        }
    }

    /// The grants that a request for `target` is judged by.
    fn grants_for(&self, target: &Endpoint) -> Cow<'_, [Endpoint]> {
        let grants = self.grants();
        if !self.outlet.any_place || !decide::may_be_public(target) || grants.contains(target) {
            return grants;
        }
        let mut all = grants.into_owned();
        all.push(target.clone());
        Cow::Owned(all)
    }

    /// Accepts until it is stopped; then waits for the threads of all connections.
    fn accept(&self, listener: &TcpListener) {
        std::thread::scope(|scope| {
            while self.stop.wait_for(listener, PollFlags::IN).is_ok() {
                let Ok((client, _)) = listener.accept() else {
                    // The client left again, or no descriptor is free: serve the others.
                    if self.stop.pause().is_err() {
                        break;
                    }
                    continue;
                };
                let Ok(connection) = Connection::new(self, client) else {
                    continue;
                };
                if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                    connection.turn_away();
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let serve = || {
                    connection.serve();
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                };
                let builder = std::thread::Builder::new().stack_size(STACK);
                if builder.spawn_scoped(scope, serve).is_err() {
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
    }
}
