//! Verifies the evidence of a change from its bytes alone, with the three answers of a bundle.
//!
//! # Invariants
//!
//! - Every file is read once, so the bytes that were hashed are the bytes that were judged.
//! - No part of the statement is used before its signature is verified.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::{ChangeReport, Said};
use super::{AFTER, BEFORE, BLAST, ChangeCourse, ChangeStatement, INTENT, RECEIPT, TRAIL, spelled};
use crate::event::IntentEvent;
use crate::intent::Intent;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{ATTESTATION, CONTRACT, LEDGER, MANIFEST};
use provost_core::bundle::report::Sha256;
use provost_core::json;
use provost_core::path::RawPath;
use provost_core::record::{self, Head, Record};
use provost_engine::bundle::statement::{LedgerHead, PredicateType};
use provost_engine::bundle::verify::{Files, Finding, OpenedSeal, Signer, compare, open, words};

/// The files that a change leaves and a run does not.
const OURS: [&str; 6] = [INTENT, BEFORE, AFTER, RECEIPT, TRAIL, BLAST];

/// Whether `files` are the evidence of a change.
pub fn is_one(files: &dyn Files) -> bool {
    let names = files.names();
    let has = |name: &str| names.contains(&RawPath::new(name));
    OURS.into_iter().any(has) && ![CONTRACT, MANIFEST].into_iter().any(has)
}

/// A file as it was read, or the reason why it could not be.
type Read = Result<Vec<u8>, String>;

struct Evidence<'a> {
    files: BTreeMap<RawPath, Read>,
    trusted: &'a [PublicKey],
    want_key: Option<&'a PublicKey>,
}

/// `pin` is the known end of its chain, from elsewhere; the rest is as for a bundle.
pub fn verify(
    files: &dyn Files,
    trusted: &[PublicKey],
    pin: Option<&Head>,
    want_key: Option<&PublicKey>,
) -> ChangeReport {
    let read = |name: RawPath| {
        let bytes = files.read(&name);
        (name, bytes)
    };
    let evidence = Evidence {
        files: files.names().into_iter().map(read).collect(),
        trusted,
        want_key,
    };
    let mut findings = Vec::new();
    let records = evidence.chain(&mut findings);
    let (signer, statement) = evidence.seal(&mut findings);
    if let (Some(pin), Some(records)) = (pin.and_then(LedgerHead::of), &records) {
        findings.extend(compare(LEDGER, records, &pin, "the registry knows"));
    }
    let chain = records.as_deref();
    let held = Held::of(chain.unwrap_or_default(), statement.as_ref());
    let named = match (chain, &statement) {
        (None, Some(statement)) => &subjects(statement),
        (Some(_), _) | (None, None) => &held.course.files,
    };
    evidence.bytes(named, &mut findings);
    if let Some(records) = chain {
        evidence.agree(records, &mut findings);
    }
    let said = said(statement.as_ref(), chain, &held);
    if chain.is_some() {
        findings.extend(held.findings);
    }
    ChangeReport::of(said, signer, want_key, findings)
}

/// What the evidence says about itself: by the signed statement, or else by its chain.
fn said(statement: Option<&ChangeStatement>, records: Option<&[Record]>, held: &Held) -> Said {
    if let Some(ChangeStatement { predicate, .. }) = statement {
        return Said {
            intent_id: Some(predicate.intent_id.clone()),
            status: predicate.status.clone(),
            ended: predicate.ended,
            stated: held.is_sealed,
        };
    }
    let first = records.and_then(<[Record]>::first);
    Said {
        intent_id: first.map(|record| record.event.run_id.clone()),
        status: held.course.status.clone(),
        ended: held.course.ended,
        stated: false,
    }
}

fn subjects(statement: &ChangeStatement) -> BTreeMap<String, Sha256> {
    let one = |subject: &super::Subject<super::FileDigest>| {
        (subject.name.clone(), subject.digest.sha256.clone())
    };
    statement.subject.iter().map(one).collect()
}

/// A chain, compared with its signed statement.
struct Held {
    /// The state of the whole chain.
    course: ChangeCourse,
    /// Whether no record comes after the sealed end.
    is_sealed: bool,
    /// The differences.
    findings: Vec<Finding>,
}

impl Held {
    /// The chain reaches the head in the statement, and the statement follows from the chain up to
    /// there. A record after that is left by a crash before its seal, or was added by anyone with
    /// write access. No signature covers it, so evidence is missing.
    fn of(records: &[Record], statement: Option<&ChangeStatement>) -> Self {
        let Some(statement) = statement else {
            return Self {
                course: ChangeCourse::of(records),
                is_sealed: false,
                findings: Vec::new(),
            };
        };
        let sealed = &statement.predicate.ledger_head;
        let end = usize::try_from(sealed.seq.saturating_add(1)).unwrap_or(usize::MAX);
        let (covered, tail) = records.split_at(end.min(records.len()));
        let mut course = ChangeCourse::of(covered);
        let mut findings = compare(LEDGER, records, sealed, "the seal names");
        let said = covered.last().map(|last| course.state(last));
        if findings.is_empty() && said.as_ref() != Some(statement) {
            let problem = "the statement says something else than the chain";
            findings.push(Finding::altered(ATTESTATION, problem));
        }
        if findings.is_empty() && !tail.is_empty() {
            let problem = "continues after its sealed end: the seal of the last record is missing";
            findings.push(Finding::incomplete(LEDGER, problem));
        }
        course.follow(tail);
        Self {
            course,
            is_sealed: tail.is_empty(),
            findings,
        }
    }
}

impl Evidence<'_> {
    fn file(&self, name: &str) -> Option<&Read> {
        self.files.get(&RawPath::new(name))
    }

    /// The records, if they form a chain; otherwise a finding says why not.
    fn chain(&self, findings: &mut Vec<Finding>) -> Option<Vec<Record>> {
        let bytes = match self.file(LEDGER) {
            None => {
                findings.push(Finding::incomplete(LEDGER, "is missing"));
                return None;
            }
            Some(Err(problem)) => {
                findings.push(Finding::altered(LEDGER, problem));
                return None;
            }
            Some(Ok(bytes)) => bytes,
        };
        let chain = match record::read(bytes, Head::genesis()) {
            Ok(chain) => chain,
            Err(error) => {
                findings.push(Finding::altered(LEDGER, words(&error)));
                return None;
            }
        };
        if chain.whole < bytes.len() {
            findings.push(Finding::altered(
                LEDGER,
                "ends with a line that is no record",
            ));
        }
        match chain.records.first() {
            None => findings.push(Finding::incomplete(LEDGER, "has no record")),
            Some(first) => {
                let begins = [
                    IntentEvent::Declared,
                    IntentEvent::Queued,
                    IntentEvent::Refused,
                ];
                if !begins
                    .map(IntentEvent::name)
                    .contains(&first.event.event_type.as_str())
                {
                    let place = format!("{LEDGER} record 0");
                    findings.push(Finding::altered(place, "is not how a change begins"));
                }
                let foreign = |record: &&Record| record.event.run_id != first.event.run_id;
                if let Some(record) = chain.records.iter().find(foreign) {
                    let place = format!("{LEDGER} record {}", record.seq);
                    findings.push(Finding::altered(place, "belongs to another change"));
                }
            }
        }
        Some(chain.records)
    }

    /// The signer and the statement; with an unknown key the statement is only a claim.
    fn seal(&self, findings: &mut Vec<Finding>) -> (Signer, Option<ChangeStatement>) {
        let bytes = match self.file(ATTESTATION) {
            None => {
                let problem = "is missing: this change is not signed";
                findings.push(Finding::unsigned(ATTESTATION, problem));
                return (Signer::Unsigned, None);
            }
            Some(Err(problem)) => {
                findings.push(Finding::unsigned(ATTESTATION, problem));
                return (Signer::Unsigned, None);
            }
            Some(Ok(bytes)) => bytes,
        };
        let OpenedSeal {
            signer,
            payload,
            findings: found,
        } = open(ATTESTATION, bytes, self.trusted, self.want_key);
        findings.extend(found);
        let statement = payload.and_then(|payload| {
            let statement = json::parse_as::<ChangeStatement>(&payload).ok();
            statement.filter(|statement| {
                statement.predicate_type == PredicateType::Change
                    && spelled(statement).as_bytes() == payload.as_slice()
            })
        });
        if statement.is_none() && !matches!(signer, Signer::Unsigned) {
            let problem = "the statement is not one about a change";
            findings.push(Finding::altered(ATTESTATION, problem));
        }
        (signer, statement)
    }

    /// Every file has the digest that the chain names, and there is no other file.
    fn bytes(&self, named: &BTreeMap<String, Sha256>, findings: &mut Vec<Finding>) {
        for (name, want) in named {
            match self.file(name) {
                None => findings.push(Finding::incomplete(name, "is missing")),
                Some(Err(problem)) => findings.push(Finding::altered(name, problem)),
                Some(Ok(bytes)) if Sha256::of(bytes) == *want => {}
                Some(Ok(_)) => {
                    findings.push(Finding::altered(name, "is not what its record names"));
                }
            }
        }
        for name in [INTENT, BEFORE] {
            if !named.contains_key(name) {
                findings.push(Finding::incomplete(name, "is named by no record"));
            }
        }
        for name in self.files.keys() {
            let text = name.to_string();
            let beside = [LEDGER, ATTESTATION].contains(&text.as_str());
            if !beside && !named.contains_key(&text) && ![INTENT, BEFORE].contains(&text.as_str()) {
                findings.push(Finding::incomplete(text, "is named by no record"));
            }
        }
    }

    /// The documents are about the change that the chain is about.
    fn agree(&self, records: &[Record], findings: &mut Vec<Finding>) {
        let Some(first) = records.first() else { return };
        let intent_id = &first.event.run_id;
        let mut differs = |name: &str, problem: &str| {
            findings.push(Finding::altered(name, problem));
        };
        if let Some(Ok(bytes)) = self.file(INTENT) {
            match json::parse_as::<Intent>(bytes) {
                Err(error) => differs(INTENT, &format!("does not parse: {error}")),
                Ok(intent) => {
                    if intent.intent_id != *intent_id {
                        differs(INTENT, "is about another change");
                    }
                    let before = self.file(BEFORE).and_then(|file| file.as_ref().ok());
                    let fits = |bytes: &Vec<u8>| Sha256::of(bytes).as_str() == intent.report_digest;
                    if !before.is_none_or(fits) {
                        differs(BEFORE, "is not the analysis that the intent names");
                    }
                }
            }
        }
        let Some(Ok(bytes)) = self.file(RECEIPT) else {
            return;
        };
        let receipt: Value = match json::parse(bytes) {
            Ok(receipt) => receipt,
            Err(error) => return differs(RECEIPT, &format!("does not parse: {error}")),
        };
        if receipt["intent_id"].as_str() != Some(intent_id) {
            differs(RECEIPT, "is about another change");
        }
    }
}
