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
///
/// The format does not say how they are written: a list of mappings with `name` and `pass`, or a
/// mapping from each name to its result, or to a mapping with `pass`.
fn checks(fields: &mut Fields<'_, '_>, pass: bool) {
    let names: Vec<&str> = match fields.required("checks") {
        None => return,
        Some(Value::Array(rows)) => {
            let rows = rows.iter().enumerate();
            rows.filter_map(|(at, row)| listed(fields, at, row, pass))
                .collect()
        }
        Some(Value::Object(results)) => {
            for (name, result) in results {
                let value = match result {
                    Value::Object(row) => row.get("pass"),
                    other => Some(other),
                };
                let detail = result.get("detail").and_then(Value::as_str);
                let place = format!("checks.{name}");
                passes(fields, &place, (name.trim(), value, detail), pass);
            }
            results.keys().map(|name| name.trim()).collect()
        }
        Some(_) => {
            fields.refuse("checks", "is neither a list nor a mapping");
            return;
        }
    };
    for check in CHECKS {
        if !names.contains(&check) {
            fields.refuse("checks", format!("the check `{check}` is missing"));
        }
    }
}

/// Judges one check of a list; gives its name.
fn listed<'a>(
    fields: &mut Fields<'a, '_>,
    at: usize,
    row: &'a Value,
    pass: bool,
) -> Option<&'a str> {
    let Value::Object(entries) = row else {
        fields.refuse(&format!("checks[{at}]"), "is not a mapping");
        return None;
    };
    let prefix = format!("checks[{at}].");
    let mut inner = Fields {
        file: VALIDATOR_REPORT,
        prefix: &prefix,
        entries,
        findings: &mut *fields.findings,
    };
    let name = inner.text("name").map(str::trim);
    let shown = name.unwrap_or("without a name");
    let detail = entries.get("detail").and_then(Value::as_str);
    let result = (shown, entries.get("pass"), detail);
    passes(&mut inner, "pass", result, pass);
    name
}

/// Judges the result of one check: its name, its value and its detail.
fn passes(
    fields: &mut Fields<'_, '_>,
    place: &str,
    (name, value, detail): (&str, Option<&Value>, Option<&str>),
    pass: bool,
) {
    match value {
        Some(Value::Bool(false)) if pass => {
            fields.refuse(
                place,
                format!("status is pass with the failed check `{name}`"),
            );
        }
        Some(Value::Bool(false)) => {
            let why = detail.unwrap_or("no detail");
            fields.doubt(place, format!("the check `{name}` failed: {why}"));
        }
        Some(Value::Bool(true)) => {}
        Some(_) => fields.refuse(place, format!("of `{name}` is not a boolean")),
        None => fields.refuse(place, format!("of `{name}` is missing")),
    }
}
