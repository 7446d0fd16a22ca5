//! The validator report: the conclusion of the checking role.

use std::collections::BTreeMap;

use provost_core::schema::leaf::Filled;
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding::{FileFindings, Findings};
use super::text::Moment;
use super::{Source, VALIDATOR_REPORT};

/// The checks that every report must have.
pub(crate) const CHECKS: [&str; 5] = [
    "task_card_published",
    "executor_is_codex_cli",
    "allowed_paths_only",
    "acceptance_commands_executed",
    "ssot_updated",
];

/// `validator_report.yaml`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct ValidatorReport {
    #[schemars(with = "ConclusionVersion")]
    pub schema_version: Option<ConclusionVersion>,
    #[schemars(with = "Filled")]
    pub phase_id: Option<String>,
    #[schemars(with = "Validator")]
    pub validator: Option<Validator>,
    #[schemars(with = "ValidatorStatus")]
    pub status: Option<ValidatorStatus>,
    #[schemars(with = "Checks")]
    pub checks: Option<Checks>,
    #[schemars(with = "Moment")]
    pub reported_at: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConclusionVersion {
    #[serde(rename = "subagent_validator_report_v1")]
    V1,
}

/// Who judged the work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Validator {
    #[schemars(with = "ValidatorRole")]
    pub role: Option<ValidatorRole>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValidatorRole {
    #[serde(rename = "orchestrator_codex")]
    OrchestratorCodex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidatorStatus {
    Pass,
    Fail,
}

/// The checks; the format does not say how they are written.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Checks {
    List(#[schemars(extend("x-strict" = { "minItems": CHECKS.len() }))] Vec<Check>),
    /// By name.
    Mapping(#[schemars(extend("x-strict" = { "required": CHECKS }))] BTreeMap<String, CheckResult>),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Check {
    #[schemars(with = "Filled")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub result: CheckRow,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct CheckRow {
    #[schemars(with = "bool")]
    pub pass: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CheckResult {
    Plain(bool),
    Row(CheckRow),
}

impl CheckResult {
    fn row(&self) -> CheckRow {
        match self {
            Self::Row(row) => row.clone(),
            Self::Plain(pass) => CheckRow {
                pass: Some(*pass),
                detail: None,
            },
        }
    }
}

impl Checks {
    /// Each check: its place in the report, its name, its result.
    fn rows(&self) -> Vec<(String, &str, CheckRow)> {
        match self {
            Self::List(list) => list
                .iter()
                .enumerate()
                .map(|(at, check)| {
                    let name = check.name.as_deref().unwrap_or_default();
                    (format!("checks[{at}].pass"), name, check.result.clone())
                })
                .collect(),
            Self::Mapping(results) => results
                .iter()
                .map(|(name, result)| (format!("checks.{name}"), name.as_str(), result.row()))
                .collect(),
        }
    }
}

static REPORT: FormatReader<ValidatorReport> = FormatReader::new();

#[derive(Debug, Default)]
pub(super) struct Conclusion {
    /// Whether it says `pass`.
    pub(super) passed: Option<bool>,
}

pub(super) fn read(source: &Source, phase_id: &str, findings: &mut Findings) -> Conclusion {
    let mut found = findings.of(VALIDATOR_REPORT);
    let report: Option<ValidatorReport> = found.read_yaml(source, &REPORT);
    let Some(report) = report else {
        return Conclusion::default();
    };
    found.phase(report.phase_id.as_deref(), phase_id);
    if report.status == Some(ValidatorStatus::Fail) {
        found.doubt("status", "the validator says that it failed");
    }
    let passed = report.status.map(|status| status == ValidatorStatus::Pass);
    if let Some(checks) = &report.checks {
        judge(checks, passed == Some(true), &mut found);
    }
    Conclusion { passed }
}

/// Checks that all five checks are listed and, if the report says `pass`, that none has failed.
fn judge(checks: &Checks, pass: bool, found: &mut FileFindings<'_>) {
    let rows = checks.rows();
    for (place, name, row) in &rows {
        let name = name.trim();
        let why = row.detail.as_ref().and_then(Value::as_str);
        match row.pass {
            Some(false) if pass => {
                let problem = format!("status is pass with the failed check `{name}`");
                found.add(place, problem);
            }
            Some(false) => {
                let why = why.unwrap_or("no detail");
                found.doubt(place, format!("the check `{name}` failed: {why}"));
            }
            Some(true) | None => {}
        }
    }
    for check in CHECKS {
        if !rows.iter().any(|(_, name, _)| name.trim() == check) {
            found.add("checks", format!("the check `{check}` is missing"));
        }
    }
}
