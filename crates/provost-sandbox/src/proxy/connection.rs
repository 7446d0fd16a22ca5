//! One connection of a program in the sandbox: its requests, one after the other.

mod admission;
mod played;

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::net::credential::Transport;
use provost_core::net::endpoint::{Endpoint, Host};
use provost_core::net::traffic::Traffic;

use super::answer::Refusal;
use super::decide;
use super::held_bytes::HeldBytes;
use super::host_questions::HeldAnswer;
use super::http::framing::Framing;
use super::http::request::{self, Form, Request};
use super::peer::Peer;
use super::relay::{Cut, Relay};
use super::timeouts::Broken;
use super::tls::Tls;
use super::token_meter::Admitted;
use super::{Secret, SecretField, Shared, dial};

/// How long a connection to a server is reused; later the server may be closing it.
const FRESH: Duration = Duration::from_secs(1);
/// How long a refused client may take to read the reply.
const FAREWELL: Duration = Duration::from_secs(1);
/// How many bytes of a refused client are read, so that it gets the reply before its connection
/// closes.
const MOST_DRAINED: u64 = 1 << 20;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

pub(super) struct Connection<'a> {
    shared: &'a Shared,
    client: Peer,
    server: Option<Server>,
    /// The open tunnel.
    tunnel: Tunnel,
    /// The memory for the body of the request.
    held: HeldBytes,
}

/// A tunnel to a place that has a secret. Some programs open one even for a plain address; if their
/// bytes are plain, the proxy reads them and adds the secret, as it would without a tunnel.
enum Tunnel {
    None,
    /// The client got the reply that it is open, and its bytes cannot be read.
    Closed,
    /// The client sends requests through it, for this place.
    Open(Endpoint),
}

/// The server of the last request.
struct Server {
    target: Endpoint,
    peer: Peer,
    since: Instant,
}

impl<'a> Connection<'a> {
    pub(super) fn new(shared: &'a Shared, client: TcpStream) -> io::Result<Self> {
        Ok(Self {
            shared,
            client: Peer::new(client)?,
            server: None,
            tunnel: Tunnel::None,
            held: HeldBytes::new(&shared.held),
        })
    }

    /// Replies that there are too many connections, if that needs no waiting.
    pub(super) fn turn_away(mut self) {
        self.client.send(&Refusal::crowded().render());
        let _ = self.client.push();
    }

    /// Answers requests until the client leaves or a request ends the connection.
    pub(super) fn serve(mut self) {
        let mut wait = self.shared.outlet.patience.head;
        loop {
            match self.read_head(wait) {
                Ok(Some(request)) => {
                    if !self.answer(&request) {
                        return;
                    }
                }
                Ok(None) => return,
                Err(refusal) => {
                    self.note(("-", "-"), Some(&refusal), [0; 2]);
                    return self.refuse(&refusal);
                }
            }
            wait = self.shared.outlet.patience.next;
        }
    }

    /// The next request; `None` if the client has left, or sends nothing for the time `wait`.
    fn read_head(&mut self, wait: Duration) -> Result<Option<Request>, Refusal> {
        let patience = &self.shared.outlet.patience;
        let mut until = Instant::now() + wait;
        let mut begun = false;
        loop {
            if !begun && !self.client.inbox.is_empty() {
                begun = true;
                until = Instant::now() + patience.head;
            }
            let inbox = &self.client.inbox;
            let read = match &self.tunnel {
                Tunnel::Open(target) => request::parse_within(inbox, target),
                Tunnel::None | Tunnel::Closed => request::parse(inbox),
            };
            if let Some((request, length)) = read? {
                self.client.inbox.drain(..length);
                return Ok(Some(request));
            }
            if self.client.ended {
                return Ok(None);
            }
            match self.client.pull() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(_) => return Ok(None),
            }
            match self
                .shared
                .stop
                .wait(&[self.client.interest(true)], Some(until))
            {
                Ok(()) => {}
                Err(Broken::Late) if begun => {
                    let words = "the head of the request did not come in time";
                    return Err(Refusal::malformed(408, words.to_owned()));
                }
                Err(_) => return Ok(None),
            }
        }
    }

    /// Answers `request`; returns whether the client may send another one.
    fn answer(&mut self, request: &Request) -> bool {
        if request.form == Form::Tunnel && self.opens(&request.target) {
            return true;
        }
        if let Some(playback) = &self.shared.outlet.playback {
            self.play(playback, request);
            return false;
        }
        let (mut admitted, added, mut server) = match self.reach(request) {
            Ok(reached) => reached,
            Err(refusal) => {
                self.missed(&request.target, &refusal);
                let what = request.target.to_string();
                self.note((&what, &request.method), Some(&refusal), [0; 2]);
                self.refuse(&refusal);
                return false;
            }
        };
        let before = [server.sent, server.received];
        let outcome = self.pass(request, &added, &mut server, admitted.as_mut());
        self.held.release();
        let moved = [server.sent - before[0], server.received - before[1]];
        let refusal = outcome.as_ref().err().and_then(Option::as_ref);
        if let (Some(gauge), Some(mut admitted)) = (&self.shared.outlet.gauge, admitted) {
            if outcome.is_ok() {
                admitted.meter.complete();
            }
            gauge.settle(&request.target, admitted);
        }
        if let Some(refusal) = refusal {
            self.missed(&request.target, refusal);
        }
        let what = request.target.to_string();
        self.note((&what, &request.method), refusal, moved);
        match outcome {
            Ok(again) => {
                if again[1] {
                    self.server = Some(Server {
                        target: request.target.clone(),
                        peer: server,
                        since: Instant::now(),
                    });
                }
                again[0]
            }
            Err(refusal) => {
                if let Some(refusal) = refusal {
                    self.refuse(&refusal);
                }
                false
            }
        }
    }

    /// What `request` needs to be forwarded: its meter, the fields with the secret of its target,
    /// and a connection to the server.
    fn reach(
        &mut self,
        request: &Request,
    ) -> Result<(Option<Admitted<'a>>, Vec<SecretField>, Peer), Refusal> {
        self.granted(&request.target)?;
        let secret = self.secret(&request.target);
        let added = secret
            .map(|secret| secret.fields_for(request))
            .transpose()?;
        let admitted = self.admit(request)?;
        let server = self.server_for(request)?;
        Ok((admitted, added.unwrap_or_default(), server))
    }

    /// Whether `target` is granted, or a person permits it while the connection waits.
    fn granted(&self, target: &Endpoint) -> Result<(), Refusal> {
        let refused = match decide::granted(target, &self.shared.grants_for(target)) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        let questions = self.shared.outlet.questions.as_ref();
        match questions.map(|it| it.ask(target, &self.shared.stop)) {
            Some(HeldAnswer::Granted) => Ok(()),
            Some(HeldAnswer::Asked) => Err(Refusal::asked(target)),
            Some(HeldAnswer::Refused(why)) => Err(Refusal::not_permitted(target, &why)),
            Some(HeldAnswer::NotAsked) | None => Err(refused.into()),
        }
    }

    /// Forwards `request` and its reply; returns whether client and server stay connected. An error
    /// without a refusal means that the client can no longer get a reply.
    fn pass(
        &mut self,
        request: &Request,
        added: &[SecretField],
        server: &mut Peer,
        mut admitted: Option<&mut Admitted<'_>>,
    ) -> Result<[bool; 2], Option<Refusal>> {
        let target = &request.target;
        match &request.form {
            Form::Tunnel if matches!(self.tunnel, Tunnel::Closed) => {}
            Form::Tunnel => self.client.send(ESTABLISHED),
            Form::Plain(_) => {
                let secret = self.secret(target);
                let transport = secret.map_or(Transport::Plain, |it| it.credential.transport);
                let bare = secret.filter(|it| it.is_for_model());
                let bare = bare.map(|_| request.without_logins());
                let request = bare.as_ref().unwrap_or(request);
                // A reply that is counted must not be compressed, and its request was received.
                let read = admitted.as_ref().map(|admitted| {
                    let plain = request.uncompressed();
                    plain.with_length(admitted.length())
                });
                let request = read.as_ref().unwrap_or(request);
                let added = added.iter().map(|it| (it.name.as_str(), it.value.as_str()));
                let added: Vec<(&str, &str)> = added.collect();
                server.send(&request.render(transport, &added));
                if let Some(admitted) = admitted.as_deref_mut() {
                    server.send(admitted.forward());
                }
            }
        }
        let body = match &admitted {
            Some(_) => Framing::of_length(0),
            None => request.body.clone(),
        };
        let meter = admitted.map(|admitted| &mut admitted.meter);
        let mut relay = Relay {
            client: &mut self.client,
            server,
            stop: &self.shared.stop,
            patience: &self.shared.outlet.patience,
            meter,
        };
        if request.form == Form::Tunnel {
            if let Some(gauge) = &self.shared.outlet.gauge {
                gauge.reached(target);
            }
            relay.tunnel();
            return Ok([false; 2]);
        }
        let exchanged = relay.exchange(&request.method, body, request.persistent);
        match exchanged {
            Ok(rest) => Ok([rest.client, rest.server]),
            Err(Cut::Client | Cut::Spent) => Err(None),
            Err(Cut::Body(error)) => Err(Some(Refusal::malformed(400, error.to_string()))),
            Err(Cut::Server(what)) => Err(Some(Refusal::unreachable(target, 502, what))),
            Err(Cut::Reply(error)) => {
                let what = format!("sent no proper reply: {error}");
                Err(Some(Refusal::unreachable(target, 502, &what)))
            }
        }
    }

    /// Whether the proxy reads a tunnel to `target`: the place has a secret, and the client does
    /// not begin to encrypt.
    fn opens(&mut self, target: &Endpoint) -> bool {
        let granted = decide::granted(target, &self.shared.grants_for(target)).is_ok();
        if !granted || (self.secret(target).is_none() && !self.is_watched(target)) {
            return false;
        }
        self.tunnel = Tunnel::Closed;
        self.client.send(ESTABLISHED);
        let until = Instant::now() + self.shared.outlet.patience.head;
        while self.client.inbox.is_empty() && !self.client.ended {
            let Ok(pushed) = self.client.push() else {
                return false;
            };
            let Ok(pulled) = self.client.pull() else {
                return false;
            };
            let wanted = [self.client.interest(true)];
            if !(pushed || pulled) && self.shared.stop.wait(&wanted, Some(until)).is_err() {
                return false;
            }
        }
        if !self
            .client
            .inbox
            .first()
            .is_some_and(u8::is_ascii_uppercase)
        {
            return false;
        }
        self.tunnel = Tunnel::Open(target.clone());
        true
    }

    /// Whether the traffic to `target` is counted.
    fn is_watched(&self, target: &Endpoint) -> bool {
        let gauge = self.shared.outlet.gauge.as_ref();
        gauge.is_some_and(|gauge| gauge.reads(target)) || self.shared.outlet.playback.is_some()
    }

    /// Notes that `target` sent no reply.
    fn missed(&self, target: &Endpoint, refusal: &Refusal) {
        let gauge = self.shared.outlet.gauge.as_ref();
        let Some(gauge) = gauge.filter(|gauge| gauge.is_at(target)) else {
            return;
        };
        if refusal.code == Code::NetworkUnreachable {
            gauge.failed(&refusal.reason);
        }
        if refusal.code == Code::LoginUnusable {
            gauge.lost_login(&refusal.reason);
        }
    }

    fn secret(&self, target: &Endpoint) -> Option<&Secret> {
        let secrets = &self.shared.outlet.secrets;
        secrets.iter().find(|it| it.credential.endpoint == *target)
    }

    /// A connection to the server of `request`: that of the last request, or a new one.
    fn server_for(&mut self, request: &Request) -> Result<Peer, Refusal> {
        let target = &request.target;
        decide::granted(target, &self.shared.grants_for(target))?;
        if matches!(request.form, Form::Plain(_))
            && self.secret(target).is_some()
            && let Some(why) = request.echoes()
        {
            return Err(Refusal::echoing(target, why));
        }
        let gauge = self.shared.outlet.gauge.as_ref();
        if gauge.is_some_and(|gauge| gauge.is_at(target)) && request.is_ambiguous() {
            return Err(Refusal::ambiguous(target));
        }
        if let Some(mut server) = self.server.take()
            && server.target == *target
            && request.form != Form::Tunnel
            && server.since.elapsed() < FRESH
            // A server that sent anything meanwhile, or closed, is not reused.
            && matches!(server.peer.pull(), Ok(false))
        {
            return Ok(server.peer);
        }
        let shared = self.shared;
        let patience = &shared.outlet.patience;
        let addresses = match &target.host {
            Host::Name(name) => {
                let resolver = &shared.outlet.resolver;
                let found = resolver.resolve(name, patience.resolve, &shared.stop);
                found.map_err(|error| Refusal::unreachable(target, 502, &error.to_string()))?
            }
            Host::Localhost | Host::Address(_) => target.host.known_addresses().unwrap_or_default(),
        };
        let addresses = decide::decide(target, &addresses, &shared.grants_for(target))?;
        let dialled = dial::dial(&addresses, target.port, patience.connect, &shared.stop);
        let made = dialled.and_then(|stream| self.greet(request, stream));
        made.map_err(|broken| match broken {
            Broken::Late => Refusal::unreachable(target, 504, "did not answer in time"),
            Broken::Stopped => {
                Refusal::unreachable(target, 502, "was not reached before the proxy stopped")
            }
            Broken::Failed(error) => {
                let what = match error.kind() {
                    io::ErrorKind::ConnectionRefused => "refused the connection".to_owned(),
                    io::ErrorKind::InvalidData => format!("speaks no TLS that holds: {error}"),
                    _ => "cannot be reached".to_owned(),
                };
                Refusal::unreachable(target, 502, &what)
            }
        })
    }

    /// The server at the other end of `stream`, with TLS if its credential says so.
    fn greet(&self, request: &Request, stream: TcpStream) -> Result<Peer, Broken> {
        let secret = self.secret(&request.target);
        let transport = secret.map_or(Transport::Plain, |it| it.credential.transport);
        if request.form == Form::Tunnel || transport == Transport::Plain {
            return Ok(Peer::new(stream)?);
        }
        let Shared {
            outlet, stop, tls, ..
        } = self.shared;
        let config = tls
            .as_ref()
            .ok_or_else(|| io::Error::other("no certificates"))?;
        stream.set_nodelay(true)?;
        let until = Instant::now() + outlet.patience.connect;
        let tls = Tls::connect(config, &request.target.host, stream, (until, stop))?;
        Ok(Peer::encrypted(tls))
    }

    /// Counts a request.
    fn note(
        &self,
        (target, method): (&str, &str),
        refusal: Option<&Refusal>,
        [sent, received]: [u64; 2],
    ) {
        self.shared.book().add(Traffic {
            target: target.to_owned(),
            method: method.to_owned(),
            allow: refusal.is_none_or(Refusal::was_granted),
            code: refusal.map_or(Code::Ok, |refusal| refusal.code),
            reason: refusal.map(|refusal| refusal.reason.clone()),
            count: 1,
            sent,
            received,
        });
    }

    /// Sends the refusal, and closes the connection so that the client can read it.
    fn refuse(&mut self, refusal: &Refusal) {
        self.say_last(&refusal.render(), FAREWELL);
    }

    /// Sends `reply` within `patience`, and closes the connection so that the client can read it.
    fn say_last(&mut self, reply: &[u8], patience: Duration) {
        let mut until = Instant::now() + patience;
        self.client.send(reply);
        let most = self.client.received + MOST_DRAINED;
        let mut flushed = false;
        loop {
            if self.client.push().is_err() {
                return;
            }
            if self.client.is_flushed() && !flushed {
                self.client.close_writing();
                flushed = true;
                until = until.min(Instant::now() + FAREWELL);
            }
            // If a connection is closed with unread bytes, the client loses the reply.
            self.client.inbox.clear();
            let Ok(moved) = self.client.pull() else {
                return;
            };
            if (flushed && self.client.ended) || self.client.received > most {
                return;
            }
            let wanted = [self.client.interest(true)];
            if !moved && self.shared.stop.wait(&wanted, Some(until)).is_err() {
                return;
            }
        }
    }
}
