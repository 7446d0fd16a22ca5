//! Meters the traffic between an agent and its model: tokens, money, refusals and failures.
//!
//! # Invariants
//!
//! - A request to a model is read, and what it may cost is reserved, before it is forwarded. The
//!   spent and the reserved together never exceed the budget then.
//! - Where the agent is limited, the model's host gets known calls only: another path, or a tunnel,
//!   could start work, or fetch its result, without a count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_core::agent::event::Usage;
use provost_core::agent::reader::Complaint;
use provost_core::agent::{Adapted, SpendLimits, dollars};
use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::{ModelApi, ModelCall};
use provost_core::net::model_traffic::{ModelTraffic, ModelTrouble};

use super::gateway::budget::{Amount, BudgetAccount, Cost, Grant, Reservation, Shortage};
use super::gateway::request::{self, ModelRequest};
use super::gateway::spend_book::{SpendBook, SpendRow};
use super::gateway::{Grants, Prices, UNKNOWN_OUTPUT, table, with_output_limit};
use super::http::request::{Form, Request};
use super::model::{Counted, Meter};

/// The least output that a request is lowered to, beside its thoughts.
const LEAST_OUTPUT: u64 = 1024;
/// Tokens that a thousand bytes of a request have, until its model has reported some.
const TOKENS_A_THOUSAND: u64 = 334;

/// How often, and for how long, a model may fail in a row before its first answer.
const AT_FIRST: (u32, Duration) = (2, Duration::from_secs(2));
/// The same for a model that has answered before.
const LATER: (u32, Duration) = (5, Duration::from_secs(15));

/// Meters the traffic with one model.
#[derive(Debug)]
pub struct TokenMeter {
    endpoint: Endpoint,
    /// The API whose form of errors the program reads.
    api: Option<ModelApi>,
    grants: Grants,
    /// What all agents of the user spend.
    book: Option<Arc<dyn SpendBook>>,
    /// What authenticates the requests, in words.
    login: Option<String>,
    /// Whether the traffic can be read.
    readable: bool,
    seen: Mutex<Seen>,
}

/// A request that may be forwarded: its meter and its reservation.
#[derive(Debug)]
pub(super) struct Admitted<'a> {
    /// Counts the reply.
    pub(super) meter: Meter,
    /// The body to forward.
    pub(super) body: Vec<u8>,
    model: String,
    prices: Option<&'static Prices>,
    turn: Turn<'a>,
}

/// What is reserved for one request; dropped without a settlement, it is free again.
#[derive(Debug)]
struct Turn<'a> {
    meter: &'a TokenMeter,
    reservation: Reservation,
    /// Its row in the book, until it is settled there.
    row: Option<SpendRow>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut seen = self.meter.seen();
        seen.account.settle(&self.reservation, Amount::default());
        drop(seen);
        if let (Some(book), Some(row)) = (&self.meter.book, self.row.take()) {
            book.settle(&row, Amount::default(), false);
        }
    }
}

/// A reservation or why there is none, its row, and what was left of shared budgets.
type Reserved = (Result<Reservation, Shortage>, Option<SpendRow>, Grant);

/// Why a request may not be forwarded.
#[derive(Debug)]
pub(super) enum Denied {
    /// What is left is reserved for other requests, for now.
    Reserved(ModelApi),
    /// Nothing is left, or the request cannot be counted; with the reason, and the API whose form
    /// of errors the client reads.
    Spent(Option<ModelApi>, String),
    /// It asks for what is not granted.
    NotGranted(ModelApi, String),
    /// It cannot be read.
    Unreadable(ModelApi, String),
}

#[derive(Debug, Default)]
struct Seen {
    passed: ModelTraffic,
    account: BudgetAccount,
    /// The most tokens that a thousand bytes of a request had, by model.
    learned: BTreeMap<String, u64>,
    /// Whether the model ever answered.
    answered: bool,
    /// Failures in a row, and since when.
    failures: u32,
    since: Option<Instant>,
    /// Present trouble with the model, for display.
    note: Option<String>,
}

impl TokenMeter {
    /// Meters the model of `agent`, if its place is known.
    pub fn of(agent: &Adapted) -> Option<Self> {
        let provider = agent.provider.as_ref()?;
        let credential = provider.credential(agent.adapter);
        let passed = ModelTraffic {
            unread: !provider.is_readable(),
            ..ModelTraffic::default()
        };
        Some(Self {
            endpoint: provider.base_url.endpoint.clone(),
            api: agent.adapter.vendor().and_then(|vendor| vendor.api),
            grants: Grants::of(agent),
            book: None,
            login: credential.map(|credential| credential.source.describe()),
            readable: !passed.unread,
            seen: Mutex::new(Seen {
                passed,
                account: BudgetAccount::new(Grant {
                    tokens: agent.budget.tokens,
                    // A price that the program claims is compared where nothing can be read.
                    micro_usd: agent.budget.micro_usd.filter(|_| provider.is_readable()),
                }),
                ..Seen::default()
            }),
        })
    }

    /// The same meter, which records what is spent in `book` and is bound by what `limits` leave
    /// there.
    #[must_use]
    pub fn with_book(mut self, book: Arc<dyn SpendBook>, limits: SpendLimits) -> Self {
        self.book = Some(book);
        self.grants.limited |= !limits.is_open();
        self
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether requests to `target` are metered.
    pub(super) fn is_at(&self, target: &Endpoint) -> bool {
        self.endpoint == *target
    }

    /// Whether the traffic to `target` is read.
    pub(super) fn reads(&self, target: &Endpoint) -> bool {
        self.readable && self.is_at(target)
    }

    /// The API of `request`, if it makes a model work and so is to be read; or why it is refused.
    pub(super) fn api_of(&self, request: &Request) -> Result<Option<ModelApi>, Denied> {
        let call = match &request.form {
            Form::Tunnel => ModelCall::Unknown,
            Form::Plain(path) => ModelCall::anywhere(&request.method, path),
        };
        match call {
            ModelCall::Work(api) => Ok(Some(api)),
            ModelCall::Free => Ok(None),
            // At another place it is not a request to a model.
            ModelCall::Unknown if !self.is_at(&request.target) => Ok(None),
            ModelCall::Unknown if !self.grants.is_bound() => Ok(None),
            ModelCall::Unknown => Err(Denied::Spent(
                self.api,
                format!(
                    "what this {} there asks of the model cannot be read, and the agent is limited \
                     in what it may ask and spend",
                    request.method
                ),
            )),
        }
    }

    /// Reads the request to a model with this `body`; the proxy may forward what is returned.
    pub(super) fn admit(
        &self,
        api: ModelApi,
        path: &str,
        body: &[u8],
    ) -> Result<Admitted<'_>, Denied> {
        let asked = request::read(api, path, body);
        let asked = asked.map_err(|error| Denied::Unreadable(api, error.to_string()))?;
        if let Some(refusal) = self.grants.refusal(&asked) {
            return Err(Denied::NotGranted(api, refusal.to_string()));
        }
        let known = table().model(&asked.model);
        let prices = known.map(|row| &row.prices);
        let most = known.map_or(UNKNOWN_OUTPUT, |row| row.output);
        let mut seen = self.seen();
        let input = seen.estimate(&asked.model, body.len() as u64);
        let limit = asked.output_limit.unwrap_or(most);
        let least = asked.thinking.saturating_add(LEAST_OUTPUT).min(limit);
        let cost = Cost {
            input,
            output: limit.saturating_mul(asked.answers),
            least_output: least.saturating_mul(asked.answers),
            prices,
            shared: Grant::default(),
        };
        let (reserved, row, shared) = self.reserve(&mut seen, &asked.model, &cost)?;
        let reservation = reserved.map_err(|shortage| seen.denied(&asked, shortage, &cost))?;
        let bounded = !(seen.account.grant().is_open() && shared.is_open());
        drop(seen);
        let turn = Turn {
            meter: self,
            reservation,
            row,
        };
        let meter = if bounded {
            let unlimited = asked.output_limit.is_none();
            Meter::within(api, reservation.amount.tokens, unlimited)
        } else {
            Meter::new(api)
        };
        let allowed = reservation.output / asked.answers;
        let body = match asked.output_limit {
            Some(limit) if limit > allowed => lowered(api, body, allowed)?,
            Some(_) | None => body.to_vec(),
        };
        Ok(Admitted {
            meter,
            body,
            model: asked.model,
            prices,
            turn,
        })
    }

    /// Reserves for a request, here and in the book; returns what was left there too.
    fn reserve(&self, seen: &mut Seen, model: &str, cost: &Cost<'_>) -> Result<Reserved, Denied> {
        let mut made = Err(Shortage::Spent);
        let mut left = Grant::default();
        let mut choose = |shared: Grant| {
            left = shared;
            made = seen.account.reserve(&Cost { shared, ..*cost });
            made.as_ref().ok().map(|reservation| reservation.amount)
        };
        let row = if let Some(book) = &self.book {
            book.reserve(model, &mut choose)
        } else {
            choose(Grant::default());
            Ok(None)
        };
        match row {
            Ok(row) => Ok((made, row, left)),
            Err(error) => {
                if let Ok(reservation) = &made {
                    seen.account.settle(reservation, Amount::default());
                }
                let reason = format!("what was spent before cannot be known: {error}");
                Err(Denied::Spent(self.api, reason))
            }
        }
    }

    /// Notes that `target` was reached.
    pub(super) fn reached(&self, target: &Endpoint) {
        if self.is_at(target) {
            self.seen().reached();
        }
    }

    /// Records the status and cost of a request to `target`, which may not have had a reply.
    pub(super) fn settle(&self, target: &Endpoint, mut admitted: Admitted<'_>) {
        let status = admitted.meter.status();
        let counted = admitted.meter.finish(admitted.body.len() as u64);
        let mut usage = counted.usage;
        if let Some(prices) = admitted.prices {
            let (cached, created) = (usage.cached_tokens, counted.created);
            let read = usage.input_tokens.saturating_sub(cached);
            let read = read.saturating_sub(created);
            usage.micro_usd = prices.of([read, cached, created, usage.output_tokens]);
        }
        let spent = Amount {
            tokens: usage.tokens(),
            micro_usd: usage.micro_usd,
        };
        let estimated = counted.estimated || counted.uncounted;
        if let (Some(book), Some(row)) = (&self.book, admitted.turn.row.take()) {
            book.settle(&row, spent, estimated);
        }
        let mut seen = self.seen();
        seen.account.settle(&admitted.turn.reservation, spent);
        seen.passed.requests += 1;
        seen.passed.estimated += u64::from(estimated);
        seen.passed.unpriced += u64::from(admitted.prices.is_none() && spent.tokens > 0);
        seen.passed.overshoot = seen.account.overshoot().tokens;
        seen.passed.usage = seen.passed.usage.plus(usage);
        // A refused request has no count to learn from.
        if !counted.estimated && status < 400 && admitted.body.len() > 1000 {
            let read = usage.input_tokens.saturating_mul(1000);
            let ratio = read.div_ceil(admitted.body.len() as u64);
            let known = seen.learned.entry(admitted.model.clone()).or_default();
            *known = ratio.max(*known);
        }
        self.note_reply(&mut seen, target, status, &counted);
        // The end of the turn locks it again.
        drop(seen);
    }

    /// Notes what the status of a reply says of the model at `target`.
    fn note_reply(&self, seen: &mut Seen, target: &Endpoint, status: u16, counted: &Counted) {
        if !self.is_at(target) {
            // Another model that the agent may use; its failure does not end the agent.
            return;
        }
        if status != 0 {
            seen.reached();
        }
        seen.note = (status >= 400).then(|| self.answer(status, counted.words.as_deref()));
        if is_refusal(status) {
            let login = self.login.as_deref().unwrap_or("a request without a key");
            let answer = self.answer(status, counted.words.as_deref());
            seen.trouble(Code::ModelUnauthorized, format!("{answer} to {login}"));
        }
    }

    fn answer(&self, status: u16, words: Option<&str>) -> String {
        let words = words.map_or(String::new(), |words| format!(" ({words})"));
        format!("the model at {} answered {status}{words}", self.endpoint)
    }

    /// Notes that the model could not be reached.
    pub(super) fn failed(&self, reason: &str) {
        let mut seen = self.seen();
        seen.failures += 1;
        let since = *seen.since.get_or_insert_with(Instant::now);
        let (most, least) = if seen.answered { LATER } else { AT_FIRST };
        let reason = format!("the model cannot be reached: {reason}");
        if seen.failures >= most && since.elapsed() >= least {
            let reason = format!("{reason}, {} times in a row", seen.failures);
            seen.trouble(Code::ModelUnreachable, reason);
        }
        seen.note = Some(reason);
    }

    /// Notes that the login cannot be used any more, so that no request reaches the model.
    pub(super) fn lost_login(&self, reason: &str) {
        let mut seen = self.seen();
        seen.trouble(Code::LoginUnusable, reason.to_owned());
        seen.note = Some(reason.to_owned());
    }

    /// Notes what the program says about its model, where the traffic cannot be read.
    pub fn note_complaint(&self, complaint: &Complaint) {
        if self.readable {
            return;
        }
        let mut seen = self.seen();
        let Complaint {
            status,
            words,
            times,
        } = complaint;
        let words = format!("the model at {}: {words}", self.endpoint);
        if status.is_some_and(is_refusal) {
            seen.trouble(Code::ModelUnauthorized, words);
        } else if status.is_none() && *times >= LATER.0 {
            seen.trouble(Code::ModelUnreachable, words);
        }
    }

    /// Whether the agent requested more tokens than its limit, or it cannot be known.
    pub fn is_overspent(&self) -> bool {
        let seen = self.seen();
        let account = &seen.account;
        !account.grant().covers(account.settled()) || seen.passed.refused > 0
    }

    /// The traffic so far.
    pub fn passed(&self) -> ModelTraffic {
        self.seen().passed.clone()
    }

    /// What was spent so far and what may be spent, for display; `None` before the first request.
    pub fn spent_words(&self) -> Option<String> {
        let seen = self.seen();
        let Usage { micro_usd, .. } = seen.passed.usage;
        let tokens = seen.passed.usage.tokens();
        let grant = seen.account.grant();
        let of = |most: Option<String>| most.map_or(String::new(), |most| format!(" of {most}"));
        let tokens = format!(
            "{tokens} tokens{}",
            of(grant.tokens.map(|most| most.to_string()))
        );
        let money = (micro_usd > 0).then(|| {
            let most = of(grant.micro_usd.map(dollars));
            format!(", {}{most}", dollars(micro_usd))
        });
        (seen.passed.requests > 0).then(|| tokens + &money.unwrap_or_default())
    }

    /// Present trouble with the model, for display.
    pub fn note(&self) -> Option<String> {
        self.seen().note.clone()
    }
}

/// Whether this status means that the model refuses the key.
fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// The body with its output limit lowered to `allowed`.
fn lowered(api: ModelApi, body: &[u8], allowed: u64) -> Result<Vec<u8>, Denied> {
    let reason = "the output limit of the request to the model cannot be lowered";
    let lowered = with_output_limit(api, body, allowed);
    lowered.ok_or_else(|| Denied::Unreadable(api, reason.to_owned()))
}

impl Seen {
    /// How many tokens a request of this many bytes has at most, as far as is known.
    fn estimate(&self, model: &str, bytes: u64) -> u64 {
        let learned = self.learned.get(model);
        // A quarter more, because one request differs from another. The agent chooses what is
        // learned from, so nothing is ever learned to cost less.
        let ratio = learned.map_or(0, |known| known.saturating_mul(5) / 4 + 1);
        let ratio = ratio.max(TOKENS_A_THOUSAND);
        bytes.saturating_mul(ratio).div_ceil(1000)
    }

    fn denied(&mut self, asked: &ModelRequest, shortage: Shortage, cost: &Cost<'_>) -> Denied {
        match shortage {
            Shortage::Busy => Denied::Reserved(asked.api),
            Shortage::Unpriced => Denied::NotGranted(
                asked.api,
                format!(
                    "the price of the model `{}` is not known, and `max_cost_usd` is set; limit \
                     the agent by `max_tokens` of the agent in provost.toml",
                    asked.model.escape_debug()
                ),
            ),
            Shortage::Spent => {
                self.passed.refused += 1;
                let Amount { tokens, micro_usd } = self.account.settled();
                let Grant {
                    tokens: most,
                    micro_usd: most_usd,
                } = self.account.grant();
                let tokens = most.map(|most| format!("{tokens} tokens of {most}"));
                let money = most_usd.map(|most| {
                    let [spent, most] = [micro_usd, most].map(dollars);
                    format!("{spent} of {most}")
                });
                let mut spent: Vec<String> = tokens.into_iter().chain(money).collect();
                if spent.is_empty() {
                    spent.push("what `[budget]` permits a run or a day".to_owned());
                }
                let (input, least) = (cost.input, cost.least_output);
                let words = format!(
                    "the agent spent {}, and this request may cost {input} tokens read and at \
                     least {least} written",
                    spent.join(" and ")
                );
                Denied::Spent(Some(asked.api), words)
            }
        }
    }

    fn reached(&mut self) {
        self.answered = true;
        self.failures = 0;
        self.since = None;
        self.note = None;
    }

    /// Keeps the first trouble, which is the cause of those that follow.
    fn trouble(&mut self, code: Code, reason: String) {
        let trouble = ModelTrouble { code, reason };
        self.passed.trouble.get_or_insert(trouble);
    }
}
