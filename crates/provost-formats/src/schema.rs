//! Gives JSON Schemas of the formats that others fixed.
//!
//! Each is the strict mode of the type that its reader deserializes; rules between fields are only
//! the readers'.
//!
//! # Invariants
//!
//! - What a schema refuses, its reader refuses. What a reader refuses for its shape, the schema
//!   refuses. A test changes every value of every example and compares.

#[cfg(test)]
mod tests;

use provost_core::schema::{FORMATS, Format};
use provost_core::verdict::Verdict;
use serde_json::Value;

use crate::child_package;
use crate::operator::assignment::Assignment;
use crate::operator::entry::Entry;
use crate::operator::envelope::Envelope;
use crate::operator::handoff::Handoff;
use crate::operator::result::TaskResult;
use crate::operator::{Kind, Strictness, Surroundings, check, lines};
use crate::packet::alone::{self, File};
use crate::packet::card::TaskCard;
use crate::packet::executor::ExecutorReport;
use crate::packet::log::LogRow;
use crate::packet::snapshot::WorkspaceSnapshot;
use crate::packet::validator::ValidatorReport;
use provost_core::document::yaml;

/// A format that others fixed: its schema, its reader and an example.
#[derive(Debug, Clone, Copy)]
pub struct Foreign {
    pub format: Format,
    /// A document that has every field, below `docs/examples`.
    pub example: &'static str,
    /// Judges one document, strictly.
    pub judge: fn(&Value) -> Verdict,
}

/// Every such format that has a schema.
pub const FOREIGN: &[Foreign] = &[
    Foreign {
        format: Format::foreign::<Assignment>("operator_assignment.v1"),
        example: "operator_assignment.json",
        judge: |value| payload(Kind::Assignment, value),
    },
    Foreign {
        format: Format::foreign::<Handoff>("operator_handoff.v1"),
        example: "operator_handoff.json",
        judge: |value| payload(Kind::Handoff, value),
    },
    Foreign {
        format: Format::foreign::<Envelope>("operator_orchestrator_output.v1"),
        example: "operator_orchestrator_output.json",
        judge: |value| payload(Kind::OrchestratorOutput, value),
    },
    Foreign {
        format: Format::foreign::<TaskResult>("operator_result.v1"),
        example: "operator_result.json",
        judge: |value| payload(Kind::Result, value),
    },
    Foreign {
        format: Format::foreign::<Entry>("operator_worklog_entry.v1"),
        example: "operator_worklog_entry.jsonl",
        judge: |value| lines(line(value).as_bytes(), Some("blocked"), Strictness::Strict),
    },
    Foreign {
        format: Format::foreign::<LogRow>("packet_acceptance_log_row.v1"),
        example: "packet_acceptance_log.jsonl",
        judge: |value| file(File::AcceptanceLog, &line(value)),
    },
    Foreign {
        format: Format::foreign::<ExecutorReport>("packet_executor_report.v1"),
        example: "packet_executor_report.yaml",
        judge: |value| file(File::ExecutorReport, &yaml::render(value)),
    },
    Foreign {
        format: Format::foreign::<TaskCard>("packet_task_card.v1"),
        example: "packet_task_card.yaml",
        judge: |value| file(File::TaskCard, &yaml::render(value)),
    },
    Foreign {
        format: Format::foreign::<ValidatorReport>("packet_validator_report.v1"),
        example: "packet_validator_report.yaml",
        judge: |value| file(File::ValidatorReport, &yaml::render(value)),
    },
    Foreign {
        format: Format::foreign::<WorkspaceSnapshot<'_>>("packet_workspace_snapshot.v1"),
        example: "packet_workspace_snapshot.json",
        judge: |value| file(File::Snapshot, &line(value)),
    },
];

/// Every format that has a schema, Provost's own first.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    let foreign = FOREIGN.iter().map(|foreign| &foreign.format);
    FORMATS
        .iter()
        .chain(foreign)
        .chain([&child_package::FORMAT, &child_package::REQUEST_FORMAT])
}

/// Finds a format by its name, with or without the version.
pub fn find(name: &str) -> Option<&'static Format> {
    formats().find(|format| format.is_called(name))
}

fn payload(kind: Kind, value: &Value) -> Verdict {
    let surroundings = Surroundings {
        file_exists: &|_| true,
    };
    check(
        kind,
        line(value).as_bytes(),
        Strictness::Strict,
        surroundings,
    )
}

fn file(file: File, text: &str) -> Verdict {
    alone::check(file, text.as_bytes(), Strictness::Strict)
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
