//! Follows the ledger, and what was written after the seal.

use super::read::{AFTER, ATTESTATION, Bundle, LEDGER, MANIFEST};
use super::report::{Finding, State};
use super::{AFTER_STATEMENT, FINAL_EVENT, seal};
use crate::bundle::dsse::Envelope;
use crate::bundle::statement::{LandingStatement, LedgerHead, RunStatement};
use crate::json;
use crate::object::Oid;
use crate::record::{self, ChainError, Head, Record};
use crate::wording::counted;

/// How far the run came.
pub(super) fn state(bundle: &Bundle<'_>) -> State {
    let sealed = [ATTESTATION, MANIFEST].map(|name| bundle.file(name).is_some());
    let Some(chain) = &bundle.ledger else {
        // A ledger that is no chain is a finding; what the run left says how far it came.
        return match (sealed, bundle.file(LEDGER)) {
            ([true, true], Some(_)) => State::Sealed,
            ([false, false], Some(_)) => State::Running,
            _ => State::TailMissing,
        };
    };
    if is_short(bundle, &chain.head) {
        return State::TailMissing;
    }
    let ended = chain.records.last().is_some_and(is_final);
    match (ended, sealed) {
        (true, [true, true]) => State::Sealed,
        (true, _) => State::Unsealed,
        (false, [false, false]) if !chain.records.is_empty() => State::Running,
        (false, _) => State::TailMissing,
    }
}

fn is_final(record: &Record) -> bool {
    record.event.event_type == FINAL_EVENT
}

/// Whether the ledger ends before the place where it is known to have ended.
fn is_short(bundle: &Bundle<'_>, head: &Head) -> bool {
    let pinned = bundle.pin.map(|pin| pin.next);
    let sealed = bundle
        .predicate()
        .map(|predicate| predicate.ledger_head.seq.saturating_add(1));
    pinned.max(sealed).is_some_and(|next| head.next < next)
}

/// The ledger is a chain from its first line to its last, and of one run.
pub(super) fn chain(bundle: &Bundle<'_>) -> Vec<Finding> {
    let bytes = match bundle.file(LEDGER) {
        None => return vec![Finding::incomplete(LEDGER, "is missing")],
        Some(Err(problem)) => return vec![Finding::altered(LEDGER, problem)],
        Some(Ok(file)) => &file.bytes,
    };
    let Some(chain) = &bundle.ledger else {
        // Why it is no chain was said when it was read.
        return Vec::new();
    };
    let mut findings = Vec::new();
    if chain.records.is_empty() {
        findings.push(Finding::incomplete(LEDGER, "has no record"));
    }
    if chain.whole < bytes.len() && chain.records.last().is_some_and(is_final) {
        findings.push(Finding::altered(LEDGER, "goes on after its final record"));
    }
    if let Some(early) = chain.records.iter().position(is_final)
        && early + 1 < chain.records.len()
    {
        let place = format!("{LEDGER} record {early}");
        findings.push(Finding::altered(place, "is final, and records follow it"));
    }
    let first = chain.records.first().map(|record| &record.event.run_id);
    let foreign = |record: &&Record| Some(&record.event.run_id) != first;
    if let Some(record) = chain.records.iter().find(foreign) {
        let place = format!("{LEDGER} record {}", record.seq);
        findings.push(Finding::altered(place, "belongs to another run"));
    }
    findings
}

/// The ledger continues what is known of it from elsewhere.
///
/// The pin is written after the record, so it may lag behind the ledger; it never leads.
pub(super) fn pin(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(pin), Some(chain)) = (bundle.pin, &bundle.ledger) else {
        return Vec::new();
    };
    let Some(last) = LedgerHead::of(pin) else {
        return Vec::new();
    };
    compare(&chain.records, &last, "the registry knows")
}

/// The ledger ends where the statement says.
pub(super) fn head(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(chain) = &bundle.ledger else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(predicate) = bundle.predicate() {
        let sealed = &predicate.ledger_head;
        findings = compare(&chain.records, sealed, "the seal names");
        if chain.head.next > sealed.seq.saturating_add(1) {
            findings.push(Finding::altered(LEDGER, "goes on after its sealed end"));
        }
    }
    if findings.is_empty() && !chain.records.last().is_some_and(is_final) {
        findings.push(Finding::incomplete(LEDGER, "its final record is missing"));
    }
    findings
}

/// Whether `records` reach `known` and have its hash there.
fn compare(records: &[Record], known: &LedgerHead, who: &str) -> Vec<Finding> {
    let at = usize::try_from(known.seq)
        .ok()
        .and_then(|at| records.get(at));
    match at {
        Some(record) if record.hash == known.hash => Vec::new(),
        Some(_) => {
            let place = format!("{LEDGER} record {}", known.seq);
            vec![Finding::altered(place, format!("is not the record {who}"))]
        }
        None => {
            let count = counted(records.len(), "record");
            let problem = format!(
                "its tail is missing: it has {count}, {who} record {}",
                known.seq
            );
            vec![Finding::incomplete(LEDGER, problem)]
        }
    }
}

/// What was written after the seal begins at the sealed head, and its statements hold.
pub(super) fn after(bundle: &Bundle<'_>) -> Vec<Finding> {
    let bytes = match bundle.file(AFTER) {
        None => return Vec::new(),
        Some(Err(problem)) => return vec![Finding::altered(AFTER, problem)],
        Some(Ok(file)) => &file.bytes,
    };
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let sealed = &predicate.ledger_head;
    let chain = match record::read(bytes, Head::after(&sealed.hash)) {
        Ok(chain) => chain,
        Err(error) => return vec![Finding::altered(AFTER, words(&error))],
    };
    let mut findings = Vec::new();
    if chain.whole < bytes.len() {
        findings.push(Finding::incomplete(AFTER, "its last line has no end"));
    }
    let mut newest = predicate
        .candidate_tree
        .clone()
        .filter(|_| predicate.verdict.allow);
    for record in &chain.records {
        let place = format!("{AFTER} record {}", record.seq);
        if record.event.run_id != predicate.run_id {
            findings.push(Finding::altered(&place, "belongs to another run"));
        }
        if let Some(value) = record.event.payload.get(AFTER_STATEMENT) {
            findings.extend(later_statement(bundle, value, &place, &mut newest));
        }
    }
    findings
}

/// A statement made after the seal: a newer candidate, or a landing of the newest.
fn later_statement(
    bundle: &Bundle<'_>,
    value: &serde_json::Value,
    place: &str,
    newest: &mut Option<Oid>,
) -> Vec<Finding> {
    let altered = |problem: &str| vec![Finding::altered(place, problem)];
    let envelope: Envelope = match json::from_value(value.clone()) {
        Ok(envelope) => envelope,
        Err(error) => return altered(&format!("its statement does not parse: {error}")),
    };
    let examined = seal::examine(&envelope, bundle);
    let mut findings: Vec<Finding> = examined.finding.into_iter().collect();
    for finding in &mut findings {
        place.clone_into(&mut finding.path);
    }
    let (Some(payload), Some(sealed)) = (examined.payload, bundle.predicate()) else {
        return findings;
    };
    if let Ok(landing) = LandingStatement::parse(&payload) {
        let landed = &landing.predicate;
        if landed.run_id != sealed.run_id || landed.sealed_head != sealed.ledger_head {
            findings.extend(altered("its landing is of another run"));
        }
        if landing.predicate.clone().state(landing_commit(&landing)) != landing {
            findings.extend(altered("its landing is not one commit"));
        }
        if newest.as_ref() != Some(&landed.tree) {
            findings.extend(altered(
                "its landing is not the tree that was accepted last",
            ));
        }
    } else if let Ok(again) = RunStatement::parse(&payload) {
        let newer = &again.predicate;
        let same = newer.run_id == sealed.run_id
            && newer.contract_sha256 == sealed.contract_sha256
            && newer.ledger_head == sealed.ledger_head;
        if !same || again.predicate.clone().state() != again {
            findings.extend(altered("its newer candidate is of another run"));
        }
        *newest = newer.candidate_tree.clone().filter(|_| newer.verdict.allow);
    } else {
        findings.extend(altered(
            "its statement is neither a landing nor a newer candidate",
        ));
    }
    findings
}

/// The commit a landing is about; of none or several, one that makes the comparison fail.
fn landing_commit(landing: &LandingStatement) -> Oid {
    let commit = landing
        .subject
        .first()
        .map(|one| one.digest.git_commit.clone());
    commit.unwrap_or_else(|| landing.predicate.parent.clone())
}

pub(super) fn words(error: &ChainError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
