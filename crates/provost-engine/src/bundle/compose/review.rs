//! Writes the review report, also if there was no review.

use super::facts::{ReviewFacts, open};
use super::{ComposeError, Composer, time};
use provost_core::bundle::layout::PATCH;
use provost_core::bundle::report::{
    GateResult, Judged, ReviewReport, ReviewVerdict, Reviewer, ReviewerRole, ScopeCheck,
};
use provost_core::contract::role::RunnerKind;
use provost_core::run::fact::ReviewRun;
use provost_core::run::{Gate, State};

/// The reviewer's id if there was no review.
const NO_REVIEWER: &str = "none";

/// What the ledger says about the review, in the form that every report uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bundle) struct Said {
    pub(in crate::bundle) verdict: ReviewVerdict,
    pub(in crate::bundle) agent_id: String,
    pub(in crate::bundle) summary: String,
    pub(in crate::bundle) passed: bool,
}

impl Said {
    pub(in crate::bundle) fn of(state: &State) -> Self {
        let gate = state.gates.get(&Gate::Review);
        let reviewer = state.opened.review.as_ref();
        let report = state.review_report();
        let summary = match (&report, reviewer, gate) {
            (Some(report), ..) => report.summary.clone(),
            (None, Some(_), Some(verdict)) => format!("no review that counts: {}", verdict.reason),
            (None, Some(_), None) => "not reviewed: the run did not get that far".to_owned(),
            (None, None, _) => "not reviewed: the run has no reviewer".to_owned(),
        };
        let agent_id = reviewer.filter(|_| state.reviewed.is_some());
        Self {
            // Without a valid report nothing passes.
            verdict: report.map_or(ReviewVerdict::Blocked, |report| report.verdict),
            agent_id: agent_id.map_or(NO_REVIEWER.to_owned(), |reviewer| reviewer.name.clone()),
            summary,
            passed: gate.is_some_and(|verdict| verdict.allow),
        }
    }
}

impl Composer<'_> {
    pub(super) fn review_gate(&self) -> GateResult {
        if self.state.opened.review.is_some() {
            return self.gate(Gate::Review);
        }
        GateResult::unasked("not reviewed: the run has no reviewer")
    }

    pub(super) fn review_report(&self) -> Result<ReviewReport, ComposeError> {
        let state = self.state;
        let said = Said::of(state);
        let reviewed = state.reviewed.as_ref();
        let report = state.review_report();
        let diff = self.gate(Gate::Diff);
        let mut violations = diff.violations.clone();
        violations.extend(diff.note.clone());
        violations.extend(report.iter().flat_map(|report| report.violations.clone()));
        let mut evidence = vec![self.file(PATCH)?];
        for name in reviewed.into_iter().flat_map(looked_at) {
            evidence.push(self.file(name)?);
        }
        let meddled = reviewed.is_some_and(|reviewed| !reviewed.altered.is_empty());
        let ended = reviewed.map_or(&state.latest, |reviewed| &reviewed.ended_at);
        Ok(ReviewReport {
            run_id: state.names.run_id.clone(),
            reviewer: Reviewer {
                role: ReviewerRole::Reviewer,
                agent_id: said.agent_id,
                codex_thread_id: reviewed.and_then(|reviewed| thread(state, reviewed)),
            },
            reviewed_at: time(ended)?,
            verdict: said.verdict,
            summary: said.summary,
            scope_check: ScopeCheck {
                passed: diff.lets_through() && violations.is_empty(),
                violations,
            },
            evidence,
            task_id: Some(state.names.task_id.clone()),
            attempt: Some(state.attempt),
            // The format has no value for a reviewer that changed files.
            produced_diff: (!meddled).then_some(false),
            notes: meddled.then(|| "the reviewer changed the tree it looked at".to_owned()),
            x_provost: match reviewed {
                None => None,
                Some(reviewed) => Some(Judged {
                    tree: Some(reviewed.tree.clone()),
                    facts: open(&ReviewFacts::of(reviewed, report.as_ref()))?,
                }),
            },
        })
    }
}

/// The files of the bundle that document a review.
fn looked_at(reviewed: &ReviewRun) -> Vec<&str> {
    let run = &reviewed.run;
    run.streams().map(|stream| stream.file.as_str()).collect()
}

fn thread(state: &State, reviewed: &ReviewRun) -> Option<String> {
    let known = state.opened.review.as_ref()?.adapted.as_ref()?;
    let thread = reviewed.run.claims.as_ref()?.sum.thread.clone();
    thread.filter(|_| known.adapter.runner() == Some(RunnerKind::Codex))
}
