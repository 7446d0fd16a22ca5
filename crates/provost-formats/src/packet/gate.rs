//! Decides whether a phase is accepted: its packet holds, its docs were updated, and the
//! black-box checks of its goals pass.
//!
//! The black-box file is a document like those of the packet: `phase_id`, and `checks`, a list of
//! mappings with `goal_id`, `pass` and optional fields. Every goal of the task card needs one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::card::{Card, Policy};
use super::evidence::Changes;
use super::fields::{self, Fields};
use super::finding::Findings;
use super::{Accepted, EXECUTOR_REPORT, Source, VALIDATOR_REPORT, rule};
use provost_core::document::{self, Format};

/// A file that the caller names for the gate.
#[derive(Debug)]
pub struct Document {
    /// As it was named, from the root of the repository.
    pub path: String,
    pub source: Source,
}

/// What must hold beside the packet.
#[derive(Debug)]
pub struct Gate {
    /// The docs that this phase must have updated; at least one.
    pub docs: Vec<Document>,
    pub blackbox: Document,
}

/// Whether the worker completed, and whether the validator passed it.
pub(super) type Statuses = (Option<bool>, Option<bool>);

impl Gate {
    pub(super) fn judge(
        &self,
        phase_id: &str,
        card: &Card,
        actual: Option<&Changes>,
        (statuses, reported): (Statuses, Option<&BTreeSet<String>>),
    ) -> Accepted {
        let mut findings = Findings::default();
        let (completed, passed) = statuses;
        if completed == Some(false) {
            let problem = "a phase whose worker failed is not accepted";
            findings.add(EXECUTOR_REPORT, "status", problem);
        }
        if passed == Some(false) {
            let problem = "a phase whose validator failed it is not accepted";
            findings.add(VALIDATOR_REPORT, "status", problem);
        }
        let mut docs = Findings::default();
        if self.docs.is_empty() {
            docs.add("--docs", "", "names no file");
        }
        for document in &self.docs {
            if let Err(problem) = updated(document, card, actual, reported) {
                docs.add(&document.path, "", problem);
            }
        }
        let mut blackbox = Findings::default();
        self.blackbox(phase_id, card, &mut blackbox);
        let held = |part: &Findings| {
            if part.holds(super::Profile::Strict) {
                "holds"
            } else {
                "refused"
            }
        };
        let states = (held(&docs), held(&blackbox));
        findings.append(docs);
        findings.append(blackbox);
        Accepted {
            findings,
            docs: states.0,
            blackbox: states.1,
        }
    }

    fn blackbox(&self, phase_id: &str, card: &Card, findings: &mut Findings) {
        let file = self.blackbox.path.as_str();
        let Some(bytes) = fields::bytes(&self.blackbox.source, file, "", findings) else {
            return;
        };
        let format = Format::of_name(file).unwrap_or(Format::Yaml);
        let entries = match document::parse(format, bytes) {
            Ok(Value::Object(entries)) => entries,
            Ok(_) => return findings.add(file, "", "is not a mapping"),
            Err(error) => return findings.add(file, "", error.to_string()),
        };
        let mut fields = Fields {
            file,
            prefix: "",
            entries: &entries,
            findings,
        };
        fields.phase(phase_id);
        let Some(Value::Array(rows)) = fields.required("checks") else {
            return fields.refuse("checks", "is not a list");
        };
        let mut shown = BTreeSet::new();
        for (at, row) in rows.iter().enumerate() {
            let goal = row.get("goal_id").and_then(Value::as_str).map(str::trim);
            match (goal, row.get("pass")) {
                (Some(goal), Some(Value::Bool(true))) => {
                    shown.insert(goal);
                }
                (Some(_), Some(Value::Bool(false))) => {
                    fields.refuse(&format!("checks[{at}].pass"), "the check failed");
                }
                _ => {
                    let problem = "has no goal_id or no pass that is true or false";
                    fields.refuse(&format!("checks[{at}]"), problem);
                }
            }
        }
        for goal in &card.goals {
            if !shown.contains(goal.as_str()) {
                let problem = format!("no check of the goal `{goal}` passes");
                fields.refuse("checks", problem);
            }
        }
        if card.goals.is_empty() {
            fields.refuse("checks", "the task card names no goal to check");
        }
    }
}

/// Checks that the document exists, is not blank, and changed in this phase.
pub(super) fn updated(
    document: &Document,
    card: &Card,
    actual: Option<&Changes>,
    reported: Option<&BTreeSet<String>>,
) -> Result<(), String> {
    let bytes = match &document.source {
        Source::Bytes(bytes) => bytes,
        Source::Missing => return Err("is missing".to_owned()),
        Source::Unreadable(why) => return Err(format!("cannot be read: {why}")),
    };
    if bytes.trim_ascii().is_empty() {
        return Err("is empty".to_owned());
    }
    let path = match rule::normal(&document.path) {
        Ok(Some(path)) => String::from(path),
        Ok(None) => return Err("names no file".to_owned()),
        Err(why) => return Err(why.to_string()),
    };
    match card.policy {
        Some(Policy::Hardened) => {
            let changes = actual.ok_or("cannot be compared without the snapshots")?;
            let mut digest = String::new();
            for byte in Sha256::digest(bytes) {
                let _ = write!(digest, "{byte:02x}");
            }
            if changes.before.get(&path) == Some(&digest) {
                return Err("is as it was in workspace_before".to_owned());
            }
            Ok(())
        }
        Some(Policy::Legacy) if reported.is_some_and(|reported| reported.contains(&path)) => Ok(()),
        Some(Policy::Legacy) => Err("is not among the changed_files".to_owned()),
        None => Err("cannot be compared without a readable task card".to_owned()),
    }
}
