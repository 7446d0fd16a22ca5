//! Seals the evidence of a controlled change: the event chain of its intent, and every file it
//! names. See docs/change-control.md.
//!
//! A record about files names their digests, so the chain says what each of them must be, and the
//! statement signs the end of the chain. Each record is followed by a new seal.
//!
//! # Invariants
//!
//! - The statement follows from the chain alone; no file is hashed again to seal it.
//! - A later record about a file replaces an earlier one: the evidence is the last version of each
//!   file.

mod report;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::IntentEvent;
use provost_core::bundle::report::Sha256;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::record::Record;
use provost_engine::bundle::sealed::FileDigest;
use provost_engine::bundle::statement::{
    LedgerHead, PredicateType, Statement, StatementKind, Subject,
};

pub use report::ChangeReport;
pub use verify::{is_one, verify};

/// The declared intent.
pub const INTENT: &str = "intent.json";
/// The analysis from before the change.
pub const BEFORE: &str = "before.json";
pub const AFTER: &str = "after.json";
/// The result of the change.
pub const RECEIPT: &str = "receipt.json";
/// The paths that the change touched.
pub const TRAIL: &str = "trail.json";
/// The baseline, as the analysis before the change saw it.
pub const BASELINE: &str = "baseline.json";
/// The blast radius of the declared scope.
pub const BLAST: &str = "blast.json";

/// The field of a record that names files.
const FILES: &str = "files";

/// The signed facts about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePredicate {
    pub intent_id: String,
    /// Result of the last `finish`; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether the change has ended.
    pub ended: bool,
    /// The end of its chain.
    pub ledger_head: LedgerHead,
}

pub type ChangeStatement = Statement<FileDigest, ChangePredicate>;

/// The state that the chain of an intent adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeCourse {
    /// The required digest of each evidence file.
    pub files: BTreeMap<String, Sha256>,
    /// Result of the last `finish`.
    pub status: Option<String>,
    /// Whether the change has ended.
    pub ended: bool,
}

impl ChangeCourse {
    pub fn of(records: &[Record]) -> Self {
        let mut course = Self::default();
        course.follow(records);
        course
    }

    /// Adds the records that come next.
    fn follow(&mut self, records: &[Record]) {
        for record in records {
            let payload = &record.event.payload;
            let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
            let kind = record.event.event_type.as_str();
            if kind == IntentEvent::Judged.name() {
                self.status = text("status");
            }
            self.ended = [IntentEvent::Closed, IntentEvent::Refused]
                .map(IntentEvent::name)
                .contains(&kind);
            let named = payload.get(FILES).and_then(Value::as_object);
            for (name, digest) in named.into_iter().flatten() {
                let digest = digest.as_str().map(str::to_owned);
                if let Some(Ok(digest)) = digest.map(Sha256::try_from) {
                    self.files.insert(name.clone(), digest);
                }
            }
        }
    }

    /// The statement about a chain with this state that ends with `last`.
    fn state(&self, last: &Record) -> ChangeStatement {
        let subject = |(name, sha256): (&String, &Sha256)| Subject {
            name: name.clone(),
            digest: FileDigest {
                sha256: sha256.clone(),
            },
        };
        Statement {
            kind: StatementKind::V1,
            subject: self.files.iter().map(subject).collect(),
            predicate_type: PredicateType::Change,
            predicate: ChangePredicate {
                intent_id: last.event.run_id.clone(),
                status: self.status.clone(),
                ended: self.ended,
                ledger_head: LedgerHead {
                    seq: last.seq,
                    hash: last.hash.clone(),
                },
            },
        }
    }
}

/// `facts` with the digests of the files that belong to the record.
pub fn naming(mut facts: Value, files: &[(&str, String)]) -> Value {
    let files: BTreeMap<&str, &String> = files.iter().map(|(name, sha)| (*name, sha)).collect();
    if !files.is_empty() {
        facts[FILES] = json!(files);
    }
    facts
}

/// The digest of a document in its stored form.
pub fn digest(document: &Value) -> String {
    sha256(json::canonical(document).as_bytes())
}

/// The statement about a chain; `None` for an empty one.
pub fn state(records: &[Record]) -> Option<ChangeStatement> {
    let last = records.last()?;
    Some(ChangeCourse::of(records).state(last))
}

/// A statement in its canonical spelling, which is what is signed.
pub fn spelled(statement: &ChangeStatement) -> String {
    // Strings and lists of strings; serialising them cannot fail, and an empty text would not
    // parse.
    json::canonical(&serde_json::to_value(statement).unwrap_or_default())
}
