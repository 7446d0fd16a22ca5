//! Reads the executor report: the worker's claims.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fields::{self, Fields};
use super::finding::Findings;
use super::{EXECUTOR_REPORT, Found, Source, rule};

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
    pub(super) summary: Option<Map<String, Value>>,
}

pub(super) fn read(source: &Source, phase_id: &str, findings: &mut Findings) -> Option<Report> {
    let entries = fields::mapping(source, EXECUTOR_REPORT, findings)?;
    let mut fields = Fields {
        file: EXECUTOR_REPORT,
        prefix: "",
        entries: &entries,
        findings,
    };
    fields.one_of("schema_version", &["subagent_executor_report_v1"]);
    fields.phase(phase_id);
    fields.time("reported_at");
    match fields.required("executor") {
        Some(Value::Object(executor)) => {
            let mut inner = Fields {
                file: EXECUTOR_REPORT,
                prefix: "executor.",
                entries: executor,
                findings: &mut *fields.findings,
            };
            inner.one_of("role", &["codex_cli_subagent"]);
            inner.one_of("runtime", &["codex_cli"]);
        }
        Some(_) => fields.refuse("executor", "is not a mapping"),
        None => {}
    }
    let status = fields.one_of("status", &["completed", "failed"]);
    if status == Some("failed") {
        fields.doubt("status", "the worker says that it failed");
    }
    let mut changed = BTreeSet::new();
    for text in fields.texts("changed_files").unwrap_or_default() {
        match rule::normal(text) {
            Ok(Some(path)) => {
                changed.insert(String::from(path));
            }
            Ok(None) => fields.doubt("changed_files", format!("`{text}` names no file")),
            Err(why) => {
                let problem = format!("`{text}` {why}, so it is outside allowed_paths");
                fields.refuse("changed_files", problem);
            }
        }
    }
    let commands = fields.texts("commands_run").unwrap_or_default().into_iter();
    let commands = commands.map(|command| command.trim().to_owned()).collect();
    let summary = entries.get("evidence_summary");
    if summary.is_some_and(|value| !value.is_object() && !value.is_null()) {
        fields.doubt("evidence_summary", "is not a mapping");
    }
    let summary = summary.and_then(Value::as_object);
    Some(Report {
        changed,
        commands,
        completed: status.map(|status| status == "completed"),
        summary: summary.cloned(),
    })
}

/// Checks that the worker names the same evidence as the card.
pub(super) fn summary_agrees(
    summary: &Map<String, Value>,
    evidence: &[Found],
    findings: &mut Findings,
) {
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
