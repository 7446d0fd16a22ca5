//! Decides whether a phase is accepted: its packet holds, its docs were updated, and the
//! black-box checks of its goals pass.
//!
//! The black-box file is a document like those of the packet. Every goal of the task card needs a
//! check in it.

use std::collections::BTreeSet;

use provost_core::json::Node;
use provost_core::object::sha256;
use provost_core::schema::leaf::Filled;
use provost_core::schema::read::FormatReader;
use schemars::JsonSchema;
use serde::Deserialize;

use super::card::{Card, Policy};
use super::evidence::Changes;
use super::finding::Findings;
use super::{Accepted, EXECUTOR_REPORT, Evidence, Source, VALIDATOR_REPORT, rule};
use provost_core::document::{self, Format};

/// A file that the caller names for the gate.
#[derive(Debug)]
pub struct Document {
    /// As it was named, from the root of the repository.
    pub path: String,
    pub source: Source,
}

/// The results of the black-box checks.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct BlackBoxResults {
    #[schemars(with = "Filled")]
    phase_id: Option<String>,
    #[schemars(with = "Vec<GoalCheck>")]
    checks: Option<Vec<GoalCheck>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct GoalCheck {
    #[schemars(with = "String")]
    goal_id: Option<String>,
    #[schemars(with = "bool")]
    pass: Option<bool>,
}

static RESULTS: FormatReader<BlackBoxResults> = FormatReader::new();

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
            if part.holds(super::Strictness::Strict) {
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
        let mut found = findings.of(file);
        let Some(bytes) = found.bytes(&self.blackbox.source, "") else {
            return;
        };
        let format = Format::of_name(file).unwrap_or(Format::Yaml);
        let node = match document::parse(format, bytes) {
            Ok(value) => Node::from(value),
            Err(error) => return found.add("", error.to_string()),
        };
        let Some(results) = found.read(&node, &RESULTS, "") else {
            return;
        };
        found.phase(results.phase_id.as_deref(), phase_id);
        let mut shown = BTreeSet::new();
        for (at, row) in results.checks.iter().flatten().enumerate() {
            match (&row.goal_id, row.pass) {
                (Some(goal), Some(true)) => {
                    shown.insert(goal.trim());
                }
                (_, Some(false)) => {
                    found.add(&format!("checks[{at}].pass"), "the check failed");
                }
                // What is missing is refused already.
                (None, Some(true)) | (_, None) => {}
            }
        }
        for goal in &card.goals {
            if !shown.contains(goal.as_str()) {
                let problem = format!("no check of the goal `{goal}` passes");
                found.add("checks", problem);
            }
        }
        if card.goals.is_empty() {
            found.add("checks", "the task card names no goal to check");
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
            if changes.before.get(&path) == Some(&sha256(bytes)) {
                return Err(format!("is as it was in {}", Evidence::Before.key()));
            }
            Ok(())
        }
        Some(Policy::Legacy) if reported.is_some_and(|reported| reported.contains(&path)) => Ok(()),
        Some(Policy::Legacy) => Err("is not among the changed_files".to_owned()),
        None => Err("cannot be compared without a readable task card".to_owned()),
    }
}
