//! The files of a control packet, in which unknown fields are accepted.

use serde_json::{Value, json};

use super::build::{filled, flag, list, may, must, only, open, some, word};
use crate::packet::{CHECKS, Evidence};

/// A time, which the format does not describe further.
fn moment() -> Value {
    filled()
}

fn evidence_files() -> Value {
    open(
        Evidence::ALL
            .map(|evidence| must(evidence.key(), filled()))
            .into(),
    )
}

pub(super) fn task_card() -> Value {
    let card = vec![
        must("schema_version", only("subagent_task_card_v1")),
        must("phase_id", filled()),
        must("goal_ids", some(&filled())),
        must("executor_required", only("codex_cli_subagent")),
        must("allowed_paths", some(&filled())),
        must("acceptance_commands", some(&filled())),
        must("published_at", moment()),
        may("evidence_policy", word(["legacy", "hardened"])),
        may("evidence_files", evidence_files()),
        may("external_noise_paths", list(&filled())),
    ];
    open(card)
}

pub(super) fn executor_report() -> Value {
    let executor = open(vec![
        must("role", only("codex_cli_subagent")),
        must("runtime", only("codex_cli")),
    ]);
    open(vec![
        must("schema_version", only("subagent_executor_report_v1")),
        must("phase_id", filled()),
        must("executor", executor),
        must("status", word(["completed", "failed"])),
        must("changed_files", list(&filled())),
        must("commands_run", list(&filled())),
        must("reported_at", moment()),
        // Its paths are compared with the card in a whole packet.
        may("evidence_summary", json!({ "type": ["object", "null"] })),
    ])
}

pub(super) fn validator_report() -> Value {
    let check = open(vec![must("name", filled()), must("pass", flag())]);
    let checks = json!({ "type": "array", "items": check, "minItems": CHECKS.len() });
    open(vec![
        must("schema_version", only("subagent_validator_report_v1")),
        must("phase_id", filled()),
        must(
            "validator",
            open(vec![must("role", only("orchestrator_codex"))]),
        ),
        must("status", word(["pass", "fail"])),
        must("checks", checks),
        must("reported_at", moment()),
    ])
}

pub(super) fn snapshot() -> Value {
    let digest = json!({ "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" });
    let files = json!({ "type": "object", "additionalProperties": digest });
    open(vec![
        must("schema_version", only("subagent_workspace_snapshot_v1")),
        must("captured_at", moment()),
        must("files", files),
    ])
}

pub(super) fn log_row() -> Value {
    open(vec![
        must("command", filled()),
        must("exit_code", json!({ "type": "integer" })),
        must(
            "started_at",
            json!({ "type": "string", "format": "date-time" }),
        ),
        must(
            "ended_at",
            json!({ "type": "string", "format": "date-time" }),
        ),
        may("stdout_tail", json!({ "type": ["string", "null"] })),
    ])
}
