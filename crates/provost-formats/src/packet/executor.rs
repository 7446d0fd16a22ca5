//! The executor report: the worker's claims.

use std::collections::BTreeSet;

use provost_core::schema::leaf::{Filled, FilledStrictly};
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding::Findings;
use super::text::{ExecutorRole, Moment, trimmed};
use super::{EXECUTOR_REPORT, Found, Source, rule};

/// `executor_report.yaml`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct ExecutorReport {
    #[schemars(with = "ReportVersion")]
    pub schema_version: Option<ReportVersion>,
    #[schemars(with = "Filled")]
    pub phase_id: Option<String>,
    #[schemars(with = "Executor")]
    pub executor: Option<Executor>,
    #[schemars(with = "ExecutorStatus")]
    pub status: Option<ExecutorStatus>,
    #[schemars(with = "Vec<FilledStrictly>")]
    pub changed_files: Option<Vec<String>>,
    #[schemars(with = "Vec<FilledStrictly>")]
    pub commands_run: Option<Vec<String>>,
    #[schemars(with = "Moment")]
    pub reported_at: Option<Moment>,
    /// The evidence that the worker names; a whole packet compares it with the card.
    #[serde(default)]
    #[schemars(with = "EvidenceSummary")]
    pub evidence_summary: Option<Value>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub notes: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReportVersion {
    #[serde(rename = "subagent_executor_report_v1")]
    V1,
}

/// Who did the work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Executor {
    #[schemars(with = "ExecutorRole")]
    pub role: Option<ExecutorRole>,
    #[schemars(with = "Runtime")]
    pub runtime: Option<Runtime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Runtime {
    #[serde(rename = "codex_cli")]
    CodexCli,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorStatus {
    Completed,
    Failed,
}

enum EvidenceSummary {}

text_schema!(EvidenceSummary, { "x-strict": { "type": ["object", "null"] } });

static REPORT: FormatReader<ExecutorReport> = FormatReader::new();

/// The claims of a worker, as far as they can be read.
#[derive(Debug)]
pub(super) struct Report {
    /// The changed files, each in its one spelling.
    pub(super) changed: BTreeSet<String>,
    /// The commands that were run, without outer blanks.
    pub(super) commands: BTreeSet<String>,
    /// Whether the worker reports success.
    pub(super) completed: Option<bool>,
    /// The evidence that the worker names.
    pub(super) summary: Option<Value>,
}

pub(super) fn read(source: &Source, phase_id: &str, findings: &mut Findings) -> Option<Report> {
    let mut found = findings.of(EXECUTOR_REPORT);
    let report: ExecutorReport = found.read_yaml(source, &REPORT)?;
    found.phase(report.phase_id.as_deref(), phase_id);
    if report.status == Some(ExecutorStatus::Failed) {
        found.doubt("status", "the worker says that it failed");
    }
    let mut changed = BTreeSet::new();
    let paths = report.changed_files.unwrap_or_default();
    for text in paths.iter().filter(|text| !text.trim().is_empty()) {
        match rule::normal(text) {
            Ok(Some(path)) => {
                changed.insert(String::from(path));
            }
            Ok(None) => found.doubt("changed_files", format!("`{text}` names no file")),
            Err(why) => {
                let problem = format!("`{text}` {why}, so it is outside allowed_paths");
                found.add("changed_files", problem);
            }
        }
    }
    let status = report.status;
    Some(Report {
        changed,
        commands: trimmed(report.commands_run).into_iter().collect(),
        completed: status.map(|status| status == ExecutorStatus::Completed),
        summary: report.evidence_summary,
    })
}

/// Checks that the worker names the same evidence as the card.
pub(super) fn summary_agrees(summary: &Value, evidence: &[Found], findings: &mut Findings) {
    for found in evidence {
        let key = found.evidence.key();
        let named = summary.get(key).and_then(Value::as_str);
        let path = named.and_then(|text| rule::normal(text).ok().flatten());
        if named.is_some() && path.as_ref() != Some(&found.path) {
            let field = format!("evidence_summary.{key}");
            findings.doubt(EXECUTOR_REPORT, &field, "is not what the task card names");
        }
    }
}
