//! Meters the traffic between an agent and its model: tokens, money, refusals and failures.
//!
//! # Invariants
//!
//! - A request to a model is read, and what it may cost is reserved, before it is forwarded. The
//!   spent and the reserved together never exceed the budget then.
//! - Where the agent is limited, the model's host gets known calls only: another path, or a tunnel,
//!   could start work, or fetch its result, without a count.

mod bodies;
mod turn;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_core::agent::event::Usage;
use provost_core::agent::sum::Complaint;
use provost_core::agent::{Adapted, SpendLimits, dollars};
use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::{ModelApi, ModelCall};
use provost_core::net::model_traffic::{ModelTraffic, ModelTrouble};

use provost_core::secret::Known;
use provost_model_record::store::BodyStore;

use super::gateway::Grants;
use super::gateway::budget::{Amount, BudgetAccount, Cost, Grant, Shortage};
use super::gateway::request::ModelRequest;
use super::gateway::request_log::{RequestLog, RequestRow};
use super::gateway::spend_book::SpendBook;
use super::http::request::{Form, Request};
use super::model::Counted;
pub(super) use turn::Admitted;

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
    /// Records requests in the bundle.
    log: Option<RequestLog>,
    /// Keeps bodies, where the user wants them; only beside `log`.
    bodies: Option<BodyStore>,
    /// Bytes of replies that all connections keep.
    replies: Arc<AtomicUsize>,
    /// What authenticates the requests, in words.
    login: Option<String>,
    /// Whether the traffic can be read.
    readable: bool,
    seen: Mutex<Seen>,
}

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
    /// Rows that were not written yet.
    rows: Vec<RequestRow>,
    /// How many requests were refused, for whatever reason.
    refusals: u64,
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
            log: None,
            bodies: None,
            replies: Arc::default(),
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
        self.grants.priced |= limits.run.micro_usd.or(limits.day.micro_usd).is_some();
        self
    }

    /// The same meter, which writes a row about each request to `file`; what is `known` to be
    /// secret is in no digest.
    #[must_use]
    pub fn with_log(mut self, file: File, known: Known) -> Self {
        self.log = Some(RequestLog::new(file, known));
        let mut seen = self.seen();
        let grant = seen.account.grant();
        seen.rows.push(RequestRow::Opened { grant });
        drop(seen);
        self.write_rows();
        self
    }

    /// The same meter, which keeps the bodies of requests and answers in `store`, without what the
    /// rows about requests leave out, too.
    #[must_use]
    pub fn with_bodies(mut self, store: BodyStore) -> Self {
        self.bodies = Some(store);
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

    /// The call of `request`, if it is one that is to be read; or why it is refused.
    pub(super) fn call_of(&self, request: &Request) -> Result<Option<ModelCall>, Denied> {
        let call = match &request.form {
            Form::Tunnel => ModelCall::Unknown,
            Form::Plain(path) => ModelCall::anywhere(&request.method, path),
        };
        match call {
            // At another place it is not a request to a model, or costs nothing there.
            ModelCall::Count(_) | ModelCall::Unknown if !self.is_at(&request.target) => Ok(None),
            ModelCall::Work(_) | ModelCall::Count(_) => Ok(Some(call)),
            ModelCall::Free => Ok(None),
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

    /// Notes that `target` was reached.
    pub(super) fn reached(&self, target: &Endpoint) {
        if self.is_at(target) {
            self.seen().reached();
        }
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
