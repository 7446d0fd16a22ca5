//! Repeats every decision: the facts in the ledger must lead to the verdicts in the ledger.
//!
//! The gates are pure functions, so a verifier needs neither repository nor sandbox to run them
//! again. A ledger of another version is only folded, because its rules may differ.

use super::FIRST_EVENT;
use super::Finding;
use super::read::{Bundle, LEDGER};
use provost_core::bundle::layout::BundleFormat;
use provost_core::record::{Chain, Record};
use provost_core::run::fact::{Fact, Judgement, Violation, Withheld};
use provost_core::run::{Next, State};
use provost_core::verdict::Verdict;

/// The run, replayed from its ledger.
#[derive(Debug, Default)]
pub struct Course {
    /// The state after the last valid record.
    pub(super) last: Option<State>,
    /// Whether all records are valid, so that `last` is the final state.
    is_whole: bool,
    /// What the bundle leaves out because it holds a secret. Every attempt is captured anew; the
    /// last one counts.
    pub(super) withheld: Withheld,
    /// The bundle format, if this program is too old for it.
    pub(super) newer: Option<u64>,
    findings: Vec<Finding>,
}

impl Course {
    /// The final state of the run, if the whole ledger is valid.
    pub(super) fn end(&self) -> Option<&State> {
        self.last.as_ref().filter(|_| self.is_whole)
    }

    /// Folds a ledger, and repeats every decision in it.
    pub(super) fn of(ledger: Option<&Chain>) -> Self {
        let mut course = Self::default();
        let records = ledger.map_or(&[][..], |chain| &chain.records);
        let Some((first, rest)) = records.split_first() else {
            // Another check reports it as missing.
            return course;
        };
        match State::fold(std::slice::from_ref(first)) {
            Ok(state) => course.is_whole = course.follow(state, rest),
            Err(_) if newer(first).is_some() => course.newer = newer(first),
            Err(error) => course.findings = vec![Finding::altered(LEDGER, error.to_string())],
        }
        course
    }

    /// Whether all of `records` are valid after `state`.
    fn follow(&mut self, mut state: State, records: &[Record]) -> bool {
        let same_rules = state.opened.version == env!("CARGO_PKG_VERSION");
        let stranger = || "belongs to another run".to_owned();
        for record in records {
            let place = || format!("{LEDGER} record {}", record.seq);
            let problem = match Fact::of(&record.event, record.seq) {
                Err(error) => Err(error.to_string()),
                Ok(fact) => {
                    if let Some(problem) = contradiction(&state, &fact).filter(|_| same_rules) {
                        self.findings.push(Finding::altered(place(), problem));
                    }
                    if let Fact::Captured(captured) = &fact {
                        self.withheld = captured.withheld.clone();
                    }
                    state.apply(fact).map_err(|misplaced| misplaced.to_string())
                }
            };
            let is_ours = record.event.run_id == state.names.run_id;
            let problem = problem.and(is_ours.then_some(()).ok_or_else(stranger));
            if let Err(problem) = problem {
                self.findings.push(Finding::altered(place(), problem));
                self.last = Some(state);
                return false;
            }
            state.latest.clone_from(&record.event.ts);
        }
        self.last = Some(state);
        true
    }
}

/// The bundle format that the first record names, if it is newer than this program.
fn newer(first: &Record) -> Option<u64> {
    let format = first.event.payload.get("format")?.as_u64()?;
    let newest = u64::from(u32::from(BundleFormat::NEWEST));
    (first.event.event_type == FIRST_EVENT && format > newest).then_some(format)
}

/// The ledger is a valid sequence of facts, and every verdict follows from the facts before it.
pub(super) fn decisions(bundle: &Bundle<'_>) -> Vec<Finding> {
    let mut findings = bundle.course.findings.clone();
    if let Some(state) = bundle.course.end() {
        findings.extend(agree_with_statement(bundle, state));
    }
    findings
}

/// What is wrong with `fact`, if it is a decision that does not follow from the facts before it.
fn contradiction(state: &State, fact: &Fact) -> Option<String> {
    let same = |one: &Verdict, other: &Verdict| (one.allow, one.code) == (other.allow, other.code);
    match fact {
        Fact::Passed(Judgement { gate, verdict })
        | Fact::Refused(Judgement { gate, verdict })
        | Fact::Violation(Violation::Gate(Judgement { gate, verdict })) => {
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

/// The statement matches the final state of the ledger.
fn agree_with_statement(bundle: &Bundle<'_>, state: &State) -> Vec<Finding> {
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
        wrong("has another verdict than the seal names");
    }
    if state.opened.contract_sha256 != predicate.contract_sha256.as_str() {
        wrong("is about another contract than the seal names");
    }
    if state.opened.work != predicate.work {
        wrong("is about other work than the seal names");
    }
    if state.opened.base_tree != predicate.base_tree
        || state.captured.as_ref().map(|captured| &captured.tree)
            != predicate.candidate_tree.as_ref()
    {
        wrong("is about another tree than the seal names");
    }
    findings
}
