//! Defines what a reviewer is asked and what it has to answer.
//!
//! # Invariants
//!
//! - A report is data: only its form and its verdict count, and a report that contradicts itself is
//!   refused.
//! - Nothing in the reviewed tree instructs the reviewer: the instruction comes from Provost and
//!   the contract.

mod instruction;
mod worker;

pub use instruction::render;
pub use worker::{LOG, Worker};

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::report::ReviewVerdict;
use crate::schema::bound;
use crate::schema::read::{Unfit, read};

/// The paths inside the sandbox of a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewPaths {
    /// The working directory; it is empty.
    pub start: &'static str,
    /// The candidate, read-only.
    pub tree: &'static str,
    /// The patch from the base to the candidate.
    pub patch: &'static str,
    /// The paths that differ, one per line.
    pub changed: &'static str,
    pub contract: &'static str,
    /// What is known of the worker: its result, and how commands ended.
    pub worker: &'static str,
    /// The end of the output of the worker and of the commands.
    pub output: &'static str,
}

/// The same for every review.
pub const REVIEW_DIRECTORY: ReviewPaths = ReviewPaths {
    start: "/review",
    tree: "/workspace",
    patch: "/run/provost/review/patch.diff",
    changed: "/run/provost/review/diff_name_only.txt",
    contract: "/run/provost/review/contract.json",
    worker: "/run/provost/review/worker.json",
    output: "/run/provost/review/output.log",
};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Whether the candidate may continue to the tests.
    pub verdict: ReviewVerdict,
    /// Never empty.
    pub summary: String,
    /// Where the change exceeds its contract.
    pub violations: Vec<String>,
    /// Other defects, or suggestions.
    pub findings: Vec<Remark>,
}

/// One remark of a reviewer about the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// May be empty.
    pub path: String,
    pub problem: String,
}

#[derive(Debug, thiserror::Error)]
pub enum BadReport {
    #[error(transparent)]
    Form(#[from] Unfit),
    #[error("has an empty summary")]
    Empty,
    /// It passes a change although it lists violations.
    #[error("passes a change that it says goes beyond the contract")]
    Contradiction,
}

pub fn parse(text: &str) -> Result<Report, BadReport> {
    let report: Report = read(text.as_bytes(), schema())?;
    if report.summary.trim().is_empty() {
        return Err(BadReport::Empty);
    }
    if report.verdict == ReviewVerdict::Pass && !report.violations.is_empty() {
        return Err(BadReport::Contradiction);
    }
    Ok(report)
}

/// The schema of a report.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(bound::<Report>);
    &SCHEMA
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::validate::validate;
    use serde_json::json;

    fn report(change: impl FnOnce(&mut Value)) -> Value {
        let mut value = json!({ "verdict": "PASS", "summary": "fine", "violations": [],
            "findings": [{ "path": "a", "problem": "b" }] });
        change(&mut value);
        value
    }

    #[test]
    fn a_report_has_its_form_and_does_not_contradict_itself() {
        let cases = [
            ("passes", report(|_| ()), true),
            ("fails", report(|it| it["verdict"] = json!("FAIL")), true),
            (
                "is stopped",
                report(|it| it["verdict"] = json!("BLOCKED")),
                true,
            ),
            (
                "fails beyond the contract",
                report(|it| {
                    it["verdict"] = json!("FAIL");
                    it["violations"] = json!(["writes elsewhere"]);
                }),
                true,
            ),
            (
                "passes beyond the contract",
                report(|it| it["violations"] = json!(["writes elsewhere"])),
                false,
            ),
            (
                "says nothing",
                report(|it| it["summary"] = json!(" ")),
                false,
            ),
            (
                "is unsure",
                report(|it| it["verdict"] = json!("MAYBE")),
                false,
            ),
            ("says more", report(|it| it["extra"] = json!(1)), false),
            (
                "has no list",
                report(|it| it["findings"] = Value::Null),
                false,
            ),
            ("is prose", json!("looks good to me"), false),
        ];
        for (name, value, want) in cases {
            assert_eq!(parse(&value.to_string()).is_ok(), want, "{name}");
        }
        assert!(parse("").is_err());
        assert!(parse(r#"{"verdict":"FAIL","verdict":"PASS"}"#).is_err());
    }

    #[test]
    fn the_schema_says_what_is_read() {
        assert!(validate(schema(), &report(|_| ())).is_empty());
        for key in ["verdict", "summary", "violations", "findings"] {
            let lacking = report(|it| {
                it.as_object_mut().unwrap().remove(key);
            });
            assert!(!validate(schema(), &lacking).is_empty(), "{key}");
            assert!(parse(&lacking.to_string()).is_err(), "{key}");
        }
    }
}
