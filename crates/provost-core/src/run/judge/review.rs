//! Judges what a reviewer said, and how it came to say it.

use serde_json::json;

use super::render_ending;
use crate::agent::Adapted;
use crate::agent::reader::End;
use crate::bundle::report::ReviewVerdict;
use crate::code::Code;
use crate::review::{self, Remark, Report};
use crate::run::State;
use crate::run::fact::{AgentRun, Ending, ResultFile, ReviewRun};
use crate::verdict::Verdict;
use crate::wording::counted;

/// How much of a reviewer's summary is told with a refusal, in characters.
const SUMMARY: usize = 200;

impl State {
    pub(super) fn judge_review(&self) -> Verdict {
        let report = match self.heard() {
            Ok(report) => report,
            Err(refusal) => return refusal,
        };
        match report.verdict {
            ReviewVerdict::Pass => {
                let remarks = counted(report.findings.len(), "remark");
                Verdict::allow(format!("the reviewer lets it pass, {remarks}"))
            }
            ReviewVerdict::Fail | ReviewVerdict::Blocked => refused(&report),
        }
    }

    /// What the reviewer reported, if its word can be taken.
    pub fn review_report(&self) -> Option<Report> {
        self.heard().ok()
    }

    /// The report of a review whose word can be taken, or why there is none.
    fn heard(&self) -> Result<Report, Verdict> {
        let (Some(captured), Some(reviewed)) = (&self.captured, &self.reviewed) else {
            return Err(invalid("nobody reviewed the candidate"));
        };
        if reviewed.tree != captured.tree {
            return Err(invalid("another tree was reviewed than was captured"));
        }
        let known = self.opened.review.as_ref();
        let adapted = known.and_then(|reviewer| reviewer.adapted.as_ref());
        if let Some(refusal) = ended_badly(&reviewed.run, adapted) {
            return Err(refusal);
        }
        if !reviewed.altered.is_empty() {
            return Err(meddled(reviewed));
        }
        match &reviewed.run.result {
            ResultFile::Absent => Err(invalid("the reviewer left no report")),
            ResultFile::Unusable(why) => Err(invalid(format!("the reviewer's report {why}"))),
            ResultFile::Text(text) => review::parse(text)
                .map_err(|error| invalid(format!("the reviewer's report {error}"))),
        }
    }
}

fn invalid(reason: impl Into<String>) -> Verdict {
    Verdict::deny(Code::ReviewInvalid, reason)
}

/// Why what a reviewer left does not count, whatever it is.
fn ended_badly(run: &AgentRun, adapted: Option<&Adapted>) -> Option<Verdict> {
    let overspent = |what: &str| Verdict::deny(Code::TokenLimit, format!("the reviewer {what}"));
    match run.ending {
        Ending::Exited(0) => {}
        Ending::Cancelled => return Some(Verdict::deny(Code::Cancelled, "the run was cancelled")),
        Ending::LeaseLost => {
            let reason = "the lease on the scope was lost, so the reviewer was ended";
            return Some(Verdict::deny(Code::LeaseLost, reason));
        }
        Ending::Overspent => return Some(overspent("spent more than it may")),
        other => return Some(invalid(format!("the reviewer {}", render_ending(other)))),
    }
    // What a program that is known says about its own end: without a good word there was none.
    let adapted = adapted?;
    let sum = run.told.as_ref().map(|told| &told.sum);
    let beyond = sum.and_then(|sum| adapted.budget.exceeded(&sum.usage));
    if let Some(what) = beyond {
        return Some(overspent(&what));
    }
    match sum.and_then(|sum| sum.end.as_ref()) {
        Some(End::Done) => None,
        Some(End::GaveUp(words)) => Some(invalid(format!("the reviewer gave up: {words}"))),
        None => {
            let reason = "the reviewer ended without saying that it came to its end";
            Some(invalid(reason))
        }
    }
}

/// The refusal of a reviewer that changed what it looked at.
fn meddled(reviewed: &ReviewRun) -> Verdict {
    let files = counted(reviewed.altered.len(), "file");
    let row = |path| json!({ "path": path, "problem": "changed by the reviewer" });
    let rows: Vec<_> = reviewed.altered.iter().map(row).collect();
    invalid(format!("the reviewer changed {files} of the tree")).with(json!({ "findings": rows }))
}

/// The refusal that a report asks for, with everything it holds against the change.
fn refused(report: &Report) -> Verdict {
    let words = match report.verdict {
        ReviewVerdict::Blocked => "the reviewer cannot tell",
        ReviewVerdict::Fail | ReviewVerdict::Pass => "the reviewer refuses the change",
    };
    let line = report.summary.trim().lines().next().unwrap_or_default();
    let summary: String = line.chars().take(SUMMARY).collect();
    let beyond = |words: &String| json!({ "path": "beyond the contract", "problem": words });
    let remark = |Remark { path, problem }: &Remark| {
        let path = if path.is_empty() { "in general" } else { path };
        json!({ "path": path, "problem": problem })
    };
    let rows = report.violations.iter().map(beyond);
    let rows: Vec<_> = rows.chain(report.findings.iter().map(remark)).collect();
    Verdict::deny(Code::ReviewRefused, format!("{words}: {summary}"))
        .with(json!({ "findings": rows }))
}
