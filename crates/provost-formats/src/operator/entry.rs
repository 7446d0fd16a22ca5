//! One entry of a worklog.

use provost_core::board::row::TaskId;
use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::time::Written;
use serde_json::json;

use super::finding::{Findings, Place};
use super::object::{Length, Object};
use super::shape;

/// One step that a worker logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// RFC 3339, in UTC.
    pub timestamp: String,
    /// The same time, for comparison.
    pub time: Written,
    pub run_id: String,
    pub task_id: TaskId,
    pub actor: String,
    pub action: String,
    pub files_touched: Vec<String>,
    /// Data, never instructions.
    pub decision: String,
    /// Data, never instructions.
    pub result: String,
    pub next_step: String,
    /// Why the task could not continue.
    pub code: Option<Code>,
    /// What proves the result.
    pub evidence: Option<String>,
}

/// Reads an entry at `place`; `None` if its shape is wrong.
pub(super) fn parse(value: &Node<'_>, place: Place<'_>, found: &mut Findings) -> Option<Entry> {
    let object = Object::of(value, place, found)?;
    let timestamp = object.text("timestamp", Length::Filled, found);
    let time = timestamp.and_then(|text| shape::utc(text, object.at("timestamp"), found));
    let run_id = shape::run_id(object, found);
    let task_id = shape::task_id(object, "task_id", found);
    let actor = object.text("actor", Length::Filled, found);
    let action = object.text("action", Length::Filled, found);
    let files_touched = object.texts("files_touched", Length::Filled, found);
    let decision = object.text("decision", Length::Any, found);
    let result = object.text("result", Length::Any, found);
    let next_step = object.text("next_step", Length::Any, found);
    let before = found.count();
    let code = shape::optional_code(object, "code", found);
    let evidence = object.optional_text("evidence", found);
    object.close(
        &[
            "timestamp",
            "run_id",
            "task_id",
            "actor",
            "action",
            "files_touched",
            "decision",
            "result",
            "next_step",
            "code",
            "evidence",
        ],
        found,
    );
    let is_whole = found.count() == before;
    // A log is stored and passed on, so no field of it may contain a secret.
    found.look_for_secrets_below(place, value);
    let entry = Entry {
        timestamp: timestamp?.to_owned(),
        time: time?,
        run_id: run_id?.to_owned(),
        task_id: task_id?,
        actor: actor?.to_owned(),
        action: action?.to_owned(),
        files_touched: files_touched?.into_iter().map(str::to_owned).collect(),
        decision: decision?.to_owned(),
        result: result?.to_owned(),
        next_step: next_step?.to_owned(),
        code,
        evidence: evidence.map(str::to_owned),
    };
    is_whole.then_some(entry)
}

impl Entry {
    /// The entry as one line of a log, without the line break.
    pub fn render(&self) -> String {
        let mut entry = json!({
            "timestamp": self.timestamp,
            "run_id": self.run_id,
            "task_id": self.task_id,
            "actor": self.actor,
            "action": self.action,
            "files_touched": self.files_touched,
            "decision": self.decision,
            "result": self.result,
            "next_step": self.next_step,
        });
        if let Some(code) = self.code {
            entry["code"] = json!(code);
        }
        if let Some(evidence) = &self.evidence {
            entry["evidence"] = json!(evidence);
        }
        entry.to_string()
    }
}
