//! The baseline: findings that a repository accepts and that are not reported again.
//!
//! A baseline says what is *new*; it never says what a change did. The analyses before and after a
//! change decide that, whatever a baseline accepts. See `docs/change-control.md`.
//!
//! # Invariants
//!
//! - A baseline that is damaged, or made by another analyser or other settings, accepts nothing:
//!   every finding is new.
//! - A change that accepts more findings than before is reported as a violation.
//! - A baseline lies in the analysed tree, where any text that mentions a name counts as a use of
//!   it. So it holds digests of ids, and no word that a symbol is likely to have as its name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::budget::Gate;
use super::health::Points;
use super::profile::is_functional;
use super::{Finding, Report};
use provost_core::json::{self, ReadError};
use provost_core::object::sha256;

/// Where a baseline is read, relative to the analysed root.
pub const NAME: &str = "provost.baseline.json";

const VERSION: &str = "1";

/// The largest baseline that is read, in bytes.
pub const LARGEST: u64 = 16 << 20;

/// The accepted findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(rename = "provost_baseline_version")]
    version: String,
    /// The version of the analyser whose findings these are.
    #[serde(rename = "provost_baseline_analyser")]
    pub analyser: String,
    /// The digest of the settings that they were found with.
    #[serde(rename = "provost_baseline_settings_sha256")]
    pub settings: String,
    /// Digests of their ids.
    #[serde(rename = "provost_accepted_findings_sha256")]
    pub findings: BTreeSet<String>,
    /// The health of the tree that they were found in; older baselines have none.
    #[serde(
        rename = "provost_baseline_health",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub health: Option<Points>,
    /// The digest of the other fields, to detect damage. It is not signed: any editor can compute
    /// it.
    #[serde(rename = "provost_baseline_sha256")]
    payload: String,
}

/// The key that stands for a finding.
fn key(finding: &Finding) -> String {
    sha256(finding.id.as_bytes())
}

#[derive(Debug, thiserror::Error)]
pub enum BadBaseline {
    #[error("it does not parse")]
    Syntax(#[from] ReadError),
    /// It was made for another version.
    #[error("its version is `{0}`; `{VERSION}` is read")]
    Version(String),
    /// It was edited or damaged.
    #[error("its content does not fit its digest")]
    Digest,
}

impl Baseline {
    /// The baseline that accepts all findings of `report`.
    pub fn of(report: &Report) -> Self {
        let mut baseline = Self {
            version: VERSION.to_owned(),
            analyser: report.analyser.clone(),
            settings: report.settings.digest(),
            findings: report.findings.iter().map(key).collect(),
            health: report.health.as_ref().map(|health| health.points),
            payload: String::new(),
        };
        baseline.payload = baseline.content();
        baseline
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, BadBaseline> {
        let baseline: Self = json::parse_as(bytes)?;
        if baseline.version != VERSION {
            let version = baseline.version.chars().take(20).collect();
            return Err(BadBaseline::Version(version));
        }
        if baseline.payload != baseline.content() {
            return Err(BadBaseline::Digest);
        }
        Ok(baseline)
    }

    fn content(&self) -> String {
        let rest = Self {
            payload: String::new(),
            ..self.clone()
        };
        let value = serde_json::to_value(rest).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }

    /// The content of its file: one finding per line, so that a diff is readable.
    pub fn render(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text + "\n"
    }

    pub fn digest(&self) -> &str {
        &self.payload
    }

    /// Whether it was made by the analyser and the settings of `report`; otherwise it does not
    /// apply.
    pub fn fits(&self, report: &Report) -> bool {
        self.analyser == report.analyser && self.settings == report.settings.digest()
    }
}

/// A baseline as an analysis found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Seen {
    #[default]
    Missing,
    /// The file is not a baseline.
    Invalid {
        /// Relative to the analysed root.
        path: String,
        why: String,
    },
    /// It was made by another analyser or other settings, so its ids do not apply.
    Incompatible { path: String, baseline: Baseline },
    /// It applies.
    Trusted { path: String, baseline: Baseline },
}

impl Seen {
    /// Reads the bytes at `path` for the analysis that found `report`.
    pub fn of(path: &str, bytes: Option<&[u8]>, report: &Report) -> Self {
        let path = path.to_owned();
        match bytes.map(Baseline::parse) {
            None => Self::Missing,
            Some(Err(error)) => Self::Invalid {
                path,
                why: error.to_string(),
            },
            Some(Ok(baseline)) if baseline.fits(report) => Self::Trusted { path, baseline },
            Some(Ok(baseline)) => Self::Incompatible { path, baseline },
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid { .. } => "invalid",
            Self::Incompatible { .. } => "incompatible",
            Self::Trusted { .. } => "ok",
        }
    }

    /// The baseline, if it applies.
    pub fn trusted(&self) -> Option<&Baseline> {
        match self {
            Self::Trusted { baseline, .. } => Some(baseline),
            Self::Missing | Self::Invalid { .. } | Self::Incompatible { .. } => None,
        }
    }

    /// The digest of the baseline, whether it applies or not.
    fn identity(&self) -> Option<&str> {
        match self {
            Self::Missing | Self::Invalid { .. } => None,
            Self::Incompatible { baseline, .. } | Self::Trusted { baseline, .. } => {
                Some(baseline.digest())
            }
        }
    }

    pub fn knows(&self, finding: &Finding) -> bool {
        self.trusted()
            .is_some_and(|baseline| baseline.findings.contains(&key(finding)))
    }

    /// The findings of `report` that decide and are not accepted.
    pub fn new_in<'a>(&self, report: &'a Report) -> Vec<&'a Finding> {
        let fresh = |one: &&Finding| one.gates() && !self.knows(one);
        report.findings.iter().filter(fresh).collect()
    }

    /// A summary for payloads.
    pub fn describe(&self, report: &Report) -> Value {
        let new = self.new_in(report).len();
        let gating = report.findings.iter().filter(|one| one.gates()).count();
        let mut summary = json!({
            "status": self.word(), "known_findings": gating - new, "new_findings": new,
        });
        match self {
            Self::Missing => {}
            Self::Invalid { path, why } => {
                summary["path"] = json!(path);
                summary["reason"] = json!(why);
            }
            Self::Incompatible { path, baseline } | Self::Trusted { path, baseline } => {
                summary["path"] = json!(path);
                summary["digest"] = json!(baseline.digest());
            }
        }
        summary
    }
}

/// The facts about a baseline that changed during a change.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// The baseline of the analysis from before.
    pub before: &'a Seen,
    /// The baseline of the analysis from after.
    pub after: &'a Seen,
    /// The gates, each by its own baseline.
    pub gates: (&'a Gate, &'a Gate),
    /// How many findings are new by the analyses.
    pub regressions: usize,
    /// The touched paths.
    pub paths: &'a [String],
    /// Whether an agent declared the change.
    pub has_intent: bool,
}

/// Every rule that a change breaks by updating a baseline for its own benefit.
pub fn abuse(course: &Course<'_>) -> Vec<&'static str> {
    let after = course.after.identity();
    if after.is_none() || after == course.before.identity() {
        return Vec::new();
    }
    let code = course.paths.iter().any(|path| is_functional(path));
    let worse = course.regressions > 0;
    let greened = course.gates.0.would_fail && !course.gates.1.would_fail;
    let applies = [code || worse, worse, !course.has_intent, greened];
    let found = TRIGGERS
        .into_iter()
        .zip(applies)
        .filter(|(_, applies)| *applies);
    found.map(|(violation, _)| violation).collect()
}

/// The prefix of a violation of this kind.
const PREFIX: &str = "baseline_abuse:";

/// The rules, in the order in which they are reported.
const TRIGGERS: [&str; 4] = [
    "baseline_abuse:baseline_changed_with_functional_code",
    "baseline_abuse:baseline_updated_while_regressions_present",
    "baseline_abuse:baseline_updated_without_intent",
    "baseline_abuse:ci_greened_by_accepting_debt",
];

/// The triggers among `violations`, without their prefix.
pub fn triggers<'a>(violations: &[&'a str]) -> Vec<&'a str> {
    let of_kind = |rule: &&'a str| rule.strip_prefix(PREFIX);
    violations.iter().filter_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::sample::{dead, function, report};

    fn sample() -> Report {
        report(vec![function("a.py", "f", 1)], vec![dead("a.py", "f", "s")])
    }

    fn trusted(report: &Report) -> Seen {
        let bytes = Baseline::of(report).render();
        Seen::of(NAME, Some(bytes.as_bytes()), report)
    }

    #[test]
    fn a_baseline_comes_back_as_it_was_and_knows_what_it_accepts() {
        let mut tree = sample();
        let seen = trusted(&tree);
        assert_eq!(seen.word(), "ok");
        assert!(seen.new_in(&tree).is_empty());
        tree.findings.push(dead("b.py", "g", "t"));
        let new: Vec<&str> = seen
            .new_in(&tree)
            .iter()
            .map(|one| one.id.as_str())
            .collect();
        assert_eq!(new, ["dead_code:g"]);
        assert_eq!(Seen::Missing.new_in(&tree).len(), 2);
    }

    #[test]
    fn what_is_damaged_or_of_other_means_accepts_nothing() {
        let tree = sample();
        let text = Baseline::of(&tree).render();
        let damaged = text.replace(&key(&tree.findings[0]), &sha256(b"another"));
        let future = text.replace("version\": \"1\"", "version\": \"2\"");
        assert!(damaged != text && future != text);
        for bad in [
            damaged,
            future,
            "{}".to_owned(),
            "[".repeat(9000),
            String::new(),
        ] {
            let seen = Seen::of(NAME, Some(bad.as_bytes()), &tree);
            assert_eq!((seen.word(), seen.new_in(&tree).len()), ("invalid", 1));
        }
        let mut other = sample();
        other.settings.min_loc = 3;
        let seen = Seen::of(NAME, Some(text.as_bytes()), &other);
        assert_eq!(
            (seen.word(), seen.new_in(&other).len()),
            ("incompatible", 1)
        );
        assert_eq!(Seen::of(NAME, None, &tree).word(), "missing");
    }

    #[test]
    fn an_updated_baseline_is_reported_with_what_it_hides() {
        let tree = sample();
        let (old, new) = (Seen::Missing, trusted(&tree));
        let gate = |would_fail| Gate {
            would_fail,
            exit_code: 0,
            reasons: Vec::new(),
        };
        let (red, green) = (gate(true), gate(false));
        let (code, docs) = (["a.py".to_owned()], ["a.md".to_owned()]);
        let quiet = Course {
            before: &old,
            after: &new,
            gates: (&green, &green),
            regressions: 0,
            paths: &docs,
            has_intent: true,
        };
        let with_code = "baseline_changed_with_functional_code";
        let cases: [(Course<'_>, &[&str]); 7] = [
            (quiet, &[]),
            (
                Course {
                    paths: &code,
                    ..quiet
                },
                &[with_code],
            ),
            (
                Course {
                    regressions: 1,
                    ..quiet
                },
                &[with_code, "baseline_updated_while_regressions_present"],
            ),
            (
                Course {
                    has_intent: false,
                    ..quiet
                },
                &["baseline_updated_without_intent"],
            ),
            (
                Course {
                    gates: (&red, &green),
                    ..quiet
                },
                &["ci_greened_by_accepting_debt"],
            ),
            (
                Course {
                    before: &new,
                    paths: &code,
                    regressions: 1,
                    ..quiet
                },
                &[],
            ),
            (
                Course {
                    before: &new,
                    after: &old,
                    paths: &code,
                    ..quiet
                },
                &[],
            ),
        ];
        for (at, (course, want)) in cases.iter().enumerate() {
            assert_eq!(triggers(&abuse(course)), *want, "case {at}");
        }
    }
}
