//! Meters the traffic between an agent and its model: tokens, refusals and failures.
//!
//! # Invariants
//!
//! - Where tokens are limited, a request reserves all remaining tokens until its cost is known.
//!   The cost is not known before: the body of a request is not read, and a program may ask for
//!   more than any limit. So requests to a model are forwarded one after the other, and the spent
//!   and the reserved tokens together never exceed the limit.
//! - Where tokens are limited, the model's host gets known calls only: another path could start
//!   work, or fetch its result, without a count.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_core::agent::Adapted;
use provost_core::agent::reader::Complaint;
use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::{ModelApi, ModelCall};
use provost_core::net::model_traffic::{ModelTraffic, ModelTrouble};

use super::http::request::{Form, Request};
use super::model::{Counted, Meter};

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
    /// The most tokens, if there is a limit.
    most: Option<u64>,
    /// What authenticates the requests, in words.
    login: Option<String>,
    /// Whether the traffic can be read.
    readable: bool,
    seen: Mutex<Seen>,
}

/// A request that may be forwarded: its meter and its reservation.
#[derive(Debug, Default)]
pub(super) struct Admitted<'a> {
    /// Counts the reply, if it is to be counted.
    pub(super) meter: Option<Meter>,
    /// The reservation, until this is dropped.
    _turn: Option<Turn<'a>>,
}

/// All remaining tokens, reserved for one request.
#[derive(Debug)]
struct Turn<'a>(&'a TokenMeter);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.seen().reserved = false;
    }
}

/// Why a request may not be forwarded.
#[derive(Debug)]
pub(super) enum Denied {
    /// All remaining tokens are reserved for another request, for now.
    Reserved(ModelApi),
    /// No token is left, or the request cannot be counted; with the reason, and the API whose form
    /// of errors the client reads.
    Spent(Option<ModelApi>, String),
}

#[derive(Debug, Default)]
struct Seen {
    passed: ModelTraffic,
    /// Whether the remaining tokens are reserved for a request.
    reserved: bool,
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
            most: agent.budget.tokens,
            login: credential.map(|credential| credential.source.describe()),
            readable: !passed.unread,
            seen: Mutex::new(Seen {
                passed,
                ..Seen::default()
            }),
        })
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

    /// The meter for the reply to `request`; or why the request is refused.
    pub(super) fn admit(&self, request: &Request) -> Result<Admitted<'_>, Denied> {
        let call = match &request.form {
            Form::Tunnel => ModelCall::Unknown,
            Form::Plain(path) => ModelCall::anywhere(&request.method, path),
        };
        let Some(most) = self.most else {
            return Ok(match call {
                ModelCall::Work(api) => Admitted {
                    meter: Some(Meter::new(api)),
                    ..Admitted::default()
                },
                ModelCall::Free | ModelCall::Unknown => Admitted::default(),
            });
        };
        match call {
            ModelCall::Free => Ok(Admitted::default()),
            // At another place it is not a request to a model.
            ModelCall::Unknown if !self.is_at(&request.target) => Ok(Admitted::default()),
            ModelCall::Unknown => Err(Denied::Spent(
                self.api,
                format!(
                    "what this {} there costs cannot be counted, and the agent may spend {most} \
                     tokens",
                    request.method
                ),
            )),
            ModelCall::Work(api) => {
                let mut seen = self.seen();
                let spent = seen.passed.usage.tokens();
                if seen.reserved {
                    return Err(Denied::Reserved(api));
                }
                if spent >= most {
                    seen.passed.refused += 1;
                    let explained = seen.passed.explain();
                    let words = format!("the agent spent {spent} tokens of {most}{explained}");
                    return Err(Denied::Spent(Some(api), words));
                }
                seen.reserved = true;
                Ok(Admitted {
                    meter: Some(Meter::within(api, most - spent)),
                    _turn: Some(Turn(self)),
                })
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
    pub(super) fn settle(&self, target: &Endpoint, status: u16, counted: &Counted) {
        let mut seen = self.seen();
        seen.passed.requests += 1;
        seen.passed.estimated += u64::from(counted.estimated);
        seen.passed.uncounted += u64::from(counted.uncounted);
        seen.passed.usage = seen.passed.usage.plus(counted.usage);
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
        let beyond = self
            .most
            .is_some_and(|most| seen.passed.usage.tokens() > most);
        beyond || seen.passed.refused > 0 || seen.passed.uncounted > 0
    }

    /// The traffic so far.
    pub fn passed(&self) -> ModelTraffic {
        self.seen().passed.clone()
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
