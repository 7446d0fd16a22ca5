//! Reads the validator report: the conclusion of the checking role.

use serde_json::Value;

use super::fields::{self, Fields};
use super::finding::Findings;
use super::{Source, VALIDATOR_REPORT};

/// The checks that every report must have.
pub(crate) const CHECKS: [&str; 5] = [
    "task_card_published",
    "executor_is_codex_cli",
    "allowed_paths_only",
    "acceptance_commands_executed",
    "ssot_updated",
];

#[derive(Debug, Default)]
pub(super) struct Conclusion {
    /// Whether it says `pass`.
    pub(super) passed: Option<bool>,
}

pub(super) fn read(source: &Source, phase_id: &str, findings: &mut Findings) -> Conclusion {
    let Some(entries) = fields::mapping(source, VALIDATOR_REPORT, findings) else {
        return Conclusion::default();
    };
    let mut fields = Fields {
        file: VALIDATOR_REPORT,
        prefix: "",
        entries: &entries,
        findings,
    };
    fields.one_of("schema_version", &["subagent_validator_report_v1"]);
    fields.phase(phase_id);
    fields.time("reported_at");
    match fields.required("validator") {
        Some(Value::Object(validator)) => {
            let mut inner = Fields {
                file: VALIDATOR_REPORT,
                prefix: "validator.",
                entries: validator,
                findings: &mut *fields.findings,
            };
            inner.one_of("role", &["orchestrator_codex"]);
        }
        Some(_) => fields.refuse("validator", "is not a mapping"),
        None => {}
    }
    let status = fields.one_of("status", &["pass", "fail"]);
    if status == Some("fail") {
        fields.doubt("status", "the validator says that it failed");
    }
    checks(&mut fields, status == Some("pass"));
    Conclusion {
        passed: status.map(|status| status == "pass"),
    }
}

/// Checks that all five checks are listed and, if the report says `pass`, that none has failed.
fn checks(fields: &mut Fields<'_, '_>, pass: bool) {
    let Some(value) = fields.required("checks") else {
        return;
    };
    let Value::Array(rows) = value else {
        fields.refuse("checks", "is not a list");
        return;
    };
    let mut names = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let prefix = format!("checks[{at}].");
        let Value::Object(entries) = row else {
            fields.refuse(&format!("checks[{at}]"), "is not a mapping");
            continue;
        };
        let mut inner = Fields {
            file: VALIDATOR_REPORT,
            prefix: &prefix,
            entries,
            findings: &mut *fields.findings,
        };
        let name = inner.text("name").map(str::trim);
        let shown = name.unwrap_or("without a name");
        match inner.entries.get("pass") {
            Some(Value::Bool(false)) if pass => {
                let problem = format!("status is pass with the failed check `{shown}`");
                inner.refuse("pass", problem);
            }
            Some(Value::Bool(_)) => {}
            Some(_) => inner.refuse("pass", format!("of `{shown}` is not a boolean")),
            None => inner.refuse("pass", format!("of `{shown}` is missing")),
        }
        names.extend(name);
    }
    for check in CHECKS {
        if !names.contains(&check) {
            fields.refuse("checks", format!("the check `{check}` is missing"));
        }
    }
}
