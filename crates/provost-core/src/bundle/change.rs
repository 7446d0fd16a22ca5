//! Seals the evidence of a controlled change: the chain of its intent, and every file it names.
//!
//! A record that goes with files names their digests, so the chain says what each of them must be,
//! and the statement signs the end of the chain. Each record is followed by a new seal.
//!
//! # Invariants
//!
//! - What the statement says follows from the chain alone; no file is hashed again to seal it.
//! - A later record about a file stands for it: evidence is what the change came to last.

mod report;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::Sha256;
use super::sealed::FileDigest;
use super::statement::{LedgerHead, PredicateType, Statement, StatementKind, Subject};
use crate::intent::course::Happening;
use crate::json;
use crate::object::sha256;
use crate::record::Record;

pub use report::ChangeReport;
pub use verify::{is_one, verify};

/// What was declared.
pub const INTENT: &str = "intent.json";
/// The analysis that the change began from.
pub const BEFORE: &str = "before.json";
/// The analysis from after the change.
pub const AFTER: &str = "after.json";
/// What the change came to.
pub const RECEIPT: &str = "receipt.json";
/// What it touched.
pub const TRAIL: &str = "trail.json";
/// What the analysis it began from saw of a baseline.
pub const BASELINE: &str = "baseline.json";
/// How far what was declared reaches.
pub const BLAST: &str = "blast.json";

/// The field of a record that names files.
const FILES: &str = "files";

/// What is said about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePredicate {
    pub intent_id: String,
    /// What the last finish came to; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether the change is over.
    pub ended: bool,
    /// Where its chain ends.
    pub ledger_head: LedgerHead,
}

/// The statement about the files of a change.
pub type ChangeStatement = Statement<FileDigest, ChangePredicate>;

/// What the chain of an intent says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// The digest that each file of the evidence must have.
    pub files: BTreeMap<String, Sha256>,
    /// What the last finish came to.
    pub status: Option<String>,
    /// Whether the change is over.
    pub ended: bool,
}

impl Course {
    /// Folds the records of a chain.
    pub fn of(records: &[Record]) -> Self {
        let mut course = Self::default();
        course.follow(records);
        course
    }

    /// Goes on with the records that come next.
    fn follow(&mut self, records: &[Record]) {
        for record in records {
            let payload = &record.event.payload;
            let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
            let kind = record.event.event_type.as_str();
            if kind == Happening::Judged.name() {
                self.status = text("status");
            }
            self.ended = [Happening::Closed, Happening::Refused]
                .map(Happening::name)
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

    /// The statement about a chain that came to this and ends with `last`.
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

/// The facts of a record, with the files that go with it.
pub fn naming(mut facts: Value, files: &[(&str, String)]) -> Value {
    let files: BTreeMap<&str, &String> = files.iter().map(|(name, sha)| (*name, sha)).collect();
    if !files.is_empty() {
        facts[FILES] = json!(files);
    }
    facts
}

/// The digest of a document as it is kept.
pub fn digest(document: &Value) -> String {
    sha256(json::canonical(document).as_bytes())
}

/// The statement about a chain; nothing for an empty one.
pub fn state(records: &[Record]) -> Option<ChangeStatement> {
    let last = records.last()?;
    Some(Course::of(records).state(last))
}

/// A statement in the one spelling that is signed.
pub fn spelled(statement: &ChangeStatement) -> String {
    // Texts and lists of texts; serialising them cannot fail, and nothing would parse.
    json::canonical(&serde_json::to_value(statement).unwrap_or_default())
}
