//! Answers the requests of an agent that runs again from what was recorded.
//!
//! A request holds its whole conversation, so the recorded request that equals it under the mask
//! has the answer that came at that place of that conversation.
//!
//! # Invariants
//!
//! - Every recorded answer is given at most once. Equal requests get their answers in the order in
//!   which they were recorded.
//! - After the first request without an equal one nothing is answered.
//! - What was forwarded is what the sealed rows say: the same requests, with the same digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_core::secret::{Known, Scrubber};
use provost_core::wording::counted;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::difference::{self, RequestDifference};
use crate::exchange::Exchange;
use crate::mask::{self, MaskedDigests};
use crate::store::{self, RecordProblem};

/// How many recorded requests are compared with one that has no equal.
const MOST_COMPARED: usize = 64;

/// A forwarded request, as the sealed rows of the run have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRequest {
    pub number: u64,
    /// Digests of request and answer; `None` if the request has no end in the rows.
    pub digests: Option<[String; 2]>,
}

/// What was recorded of one agent.
#[derive(Debug)]
pub struct Playback {
    directory: PathBuf,
    known: Known,
    exchanges: Vec<Exchange>,
    /// Of each exchange, what its request is under the mask.
    keys: Vec<RequestKey>,
    state: Mutex<PlaybackState>,
}

/// Method, path and body of a request under the mask.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestKey {
    call: String,
    body: [u8; 32],
}

#[derive(Debug, Default)]
struct PlaybackState {
    given: Vec<bool>,
    asked: u64,
    digests: MaskedDigests,
    stopped: Option<Unmatched>,
}

/// A request that equals no recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Which request of the agent it was, counted from 1.
    pub request: u64,
    /// The number of the recorded request that is closest to it.
    pub closest: Option<u64>,
    pub difference: RequestDifference,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedAnswer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub complete: bool,
    pub body: Vec<u8>,
}

impl Playback {
    /// What was recorded in `directory` under the index `name`; or everything that is missing of
    /// `sealed`, the requests of the sealed run.
    pub fn load(
        directory: &Path,
        name: &str,
        sealed: &[SealedRequest],
        known: Known,
    ) -> Result<Self, Vec<String>> {
        let problem = |problem: RecordProblem| vec![problem.to_string()];
        let exchanges = store::exchanges(directory, name).map_err(problem)?;
        let mut problems = unlike(&exchanges, sealed);
        let mut digests = MaskedDigests::default();
        let mut keys = Vec::new();
        for exchange in &exchanges {
            let number = exchange.number;
            if exchange.answer.body.removed > 0 {
                let count = usize::try_from(exchange.answer.body.removed).unwrap_or(usize::MAX);
                let secrets = counted(count, "secret");
                problems.push(format!(
                    "answer {number} held {secrets}, and is not kept whole"
                ));
            }
            if exchange.answer.status == 0 {
                problems.push(format!("request {number} got no answer"));
            }
            let request = store::read(directory, &exchange.request);
            let answer = store::read(directory, &exchange.answer.body);
            problems.extend(
                answer
                    .err()
                    .map(|error| format!("answer {number}: {error}")),
            );
            match request {
                Ok(body) => keys.push(key(&mut digests, exchange, &body)),
                Err(error) => problems.push(format!("request {number}: {error}")),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            directory: directory.to_owned(),
            known,
            state: Mutex::new(PlaybackState {
                given: vec![false; exchanges.len()],
                digests,
                ..PlaybackState::default()
            }),
            exchanges,
            keys,
        })
    }

    fn state(&self) -> MutexGuard<'_, PlaybackState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded answer for a request; `None` if it equals no request that is left.
    pub fn answer(&self, method: &str, path: &str, body: &[u8]) -> Option<PlayedAnswer> {
        let body = clean(&self.known, body);
        let call = call_of(method, path);
        let mut state = self.state();
        if state.stopped.is_some() {
            return None;
        }
        state.asked += 1;
        let plain = state.digest(&body, false);
        let lowered = state.digest(&body, true);
        let is_equal = |index: &usize| {
            let RequestKey { call: known, body } = &self.keys[*index];
            let own = if self.exchanges[*index].lowered {
                lowered
            } else {
                plain
            };
            *known == call && *body == own
        };
        let left = (0..self.exchanges.len()).filter(|index| !state.given[*index]);
        let Some(index) = left.clone().find(is_equal) else {
            let left: Vec<usize> = left.collect();
            let unmatched = self.unmatched(&left, &call, &body);
            let request = state.asked;
            state.stopped = Some(Unmatched {
                request,
                ..unmatched
            });
            return None;
        };
        state.given[index] = true;
        drop(state);
        let answer = &self.exchanges[index].answer;
        // It was read when the record was loaded; by now another process may have removed it.
        let body = store::read(&self.directory, &answer.body).ok()?;
        Some(PlayedAnswer {
            status: answer.status,
            fields: answer.fields.clone(),
            complete: answer.complete,
            body,
        })
    }

    /// How a request without an equal differs from the closest of those that are `left`.
    fn unmatched(&self, left: &[usize], call: &str, body: &[u8]) -> Unmatched {
        let read = |index: &usize| {
            let exchange = &self.exchanges[*index];
            let recorded = store::read(&self.directory, &exchange.request).ok()?;
            let recorded = document(&recorded, exchange.lowered);
            let again = document(body, exchange.lowered);
            let distance = difference::distance(&recorded, &again);
            Some((distance, exchange.number, recorded, again))
        };
        let same_call = left.iter().filter(|index| self.keys[**index].call == *call);
        let rows = same_call.take(MOST_COMPARED).filter_map(read);
        let closest = rows.min_by_key(|row| (row.0, row.1));
        let found = closest.and_then(|(_, number, recorded, again)| {
            Some((number, difference::first(&recorded, &again)?))
        });
        let (closest, difference) = found.map_or_else(
            || {
                let difference = RequestDifference {
                    pointer: String::new(),
                    recorded: None,
                    again: Some(call.escape_debug().to_string()),
                };
                (None, difference)
            },
            |(number, difference)| (Some(number), difference),
        );
        Unmatched {
            request: 0,
            closest,
            difference,
        }
    }

    /// The request that equals no recorded one, if there was one.
    pub fn stopped(&self) -> Option<Unmatched> {
        self.state().stopped.clone()
    }

    /// How many recorded requests were not made again.
    pub fn left(&self) -> usize {
        let state = self.state();
        state.given.iter().filter(|given| !**given).count()
    }

    /// How many requests were recorded.
    pub fn recorded(&self) -> usize {
        self.exchanges.len()
    }
}

impl PlaybackState {
    fn digest(&mut self, body: &[u8], lowered: bool) -> [u8; 32] {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => self.digests.of(value, lowered),
            Err(_) => Sha256::digest(body).into(),
        }
    }
}

/// The body without secrets, as it would be kept.
fn clean(known: &Known, body: &[u8]) -> Vec<u8> {
    let mut scrubber = Scrubber::new(known.clone());
    let mut clean = scrubber.push(body);
    clean.extend(scrubber.finish());
    clean
}

fn call_of(method: &str, path: &str) -> String {
    format!("{method} {}", mask::text(path))
}

fn key(digests: &mut MaskedDigests, exchange: &Exchange, body: &[u8]) -> RequestKey {
    RequestKey {
        call: call_of(&exchange.method, &exchange.path),
        body: match serde_json::from_slice::<Value>(body) {
            Ok(value) => digests.of(value, exchange.lowered),
            Err(_) => Sha256::digest(body).into(),
        },
    }
}

/// The body under the mask; one that is no JSON is one text.
fn document(body: &[u8], lowered: bool) -> Value {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => mask::request(value, lowered),
        Err(_) => Value::from(String::from_utf8_lossy(body)),
    }
}

/// What is in the sealed rows and not in the index, or otherwise there.
fn unlike(exchanges: &[Exchange], sealed: &[SealedRequest]) -> Vec<String> {
    let rows = exchanges
        .iter()
        .filter_map(|it| Some((it.reservation?, it)));
    let by_number: BTreeMap<u64, &Exchange> = rows.collect();
    let mut problems = Vec::new();
    for SealedRequest { number, digests } in sealed {
        let Some([request, answer]) = digests else {
            problems.push(format!("request {number} of the sealed rows has no end"));
            continue;
        };
        match by_number.get(number) {
            None => problems.push(format!(
                "request {number} of the sealed rows was not recorded"
            )),
            Some(it) if it.request.sha256 != *request && !it.lowered => {
                problems.push(format!("request {number} is not that of the sealed rows"));
            }
            Some(it) if it.answer.body.sha256 != *answer => {
                problems.push(format!("answer {number} is not that of the sealed rows"));
            }
            Some(_) => {}
        }
    }
    let known = |number: &u64| sealed.iter().any(|row| row.number == *number);
    let strange = by_number.keys().filter(|number| !known(number));
    problems.extend(strange.map(|number| format!("request {number} is in no sealed row")));
    problems
}

#[cfg(test)]
mod tests;
