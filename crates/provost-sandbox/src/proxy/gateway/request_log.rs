//! The rows about requests to models in a bundle: reservation, settlement and digests of each.
//!
//! # Invariants
//!
//! - Rows are in the order of the account: at every row of a reservation, what the rows before it
//!   settled and what is reserved together are within the grant. [`replay`] checks that.
//! - Digests are of bodies without secrets; no body is kept in the bundle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use provost_core::code::Code;
use provost_core::object::hex;
use provost_core::secret::{Known, Scrubber};
use provost_model_record::store::BodyCapture;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::budget::{Amount, Grant};

/// The most rows about refusals of one agent.
pub(in super::super) const MOST_REFUSALS: u64 = 256;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestRow {
    /// The first one: what one attempt may spend.
    Opened { grant: Grant },
    /// Written before the request is forwarded.
    Reserved {
        number: u64,
        model: String,
        reserved: Amount,
        /// The most tokens of the answer.
        output: u64,
        /// What was left to the run and the day.
        left: Grant,
    },
    /// The request ended.
    Settled {
        number: u64,
        /// The status of the answer; 0 if there was none.
        status: u16,
        spent: Amount,
        /// Whether the provider did not report all of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        request: BodyDigest,
        answer: BodyDigest,
    },
    /// The reserved request was not forwarded.
    Released { number: u64 },
    /// A request that was not forwarded, and why; only the first ones have a row.
    Refused {
        code: Code,
        reason: String,
        request: BodyDigest,
    },
}

/// A body without its secrets, by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyDigest {
    pub bytes: u64,
    pub sha256: String,
}

/// Makes the digest of a body that comes in pieces.
#[derive(Debug)]
pub(in super::super) struct BodyHasher {
    scrubber: Scrubber,
    hasher: Sha256,
    bytes: u64,
    /// Keeps the body, too, where bodies are recorded.
    capture: Option<BodyCapture>,
}

/// A body that arrived whole.
#[derive(Debug)]
pub(in super::super) struct HashedBody {
    pub(in super::super) digest: BodyDigest,
    /// How many secrets were removed.
    pub(in super::super) removed: u64,
    pub(in super::super) capture: Option<BodyCapture>,
}

impl BodyHasher {
    pub(in super::super) fn push(&mut self, bytes: &[u8]) {
        let clean = self.scrubber.push(bytes);
        self.add(&clean);
    }

    fn add(&mut self, clean: &[u8]) {
        self.bytes = self.bytes.saturating_add(clean.len() as u64);
        self.hasher.update(clean);
        if let Some(capture) = &mut self.capture {
            capture.push(clean);
        }
    }

    pub(in super::super) fn finish(mut self) -> HashedBody {
        let rest = self.scrubber.finish();
        self.add(&rest);
        HashedBody {
            removed: self.scrubber.removed(),
            digest: BodyDigest {
                bytes: self.bytes,
                sha256: hex(&self.hasher.finalize()),
            },
            capture: self.capture,
        }
    }
}

/// Writes rows to a file.
#[derive(Debug)]
pub(in super::super) struct RequestLog {
    file: Mutex<File>,
    known: Known,
}

impl RequestLog {
    pub(in super::super) fn new(file: File, known: Known) -> Self {
        Self {
            file: Mutex::new(file),
            known,
        }
    }

    pub(in super::super) fn hasher(&self) -> BodyHasher {
        BodyHasher {
            scrubber: Scrubber::new(self.known.clone()),
            hasher: Sha256::new(),
            bytes: 0,
            capture: None,
        }
    }

    /// A hasher that keeps the body, too.
    pub(in super::super) fn capturing(&self) -> BodyHasher {
        BodyHasher {
            capture: Some(BodyCapture::default()),
            ..self.hasher()
        }
    }

    pub(in super::super) fn digest(&self, body: &[u8]) -> BodyDigest {
        let mut hasher = self.hasher();
        hasher.push(body);
        hasher.finish().digest
    }

    /// The text without secrets.
    pub(in super::super) fn clean(&self, text: &str) -> String {
        self.known.scrub_text(text.to_owned()).0
    }

    /// Writes the rows that `take` returns; no other thread writes between both.
    pub(in super::super) fn write(&self, take: impl FnOnce() -> Vec<RequestRow>) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Vec::new();
        for row in take() {
            if serde_json::to_writer(&mut text, &row).is_ok() {
                text.push(b'\n');
            }
        }
        // The budget does not depend on it. What is missing is seen as a digest that differs.
        let _ = file.write_all(&text);
    }
}

/// What the rows add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    pub settled: Amount,
    /// Reserved, and neither settled nor released.
    pub open: Amount,
    pub forwarded: u64,
}

/// Why rows cannot be what happened, or what happened was not within the grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRows {
    #[error("the first row names no grant")]
    NoGrant,
    #[error("a second row names a grant")]
    TwoGrants,
    #[error("reservation {0} exceeds what was left")]
    Beyond(u64),
    #[error("reservation {0} is made twice, or ends without a beginning")]
    Order(u64),
}

/// Adds up `rows`, and checks that no reservation exceeded what was left.
pub fn replay<'a>(rows: impl IntoIterator<Item = &'a RequestRow>) -> Result<Replayed, BadRows> {
    let mut rows = rows.into_iter();
    let Some(RequestRow::Opened { grant }) = rows.next() else {
        return Err(BadRows::NoGrant);
    };
    let mut sum = Replayed::default();
    let mut open: BTreeMap<u64, Amount> = BTreeMap::new();
    let mut last = None;
    for row in rows {
        match row {
            RequestRow::Opened { .. } => return Err(BadRows::TwoGrants),
            RequestRow::Refused { .. } => {}
            RequestRow::Reserved {
                number,
                reserved,
                left,
                ..
            } => {
                if open.insert(*number, *reserved).is_some() || last == Some(*number) {
                    return Err(BadRows::Order(*number));
                }
                last = Some(*number);
                sum.open = sum.open.plus(*reserved);
                sum.forwarded += 1;
                let taken = sum.settled.plus(sum.open);
                if !grant.covers(taken) || !left.covers(*reserved) {
                    return Err(BadRows::Beyond(*number));
                }
            }
            RequestRow::Settled { number, spent, .. } => {
                let reserved = open.remove(number).ok_or(BadRows::Order(*number))?;
                sum.open = sum.open.minus(reserved);
                sum.settled = sum.settled.plus(*spent);
            }
            RequestRow::Released { number } => {
                let reserved = open.remove(number).ok_or(BadRows::Order(*number))?;
                sum.open = sum.open.minus(reserved);
                sum.forwarded -= 1;
            }
        }
    }
    Ok(sum)
}
