//! Decides everything again: what the ledger holds as facts must lead to what it holds as verdicts.
//!
//! The gates are pure functions, so a reader needs neither repository nor box to ask them again. A
//! ledger of another version is only folded, because its rules may have been others.

use super::read::{Bundle, LEDGER};
use super::report::Finding;
use crate::run::fact::{Fact, Judgement};
use crate::run::{Next, State};
use crate::verdict::Verdict;

/// The ledger is the course of a run, and every verdict in it follows from the facts before it.
pub(super) fn decisions(bundle: &Bundle<'_>) -> Vec<Finding> {
    let records = match &bundle.ledger {
        Some(chain) if !chain.records.is_empty() => &chain.records,
        // Another check misses it.
        _ => return Vec::new(),
    };
    let mut findings = Vec::new();
    let mut state = match State::fold(&records[..1]) {
        Ok(state) => state,
        Err(error) => return vec![Finding::altered(LEDGER, error.to_string())],
    };
    let same_rules = state.opened.version == env!("CARGO_PKG_VERSION");
    for record in &records[1..] {
        let place = || format!("{LEDGER} record {}", record.seq);
        let fact = match Fact::of(&record.event, record.seq) {
            Ok(fact) => fact,
            Err(error) => {
                findings.push(Finding::altered(place(), error.to_string()));
                return findings;
            }
        };
        if let Some(problem) = contradiction(&state, &fact).filter(|_| same_rules) {
            findings.push(Finding::altered(place(), problem));
        }
        if let Err(misplaced) = state.apply(fact) {
            findings.push(Finding::altered(place(), misplaced.to_string()));
            return findings;
        }
    }
    findings.extend(agree_with_statement(bundle, state));
    findings
}

/// What is wrong with `fact`, if it is a decision that does not follow from what came before.
fn contradiction(state: &State, fact: &Fact) -> Option<String> {
    let same = |one: &Verdict, other: &Verdict| (one.allow, one.code) == (other.allow, other.code);
    match fact {
        Fact::Passed(Judgement { gate, verdict })
        | Fact::Refused(Judgement { gate, verdict })
        | Fact::Violation(Judgement { gate, verdict }) => {
            let again = state.judge(*gate);
            (!same(&again, verdict)).then(|| {
                format!(
                    "the {} gate says {} to the same facts",
                    gate.name(),
                    again.code
                )
            })
        }
        Fact::Finished { verdict } => match state.next() {
            Next::Finish(again) if same(&again, verdict) => None,
            _ => Some("the run was not at this end".to_owned()),
        },
        _ => None,
    }
}

/// The statement says what the ledger came to.
fn agree_with_statement(bundle: &Bundle<'_>, state: State) -> Vec<Finding> {
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut wrong = |what: &str| findings.push(Finding::altered(LEDGER, what));
    let verdict = state
        .finished
        .as_ref()
        .map(|verdict| (verdict.allow, verdict.code));
    if verdict != Some((predicate.verdict.allow, predicate.verdict.code)) {
        wrong("came to another verdict than the seal names");
    }
    if state.opened.contract_sha256 != predicate.contract_sha256.as_str() {
        wrong("is about another contract than the seal names");
    }
    if state.opened.base_tree != predicate.base_tree
        || state.captured.map(|captured| captured.tree) != predicate.candidate_tree
    {
        wrong("is about another tree than the seal names");
    }
    findings
}
