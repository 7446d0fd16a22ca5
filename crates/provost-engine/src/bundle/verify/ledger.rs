//! Checks the ledger.

use provost_evidence::verification::{Finding, compare};

use super::FINAL_EVENT;
use super::read::{ATTESTATION, Bundle, LEDGER, MANIFEST};
use super::report::State;
use crate::bundle::statement::LedgerHead;
use provost_core::bundle::report::RunStatus;
use provost_core::record::{Head, Record};

/// The state of the run.
pub(super) fn state(bundle: &Bundle<'_>) -> State {
    let manifest = bundle.manifest.as_ref();
    // A run has a manifest from its start, which seals nothing.
    let begun = manifest.is_some_and(|manifest| manifest.status == RunStatus::Running);
    let sealed = [
        bundle.file(ATTESTATION).is_some(),
        bundle.file(MANIFEST).is_some() && !begun,
    ];
    let Some(chain) = &bundle.ledger else {
        // A broken chain is a finding; the files of the run show how far it came.
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

/// Whether the ledger ends before its known end.
fn is_short(bundle: &Bundle<'_>, head: &Head) -> bool {
    let pinned = bundle.pins.ledger.as_ref().map(|pin| pin.next);
    let sealed = bundle
        .predicate()
        .map(|predicate| predicate.ledger_head.seq.saturating_add(1));
    pinned.max(sealed).is_some_and(|next| head.next < next)
}

/// The ledger is one chain from its first line to its last, of one run.
pub(super) fn chain(bundle: &Bundle<'_>) -> Vec<Finding> {
    let bytes = match bundle.file(LEDGER) {
        None => return vec![Finding::incomplete(LEDGER, "is missing")],
        Some(Err(problem)) => return vec![Finding::altered(LEDGER, problem)],
        Some(Ok(file)) => &file.bytes,
    };
    let Some(chain) = &bundle.ledger else {
        // Reading it already reported why it is not a chain.
        return Vec::new();
    };
    let mut findings = Vec::new();
    if chain.records.is_empty() {
        findings.push(Finding::incomplete(LEDGER, "has no record"));
    }
    if chain.whole < bytes.len() && chain.records.last().is_some_and(is_final) {
        findings.push(Finding::altered(LEDGER, "continues after its final record"));
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

/// The ledger continues from its pinned head.
///
/// The pin is written after the record, so it may lag behind the ledger; it never leads.
pub(super) fn pin(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(pin), Some(chain)) = (&bundle.pins.ledger, &bundle.ledger) else {
        return Vec::new();
    };
    let Some(last) = LedgerHead::of(pin) else {
        return Vec::new();
    };
    compare(LEDGER, &chain.records, &last, "the registry knows")
}

/// The ledger ends where the statement says.
pub(super) fn head(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(chain) = &bundle.ledger else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(predicate) = bundle.predicate() {
        let sealed = &predicate.ledger_head;
        findings = compare(LEDGER, &chain.records, sealed, "the seal names");
        if chain.head.next > sealed.seq.saturating_add(1) {
            findings.push(Finding::altered(LEDGER, "continues after its sealed end"));
        }
    }
    if findings.is_empty() && !chain.records.last().is_some_and(is_final) {
        findings.push(Finding::incomplete(LEDGER, "its final record is missing"));
    }
    findings
}
