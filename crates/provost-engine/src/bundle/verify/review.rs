//! Compares the review reports with the ledger.

use super::Finding;
use super::read::{Bundle, REVIEW_REPORT, TASK_RESULT};
use crate::bundle::compose::Said;
use provost_core::bundle::report::ReviewVerdict;

/// The review report, and the review gate of the result, follow from the ledger.
pub(super) fn review(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(state) = bundle.course.end() else {
        // Another check reports what is wrong with it.
        return Vec::new();
    };
    let said = Said::of(state);
    let mut findings = Vec::new();
    let mut wrong = |name: &str, problem: &str| findings.push(Finding::altered(name, problem));
    if let Some(report) = &bundle.reports.review {
        if report.verdict != said.verdict {
            wrong(REVIEW_REPORT, "its verdict is not what the ledger holds");
        }
        // The name is arbitrary if there was no review.
        let reviewed = state.reviewed.as_ref();
        if reviewed.is_some() && report.reviewer.agent_id != said.agent_id {
            wrong(REVIEW_REPORT, "names another reviewer than the ledger");
        }
        if reviewed.is_some() && report.summary != said.summary {
            wrong(REVIEW_REPORT, "its summary is not what the ledger holds");
        }
        let judged = report.x_provost.as_ref();
        let judged = judged.and_then(|judged| judged.tree.as_ref());
        if judged != reviewed.map(|reviewed| &reviewed.tree) {
            wrong(REVIEW_REPORT, "is about another tree than the ledger");
        }
    }
    if let Some(result) = &bundle.reports.task_result
        && result.gates.review_gate.lets_through() != said.passed
    {
        wrong(TASK_RESULT, "its review gate is not what the ledger holds");
    }
    let accepted = bundle.predicate().is_some_and(|one| one.verdict.allow);
    let asked = state.opened.review.is_some();
    if accepted && asked && (said.verdict, said.passed) != (ReviewVerdict::Pass, true) {
        wrong(REVIEW_REPORT, "does not pass, and the run was accepted");
    }
    findings
}
