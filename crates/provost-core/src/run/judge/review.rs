//! Judges the report of a reviewer, and whether the reviewer ran as it must.

use serde_json::json;

use super::ReadOnlyAgent;
use crate::bundle::report::ReviewVerdict;
use crate::code::Code;
use crate::object::Oid;
use crate::review::{self, Remark, Report};
use crate::run::State;
use crate::run::fact::{Probe, Probed, ReviewRun};
use crate::tier::Tier;
use crate::verdict::Verdict;
use crate::wording::counted;

/// How much of a reviewer's summary a refusal quotes, in characters.
const SUMMARY: usize = 200;

impl State {
    pub(super) fn judge_review(&self) -> Verdict {
        judge(self.report())
    }

    /// What follows from `reviewed`, which is to be about the merge `tree`.
    pub fn judge_merge_review(&self, reviewed: &ReviewRun, tree: &Oid) -> Verdict {
        judge(self.hear(reviewed, tree))
    }

    /// What the reviewer reported, if its word can be taken.
    pub fn review_report(&self) -> Option<Report> {
        self.report().ok()
    }

    /// The report of a review whose word can be taken, or why there is none.
    fn report(&self) -> Result<Report, Verdict> {
        let (Some(captured), Some(reviewed)) = (&self.captured, &self.reviewed) else {
            return Err(invalid("the candidate was not reviewed"));
        };
        self.hear(reviewed, &captured.tree)
    }

    fn hear(&self, reviewed: &ReviewRun, tree: &Oid) -> Result<Report, Verdict> {
        if reviewed.tree != *tree {
            return Err(invalid("another tree was reviewed than was captured"));
        }
        if let Some(refusal) = self.leaked(&reviewed.probed) {
            return Err(refusal);
        }
        let known = self.opened.review.as_ref();
        let looker = ReadOnlyAgent {
            who: "reviewer",
            leaves: "report",
            code: Code::ReviewInvalid,
            adapted: known.and_then(|reviewer| reviewer.adapted.as_ref()),
        };
        let text = looker.report_text(reviewed)?;
        review::parse(text).map_err(|error| invalid(format!("the reviewer's report {error}")))
    }
}

impl State {
    /// The refusal of a reviewer whose sandbox was not attacked, or did not hold.
    fn leaked(&self, probed: &Probed) -> Option<Verdict> {
        let deny = |reason: String| Some(Verdict::deny(Code::SandboxLeaks, reason));
        if probed.attempts.is_empty() {
            return deny("the sandbox of the reviewer was not tested".to_owned());
        }
        let tier = self
            .contract
            .as_ref()
            .map_or(Tier::Namespaces, |it| it.tier);
        let processes = self.tested.as_ref().map(|test| test.processes);
        let processes = processes.unwrap_or_default();
        let leak = |probe: &&Probe| !probe.held && !tier.excuses(processes, &probe.name);
        let leak = probed.attempts.iter().find(leak)?;
        deny(format!(
            "the sandbox of the reviewer does not hold: {}",
            leak.name
        ))
    }
}

/// The verdict that follows from a report.
fn judge(report: Result<Report, Verdict>) -> Verdict {
    let report = match report {
        Ok(report) => report,
        Err(refusal) => return refusal,
    };
    match report.verdict {
        ReviewVerdict::Pass => {
            let remarks = counted(report.findings.len(), "remark");
            Verdict::allow(format!("the reviewer passed it, {remarks}"))
        }
        ReviewVerdict::Fail | ReviewVerdict::Blocked => refused(&report),
    }
}

fn invalid(reason: impl Into<String>) -> Verdict {
    Verdict::deny(Code::ReviewInvalid, reason)
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
