//! The way of one request to a model: read, reserved, forwarded, settled.
//!
//! # Invariants
//!
//! - A request is read once, however long it waits for its turn.
//! - No lock of the meter is held while the book of what all agents spend is asked: another process
//!   may hold that book.
//! - A request that was forwarded counts for all that was reserved for it unless its count is known.

use provost_core::agent::event::Usage;
use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::ModelApi;

use super::super::gateway::budget::{Amount, Cost, Grant, Reservation, Shortage};
use super::super::gateway::request::{self, ModelRequest};
use super::super::gateway::request_log::{MOST_REFUSALS, RequestRow};
use super::super::gateway::spend_book::SpendRow;
use super::super::gateway::{ModelRow, Prices, UNKNOWN_OUTPUT, table, with_output_limit};
use super::super::held_bytes::HeldBytes;
use super::super::model::{Counted, Meter};
use super::bodies::NotedRequest;
use super::{Denied, Seen, TokenMeter};

/// The least output that a request is lowered to, beside its thoughts.
const LEAST_OUTPUT: u64 = 1024;

/// A request that was read, and asks for what is granted.
#[derive(Debug)]
pub(in super::super) struct GrantedRequest {
    /// Where it goes: place and path.
    to: (Endpoint, String),
    request: ModelRequest,
    body: Vec<u8>,
    /// What is known of the model.
    known: Option<&'static ModelRow>,
}

/// A request that may be forwarded: its meter and its reservation.
#[derive(Debug)]
pub(in super::super) struct Admitted<'a> {
    /// Counts the reply.
    pub(in super::super) meter: Meter,
    /// The body to forward.
    body: Vec<u8>,
    model: String,
    media_tokens: u64,
    long_cache: bool,
    known: Option<&'static ModelRow>,
    /// `None` for a call that costs nothing.
    turn: Option<Turn<'a>>,
    /// Where bodies are recorded.
    noted: Option<NotedRequest>,
}

impl Admitted<'_> {
    /// The body, which is forwarded from now on.
    pub(in super::super) fn forward(&mut self) -> &[u8] {
        if let Some(turn) = &mut self.turn {
            turn.forwarded = true;
        }
        &self.body
    }

    pub(in super::super) fn length(&self) -> usize {
        self.body.len()
    }
}

/// What is reserved for one request; dropped without a settlement, it is free again unless the
/// request was forwarded.
#[derive(Debug)]
struct Turn<'a> {
    meter: &'a TokenMeter,
    reservation: Reservation,
    /// Its row in the book, until it is settled there.
    row: Option<SpendRow>,
    forwarded: bool,
    over: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A row of the book that is not settled counts in full.
        if self.over || self.forwarded {
            return;
        }
        let number = self.reservation.number;
        let mut seen = self.meter.seen();
        seen.account.settle(&self.reservation, Amount::default());
        self.meter
            .add_row(&mut seen, RequestRow::Released { number });
        drop(seen);
        self.meter.write_rows();
        self.meter.give_back(self.row.take());
    }
}

impl TokenMeter {
    /// Reads the request with this `body` to a model at `target`, and decides what it may ask for.
    pub(in super::super) fn read(
        &self,
        (target, path): (&Endpoint, &str),
        api: ModelApi,
        body: Vec<u8>,
    ) -> Result<GrantedRequest, Denied> {
        let request = request::read(api, path, &body)
            .map_err(|error| Denied::Unreadable(api, error.to_string()));
        let granted = request.and_then(|request| {
            let refusal = self.grants.refusal(&request, self.is_at(target));
            match refusal {
                Some(refusal) => Err(Denied::NotGranted(api, refusal.to_string())),
                None => Ok(request),
            }
        });
        let request = granted.inspect_err(|denied| self.note_refusal(denied, &body))?;
        Ok(GrantedRequest {
            to: (target.clone(), path.to_owned()),
            known: table().model(&request.model),
            request,
            body,
        })
    }

    /// The request, which only counts tokens and costs nothing.
    pub(in super::super) fn admit_free(&self, granted: GrantedRequest) -> Admitted<'_> {
        // The digest of such a call is in no row.
        let hasher = self.hasher().filter(|_| self.bodies.is_some());
        let meter = Meter::new(granted.request.api);
        Admitted {
            noted: self.noted(&granted.to, None),
            meter: meter.keeping(HeldBytes::new(&self.replies), hasher),
            body: granted.body,
            model: granted.request.model,
            media_tokens: 0,
            long_cache: false,
            known: None,
            turn: None,
        }
    }

    /// Reserves what `granted` may cost; the proxy may forward what is returned, and takes the body
    /// out of `granted` then.
    pub(in super::super) fn admit(
        &self,
        granted: &mut GrantedRequest,
    ) -> Result<Admitted<'_>, Denied> {
        let turn = self.reserve(granted);
        let (turn, bounded) =
            turn.inspect_err(|denied| self.note_refusal(denied, &granted.body))?;
        let GrantedRequest {
            to, request, body, ..
        } = granted;
        let api = request.api;
        let reservation = turn.reservation;
        let meter = if bounded {
            let unlimited = request.output_limit.is_none();
            Meter::within(api, reservation.amount.tokens, unlimited)
        } else {
            Meter::new(api)
        };
        let mut original = None;
        let allowed = reservation.output / request.answers;
        let body = match request.output_limit {
            Some(limit) if limit > allowed => {
                let lowered = lowered(api, body, allowed)?;
                original = Some(std::mem::take(body));
                lowered
            }
            Some(_) | None => std::mem::take(body),
        };
        Ok(Admitted {
            noted: self.noted(to, original),
            meter: meter.keeping(HeldBytes::new(&self.replies), self.hasher()),
            body,
            model: request.model.clone(),
            media_tokens: request.media_tokens,
            long_cache: request.long_cache,
            known: granted.known,
            turn: Some(turn),
        })
    }

    /// Reserves for a request, here and then in the book; returns whether a limit bounds it.
    fn reserve(&self, granted: &GrantedRequest) -> Result<(Turn<'_>, bool), Denied> {
        let request = &granted.request;
        let most = granted.known.map_or(UNKNOWN_OUTPUT, |known| known.output);
        let limit = request.output_limit.unwrap_or(most);
        let least = request.thinking.saturating_add(LEAST_OUTPUT).min(limit);
        let mut seen = self.seen();
        let text = seen.estimate(&request.model, granted.body.len() as u64);
        let input = text.saturating_add(request.media_tokens);
        let prices = granted.known.map(|it| it.prices(input, request.long_cache));
        let mut cost = Cost {
            input,
            output: limit.saturating_mul(request.answers),
            least_output: least.saturating_mul(request.answers),
            prices: prices.as_ref(),
        };
        let made = seen.account.reserve(&cost);
        let mut made = made.map_err(|shortage| seen.denied(request, shortage, &cost))?;
        drop(seen);
        cost.output = made.output;
        let (mut left, mut fits) = (Grant::default(), Ok((made.output, made.amount)));
        let row = match &self.book {
            None => Ok(None),
            Some(book) => book.reserve(&request.model, &mut |shared| {
                left = shared;
                fits = cost.fitting(shared, Amount::default());
                fits.as_ref().ok().map(|(_, amount)| *amount)
            }),
        };
        let mut seen = self.seen();
        let refused = match (row, fits) {
            (Ok(row), Ok(fits)) => {
                made = seen.account.lowered(made, fits);
                if !seen.account.is_within() {
                    // Another request cost more than its reservation while the book was asked.
                    seen.account.settle(&made, Amount::default());
                    drop(seen);
                    self.give_back(row);
                    return Err(Denied::Reserved(request.api));
                }
                let row = self.begin(&mut seen, request, (made, left), row);
                let bounded = !(seen.account.grant().is_open() && left.is_open());
                drop(seen);
                self.write_rows();
                return Ok((row, bounded));
            }
            (Ok(_), Err(Shortage::Spent)) if seen.account.has_others(&made) => {
                seen.denied(request, Shortage::Busy, &cost)
            }
            (Ok(_), Err(shortage)) => seen.denied(request, shortage, &cost),
            (Err(error), _) => {
                let reason = format!("what was spent before cannot be known: {error}");
                Denied::Spent(self.api, reason)
            }
        };
        seen.account.settle(&made, Amount::default());
        Err(refused)
    }

    /// Frees what `row` of the book reserves.
    fn give_back(&self, row: Option<SpendRow>) {
        if let (Some(book), Some(row)) = (&self.book, row) {
            book.settle(&row, Amount::default(), false);
        }
    }

    /// Notes that the reservation is made, with what was left to the run and the day.
    fn begin(
        &self,
        seen: &mut Seen,
        request: &ModelRequest,
        (reservation, left): (Reservation, Grant),
        row: Option<SpendRow>,
    ) -> Turn<'_> {
        let Reservation {
            number,
            amount,
            output,
        } = reservation;
        let reserved = RequestRow::Reserved {
            number,
            model: request.model.clone(),
            reserved: amount,
            output,
            left,
        };
        self.add_row(seen, reserved);
        Turn {
            meter: self,
            reservation,
            row,
            forwarded: false,
            over: false,
        }
    }

    /// Records the status and cost of a request to `target`, which may not have had a reply.
    pub(in super::super) fn settle(&self, target: &Endpoint, mut admitted: Admitted<'_>) {
        let status = admitted.meter.status();
        let answer = admitted.meter.digest();
        let digest = answer.as_ref().map(|answer| answer.digest.clone());
        let number = admitted.turn.as_ref().map(|turn| turn.reservation.number);
        if let (Some(noted), Some(answer)) = (admitted.noted.take(), answer) {
            let (body, meter) = (&admitted.body, &mut admitted.meter);
            self.keep_bodies((noted, number), body, meter, answer);
        }
        let counted = admitted.meter.finish(admitted.body.len() as u64);
        let Some(mut turn) = admitted.turn.take() else {
            let mut seen = self.seen();
            return self.note_reply(&mut seen, target, status, &counted);
        };
        let prices = admitted.known.map(|known| {
            let read = counted.usage.input_tokens;
            known.prices(read, admitted.long_cache)
        });
        let usage = priced(&counted, prices, turn.reservation.amount);
        let spent = Amount {
            tokens: usage.tokens(),
            micro_usd: usage.micro_usd,
        };
        let estimated = counted.estimated || counted.uncounted;
        if let (Some(book), Some(row)) = (&self.book, turn.row.take()) {
            book.settle(&row, spent, estimated);
        }
        let request = self.log.as_ref().map(|log| log.digest(&admitted.body));
        turn.over = true;
        let mut seen = self.seen();
        seen.account.settle(&turn.reservation, spent);
        seen.passed.requests += 1;
        seen.passed.estimated += u64::from(estimated);
        seen.passed.unpriced += u64::from(admitted.known.is_none() && spent.tokens > 0);
        seen.passed.overshoot = seen.account.overshoot().tokens;
        seen.passed.usage = seen.passed.usage.plus(usage);
        // A refused request has no count to learn from, and media are reserved for apart.
        let learns = !counted.estimated && status < 400 && admitted.media_tokens == 0;
        if learns && admitted.body.len() > 1000 {
            let read = usage.input_tokens.saturating_mul(1000);
            let ratio = read.div_ceil(admitted.body.len() as u64);
            let known = seen.learned.entry(admitted.model.clone()).or_default();
            *known = ratio.max(*known);
        }
        if let (Some(request), Some(answer)) = (request, digest) {
            let settled = RequestRow::Settled {
                number: turn.reservation.number,
                status,
                spent,
                estimated,
                request,
                answer,
            };
            self.add_row(&mut seen, settled);
        }
        self.note_reply(&mut seen, target, status, &counted);
        drop(seen);
        self.write_rows();
    }

    /// Adds a row, to be written when the lock is free.
    fn add_row(&self, seen: &mut Seen, row: RequestRow) {
        if self.log.is_some() {
            seen.rows.push(row);
        }
    }

    /// Writes the rows that were noted.
    pub(super) fn write_rows(&self) {
        if let Some(log) = &self.log {
            log.write(|| std::mem::take(&mut self.seen().rows));
        }
    }

    /// Notes that the request with this `body` is refused; one that only waits is not.
    fn note_refusal(&self, denied: &Denied, body: &[u8]) {
        let Some(log) = &self.log else { return };
        let (code, reason) = match denied {
            Denied::Reserved(_) => return,
            Denied::Spent(_, reason) => (Code::TokenLimit, reason),
            Denied::NotGranted(_, reason) | Denied::Unreadable(_, reason) => {
                (Code::ModelRequestRefused, reason)
            }
        };
        let mut seen = self.seen();
        seen.refusals = seen.refusals.saturating_add(1);
        let is_kept = seen.refusals <= MOST_REFUSALS;
        drop(seen);
        if is_kept {
            let row = RequestRow::Refused {
                code,
                reason: log.clean(reason),
                request: log.digest(body),
            };
            self.seen().rows.push(row);
            self.write_rows();
        }
    }
}

/// The usage with its price. Where all that was reserved counts, so does the reserved price.
fn priced(counted: &Counted, prices: Option<Prices>, reserved: Amount) -> Usage {
    let usage = counted.usage;
    let Some(prices) = prices else { return usage };
    let (cached, created) = (usage.cached_tokens, counted.created);
    let read = usage.input_tokens.saturating_sub(cached);
    let read = read.saturating_sub(created);
    let price = prices.of([read, cached, created, usage.output_tokens]);
    let least = if counted.uncounted {
        reserved.micro_usd
    } else {
        0
    };
    Usage {
        micro_usd: price.max(least),
        ..usage
    }
}

/// The body with its output limit lowered to `allowed`.
fn lowered(api: ModelApi, body: &[u8], allowed: u64) -> Result<Vec<u8>, Denied> {
    let reason = "the output limit of the request to the model cannot be lowered";
    let lowered = with_output_limit(api, body, allowed);
    lowered.ok_or_else(|| Denied::Unreadable(api, reason.to_owned()))
}
