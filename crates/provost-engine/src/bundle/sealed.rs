//! Seals a directory of files that is not the bundle of a run: a planner's request and answer, or
//! the result of a chain.
//!
//! # Invariants
//!
//! - The statement names every file of the directory except itself and the driver's lock, and has
//!   one spelling, so that a change of any byte is detected.
//! - No part of a statement is used before its signature is verified. Files that differ from their
//!   own statement were altered, whatever key signed it.

use std::collections::BTreeMap;

use provost_evidence::seal::{Differences, Seal};
use serde::{Deserialize, Serialize};

use super::statement::{PredicateType, SealedVerdict, Statement, StatementKind, Subject};
use super::verify::{FIRST_EVENT, Files};
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{ATTESTATION, DRIVER_LOCK, LEDGER, MANIFEST, REQUEST};
use provost_core::bundle::report::{Sha256, Time};
use provost_core::code::Code;
use provost_core::json;
use provost_core::path::RawPath;
use provost_core::record::{self, Head};
use provost_core::verdict::{FoundAt, Verdict};

pub const SEAL: &str = "record.dsse.json";

/// The subject of a sealed directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A request became a contract, or did not.
    Plan,
    /// A contract was split into a chain of smaller ones, or was not.
    Split,
    Chain,
    /// One request with its plan, its parts and the judged whole.
    Case,
    /// A contract was refused before there was a run.
    Refused,
}

/// The signed facts about the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordPredicate {
    pub kind: RecordKind,
    /// The id of the subject.
    pub id: String,
    pub verdict: SealedVerdict,
    pub sealed_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDigest {
    pub sha256: Sha256,
}

pub type RecordStatement = Statement<FileDigest, RecordPredicate>;

impl RecordPredicate {
    /// The statement about `files`, each a name and its digest, in the canonical spelling that is
    /// signed.
    pub fn state(self, files: impl IntoIterator<Item = (String, Sha256)>) -> String {
        let subject = |(name, sha256)| Subject {
            name,
            digest: FileDigest { sha256 },
        };
        let files: BTreeMap<String, Sha256> = files
            .into_iter()
            .filter(|(name, _)| !is_outside(name))
            .collect();
        let statement: RecordStatement = Statement {
            kind: StatementKind::V1,
            subject: files.into_iter().map(subject).collect(),
            predicate_type: PredicateType::Record,
            predicate: self,
        };
        // Strings and lists of strings; serialising them cannot fail, and an empty text would not
        // parse.
        json::canonical(&serde_json::to_value(statement).unwrap_or_default())
    }
}

/// Whether the statement does not cover the file `name`.
fn is_outside(name: &str) -> bool {
    name == SEAL || name == DRIVER_LOCK
}

/// Whether `files` are a directory of this kind, with its seal or without.
///
/// Without the seal, the files decide: a request, or a ledger that does not begin as that of a run.
pub fn is_one(files: &dyn Files) -> bool {
    let names = files.names();
    let has = |name: &str| names.contains(&RawPath::new(name));
    if has(SEAL) {
        return true;
    }
    if [MANIFEST, ATTESTATION].into_iter().any(has) {
        return false;
    }
    let ledger = files.read(&RawPath::new(LEDGER)).unwrap_or_default();
    let first = record::read(&ledger, Head::genesis()).ok();
    let first = first.and_then(|chain| chain.records.into_iter().next());
    match first {
        Some(first) => first.event.event_type != FIRST_EVENT,
        None => has(REQUEST),
    }
}

/// Verifies that `files` are exactly what one of `keys` signed.
pub fn verify(files: &dyn Files, keys: &[PublicKey]) -> Verdict {
    let deny = Verdict::deny;
    let envelope = match files.read(&RawPath::new(SEAL)) {
        Ok(envelope) => envelope,
        Err(why) => {
            let reason = format!("`{SEAL}` {why}, so it is unknown whether the files are intact");
            return deny(Code::EvidenceIncomplete, reason);
        }
    };
    let Seal {
        payload,
        signed,
        exact,
    } = match Seal::open(&envelope, keys) {
        Ok(seal) => seal,
        Err(error) => return deny(Code::SignatureInvalid, error.to_string()),
    };
    if !exact {
        let reason = format!("`{SEAL}` is not spelled as it was sealed");
        return deny(Code::EvidenceAltered, reason);
    }
    let statement: RecordStatement = match json::parse_as(&payload) {
        Ok(statement) => statement,
        Err(error) => return deny(Code::SignatureInvalid, error.to_string()),
    };
    if statement.predicate_type != PredicateType::Record {
        let reason = "the statement is about something else".to_owned();
        return deny(Code::SignatureInvalid, reason);
    }
    let named = statement.subject.iter();
    let named = named.map(|one| (one.name.as_str(), one.digest.sha256.as_str()));
    let differences = Differences::between(files, &named.collect(), is_outside);
    let code = match (
        differences.altered.is_empty(),
        differences.missing.is_empty(),
    ) {
        (false, _) => Some(Code::EvidenceAltered),
        (true, false) => Some(Code::EvidenceIncomplete),
        (true, true) => None,
    };
    let rows = differences.rows();
    let findings: Vec<FoundAt<'_>> = rows
        .map(|(path, problem)| FoundAt { path, problem })
        .collect();
    let RecordPredicate { kind, id, .. } = &statement.predicate;
    match (code, signed) {
        (None, Err(error)) => deny(Code::KeyUnknown, error.to_string()),
        (None, Ok(key)) => {
            Verdict::allow(format!("{id} is as it was sealed, by {key}")).with(SealedRecord {
                statement: &statement,
            })
        }
        (Some(code), _) => {
            let first = findings.first();
            let first = first.map(|FoundAt { path, problem }| format!("{path}: {problem}"));
            deny(code, first.unwrap_or_default()).with(AlteredRecord {
                kind: *kind,
                id,
                findings,
            })
        }
    }
}

#[derive(Serialize)]
struct SealedRecord<'a> {
    statement: &'a RecordStatement,
}

#[derive(Serialize)]
struct AlteredRecord<'a> {
    kind: RecordKind,
    id: &'a str,
    findings: Vec<FoundAt<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_core::bundle::dsse::{self, Envelope};
    use provost_core::bundle::key::SigningKey;
    use provost_core::object::sha256;

    fn key() -> SigningKey {
        SigningKey::from_seed(&[7; 32], "").unwrap()
    }

    fn sealed() -> BTreeMap<RawPath, Vec<u8>> {
        let names = ["answer.json", "request.json"];
        let mut files: BTreeMap<RawPath, Vec<u8>> = names
            .iter()
            .map(|name| (RawPath::new(*name), name.as_bytes().to_vec()))
            .collect();
        let predicate = RecordPredicate {
            kind: RecordKind::Plan,
            id: "plan_1".to_owned(),
            verdict: SealedVerdict {
                allow: true,
                code: Code::Ok,
            },
            sealed_at: Time::try_from("2026-01-01T00:00:00Z".to_owned()).unwrap(),
        };
        let digests = names.iter().map(|name| {
            let digest = Sha256::try_from(sha256(name.as_bytes())).unwrap();
            ((*name).to_owned(), digest)
        });
        let envelope = dsse::sign(predicate.state(digests).as_bytes(), &key());
        files.insert(RawPath::new(SEAL), envelope.render().into_bytes());
        files
    }

    #[test]
    fn any_change_of_a_sealed_directory_is_seen_and_named() {
        type Change = fn(&mut BTreeMap<RawPath, Vec<u8>>);
        let keys = [key().public()];
        let whole = sealed();
        assert_eq!(verify(&whole, &keys).code, Code::Ok);
        let cases: [(&str, Change, Code); 7] = [
            (
                "a blank after the seal",
                |files| files.get_mut(&RawPath::new(SEAL)).unwrap().push(b' '),
                Code::EvidenceAltered,
            ),
            (
                "a flipped byte",
                |files| files.get_mut(&RawPath::new("answer.json")).unwrap()[0] ^= 1,
                Code::EvidenceAltered,
            ),
            (
                "a file less",
                |files| drop(files.remove(&RawPath::new("request.json"))),
                Code::EvidenceIncomplete,
            ),
            (
                "a file more",
                |files| drop(files.insert(RawPath::new("more"), Vec::new())),
                Code::EvidenceAltered,
            ),
            (
                "no seal",
                |files| drop(files.remove(&RawPath::new(SEAL))),
                Code::EvidenceIncomplete,
            ),
            (
                "a seal that is none",
                |files| drop(files.insert(RawPath::new(SEAL), b"{}".to_vec())),
                Code::SignatureInvalid,
            ),
            (
                "a lock, which is not sealed",
                |files| drop(files.insert(RawPath::new(DRIVER_LOCK), Vec::new())),
                Code::Ok,
            ),
        ];
        for (name, change, want) in cases {
            let mut files = whole.clone();
            change(&mut files);
            assert_eq!(verify(&files, &keys).code, want, "{name}");
            let unknown = if want == Code::Ok {
                Code::KeyUnknown
            } else {
                want
            };
            assert_eq!(
                verify(&files, &[]).code,
                unknown,
                "{name}, by an unknown key"
            );
        }
        assert_eq!(verify(&whole, &[]).code, Code::KeyUnknown);
    }

    #[test]
    fn a_directory_of_this_kind_is_known_without_its_seal() {
        let ledger = |kind: &str| {
            let event = record::Event {
                ts: "2026-01-01T00:00:00Z".to_owned(),
                level: record::Level::Info,
                event_type: kind.to_owned(),
                run_id: "run_1".to_owned(),
                task_id: None,
                attempt: None,
                payload: serde_json::Map::new(),
                trace_id: "trace".to_owned(),
            };
            let line = Head::genesis().append(event).line() + "\n";
            BTreeMap::from([(RawPath::new(LEDGER), line.into_bytes())])
        };
        let mut plan = sealed();
        plan.remove(&RawPath::new(SEAL));
        assert!(is_one(&plan));
        let verdict = verify(&plan, &[key().public()]);
        assert_eq!(verdict.code, Code::EvidenceIncomplete);
        assert!(verdict.reason.contains("unknown"), "{verdict:?}");
        assert!(is_one(&ledger("CHAIN_OPENED")));
        let mut run = ledger(FIRST_EVENT);
        assert!(!is_one(&run));
        run.insert(RawPath::new(REQUEST), Vec::new());
        assert!(!is_one(&run));
        assert!(!is_one(&BTreeMap::new()));
    }

    #[test]
    fn a_seal_names_the_key_that_signed_and_no_other() {
        type Change = fn(&mut Envelope);
        let changes: [Change; 2] = [
            |seal| "0".clone_into(&mut seal.signatures[0].keyid),
            |seal| seal.signatures.push(seal.signatures[0].clone()),
        ];
        for change in changes {
            let mut files = sealed();
            let seal = files.get_mut(&RawPath::new(SEAL)).unwrap();
            let mut envelope = Envelope::parse(seal).unwrap();
            change(&mut envelope);
            *seal = envelope.render().into_bytes();
            let verdict = verify(&files, &[key().public()]);
            assert_eq!(verdict.code, Code::EvidenceAltered, "{verdict:?}");
        }
    }
}
