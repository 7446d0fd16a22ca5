//! Forwards messages between a client and a server until the exchange ends.

use std::time::{Duration, Instant};

use super::http::field::HeadError;
use super::http::framing::{Framing, FramingError};
use super::http::reply;
use super::model::Meter;
use super::peer::Peer;
use super::timeouts::{Broken, Stop, Timeouts};

/// How long a client may take to read the end of a reply that is cut.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why an exchange ended before its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// The client can get no other reply: it left, or part of a reply was sent already.
    Client,
    /// The client did not send the body it announced.
    Body(FramingError),
    /// The server left, or sent nothing for too long, before its reply began.
    Server(&'static str),
    /// The reply is not one of HTTP.
    Reply(HeadError),
    /// The reply used more tokens than were reserved for it.
    Spent,
}

/// Which of the two connections can be used after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    /// Whether the client may send another request.
    pub(super) client: bool,
    /// Whether the server may get another request.
    pub(super) server: bool,
}

/// Two connections and their timeouts.
pub(super) struct Relay<'a> {
    pub(super) client: &'a mut Peer,
    pub(super) server: &'a mut Peer,
    pub(super) stop: &'a Stop,
    pub(super) patience: &'a Timeouts,
    /// Counts the reply while it passes.
    pub(super) meter: Option<&'a mut Meter>,
}

impl Relay<'_> {
    /// Forwards all bytes both ways until both sides have ended.
    pub(super) fn tunnel(&mut self) {
        let mut shut = [false; 2];
        loop {
            let up = carry(self.client, self.server, &mut shut[0]);
            let down = carry(self.server, self.client, &mut shut[1]);
            let (Ok(up), Ok(down)) = (up, down) else {
                return;
            };
            if shut == [true; 2] {
                return;
            }
            let reading = [
                self.server.is_flushed() && !shut[0],
                self.client.is_flushed() && !shut[1],
            ];
            if !(up || down) && self.wait(reading).is_err() {
                return;
            }
        }
    }

    /// Forwards the rest of a request, `body`, and the whole reply to it.
    pub(super) fn exchange(
        &mut self,
        method: &str,
        body: Framing,
        persistent: bool,
    ) -> Result<Rest, Cut> {
        let mut question = Question::of(body);
        let mut answer = Answer::Awaited;
        loop {
            let up = self.carry_request(&mut question)?;
            let whole = matches!(question, Question::Over);
            let down = self.carry_reply(method, &mut answer, persistent && whole)?;
            if let Answer::Over { client, server } = answer
                && self.client.is_flushed()
            {
                let client = client && !self.client.left;
                let server = server && whole && self.server.is_flushed();
                return Ok(Rest { client, server });
            }
            if up || down {
                continue;
            }
            let reading = [
                matches!(question, Question::Body(_)) && self.server.is_flushed(),
                self.client.is_flushed(),
            ];
            let Err(broken) = self.wait(reading) else {
                continue;
            };
            match (broken, &answer) {
                (Broken::Late, Answer::Awaited) => {
                    return Err(Cut::Server("did not answer in time"));
                }
                (Broken::Late, _) if self.reads_on() && !self.client.is_flushed() => {
                    self.client.leave();
                }
                _ => return Err(Cut::Client),
            }
        }
    }

    /// Whether a reply is read to its end although the client has left. Only the last count of the
    /// provider says what the reply cost. Otherwise a client that leaves early, and asks again,
    /// could use more tokens than its limit.
    fn reads_on(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.is_bounded())
    }

    /// Forwards what was received of the request; returns whether anything moved.
    fn carry_request(&mut self, question: &mut Question) -> Result<bool, Cut> {
        let mut moved = false;
        if let Question::Body(body) = question
            && self.server.is_flushed()
        {
            if self.client.inbox.is_empty() {
                moved |= self.client.pull().map_err(|_| Cut::Client)?;
            }
            let taken = body.advance(&self.client.inbox).map_err(Cut::Body)?;
            self.server.send(&self.client.inbox[..taken]);
            self.client.inbox.drain(..taken);
            if body.is_over() {
                *question = Question::Over;
            } else if self.client.ended {
                return Err(Cut::Client);
            }
        }
        if let Ok(pushed) = self.server.push() {
            return Ok(moved | pushed);
        }
        // The server may have replied before it left, so its reply is still read.
        self.server.give_up();
        *question = Question::Abandoned;
        Ok(true)
    }

    /// Forwards what was received of the reply; returns whether anything moved.
    fn carry_reply(
        &mut self,
        method: &str,
        answer: &mut Answer,
        persistent: bool,
    ) -> Result<bool, Cut> {
        let mut moved = false;
        if self.client.is_flushed() && !matches!(answer, Answer::Over { .. }) {
            let pulled = self.server.pull();
            moved |= *pulled.as_ref().unwrap_or(&true);
            let meter = self.meter.as_deref_mut();
            answer.take(method, [self.client, self.server], persistent, meter)?;
            // Nothing of a complete reply is left to stop, and its count is exact.
            let over = matches!(answer, Answer::Over { .. });
            if !over && self.meter.as_ref().is_some_and(|meter| meter.is_beyond()) {
                self.end_early(answer);
                return Err(Cut::Spent);
            }
            if pulled.is_err() || self.server.ended {
                answer.end(pulled.is_ok() && self.server.inbox.is_empty())?;
            }
        }
        match self.client.push() {
            Ok(pushed) => Ok(moved | pushed),
            Err(_) if self.reads_on() => {
                self.client.leave();
                Ok(true)
            }
            Err(_) => Err(Cut::Client),
        }
    }

    /// Ends a stream of events with an error of its API, where its framing has room for one.
    fn end_early(&mut self, answer: &Answer) {
        let words = self.meter.as_ref().and_then(|meter| meter.cut_words());
        let (Some(words), Answer::Body { body, .. }) = (words, answer) else {
            return;
        };
        if body.is_open() {
            self.client.send(words.as_bytes());
        } else if body.is_between_chunks() {
            let chunk = format!("{:x}\r\n{words}\r\n0\r\n\r\n", words.len());
            self.client.send(chunk.as_bytes());
        }
        let until = Instant::now() + FAREWELL;
        while self.client.push().is_ok() && !self.client.is_flushed() {
            let wanted = [self.client.interest(false)];
            if self.stop.wait(&wanted, Some(until)).is_err() {
                return;
            }
        }
    }

    fn wait(&self, [client, server]: [bool; 2]) -> Result<(), Broken> {
        let wanted = [self.client.interest(client), self.server.interest(server)];
        let until = Instant::now() + self.patience.idle;
        self.stop.wait(&wanted, Some(until))
    }
}

/// Forwards what was received from one side to the other; returns whether anything moved.
fn carry(from: &mut Peer, to: &mut Peer, shut: &mut bool) -> std::io::Result<bool> {
    let mut moved = false;
    if to.is_flushed() && !*shut {
        moved |= from.pull()?;
        to.send(&std::mem::take(&mut from.inbox));
        if from.ended && to.is_flushed() {
            // One half of a connection can close while the other half stays open.
            to.close_writing();
            *shut = true;
        }
    }
    Ok(moved | to.push()?)
}

/// State of a request.
enum Question {
    /// Its body is being sent.
    Body(Framing),
    /// It was sent completely.
    Over,
    /// The server does not read the rest.
    Abandoned,
}

impl Question {
    fn of(body: Framing) -> Self {
        if body.is_over() {
            Self::Over
        } else {
            Self::Body(body)
        }
    }
}

/// State of a reply, and which connections can be used after it.
enum Answer {
    /// Its head was not received yet.
    Awaited,
    /// Its body is being received.
    Body {
        body: Framing,
        client: bool,
        server: bool,
    },
    /// It was received completely.
    Over { client: bool, server: bool },
}

impl Answer {
    /// Processes what `server` sent for `client`, which may send another request if `persistent`.
    fn take(
        &mut self,
        method: &str,
        [client, server]: [&mut Peer; 2],
        persistent: bool,
        mut meter: Option<&mut Meter>,
    ) -> Result<(), Cut> {
        while matches!(self, Self::Awaited) {
            let parsed = reply::parse(&server.inbox, method).map_err(Cut::Reply)?;
            let Some((reply, length)) = parsed else {
                return Ok(());
            };
            server.inbox.drain(..length);
            let again = persistent && !reply.body.is_open();
            client.send(&reply.render(again));
            if !reply.is_interim() {
                if let Some(meter) = meter.as_deref_mut() {
                    let kind = reply.field("content-type").unwrap_or_default();
                    meter.head(reply.status, kind, reply.field("content-encoding"));
                    meter.note_fields(reply.content_fields());
                    if reply.body.is_sized() {
                        meter.announce_length();
                    }
                }
                *self = Self::Body {
                    body: reply.body,
                    client: again,
                    server: reply.persistent,
                };
            }
        }
        let Self::Body {
            body,
            client: again,
            server: keeps,
        } = self
        else {
            return Ok(());
        };
        let mut content = |bytes: &[u8]| {
            if let Some(meter) = meter.as_deref_mut() {
                meter.push(bytes);
            }
        };
        let taken = body.advance_over(&server.inbox, &mut content);
        let taken = taken.map_err(|_| Cut::Client)?;
        client.send(&server.inbox[..taken]);
        server.inbox.drain(..taken);
        if body.is_over() {
            *self = Self::Over {
                client: *again,
                // A server that sent bytes after its reply is not used again.
                server: *keeps && server.inbox.is_empty(),
            };
        }
        Ok(())
    }

    /// The server has left; `clean` if it closed properly and all its bytes were forwarded.
    fn end(&mut self, clean: bool) -> Result<(), Cut> {
        match self {
            Self::Awaited => Err(Cut::Server("broke off")),
            Self::Body { body, .. } if body.is_open() && clean => {
                *self = Self::Over {
                    client: false,
                    server: false,
                };
                Ok(())
            }
            Self::Body { .. } => Err(Cut::Client),
            Self::Over { .. } => Ok(()),
        }
    }
}
