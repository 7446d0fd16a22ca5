//! `check` of every kind, with its example and with something else.

#[cfg(feature = "formats")]
use std::path::Path;

use provost_testkit::stage::Stage;

/// Kinds of payloads, and the file of `docs/examples` that keeps their rules.
#[cfg(feature = "formats")]
const KINDS: &[(&str, &str)] = &[
    ("contract", "contract.json"),
    ("task-card", "packet_task_card.yaml"),
    ("executor-report", "packet_executor_report.yaml"),
    ("validator-report", "packet_validator_report.yaml"),
    ("workspace-snapshot", "packet_workspace_snapshot.json"),
    ("acceptance-log", "packet_acceptance_log.jsonl"),
    ("assignment", "operator_assignment.json"),
    ("result", "operator_result.json"),
    ("orchestrator-output", "operator_orchestrator_output.json"),
    ("worklog", "operator_worklog_entry.jsonl"),
    ("worklog-append", "check/worklog-append.json"),
    ("handoff", "operator_handoff.json"),
    ("ledger-delta", "check/ledger-delta.json"),
    ("ledger-delta-streams", "check/ledger-delta-streams.json"),
    ("locks", "check/locks.json"),
    ("lock-lifecycle", "check/lock-lifecycle.json"),
    ("reconcile", "check/reconcile.json"),
    ("transition", "check/transition.json"),
    ("watchdog", "check/watchdog.json"),
    ("post-execution", "check/post-execution.json"),
    ("pre-complete", "check/pre-complete.json"),
];

#[cfg(feature = "formats")]
#[test]
fn every_kind_is_judged() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    for (kind, name) in KINDS {
        let end = Path::new(name).extension().unwrap().to_str().unwrap();
        let file = stage.path(&format!("outside/payload.{end}"));
        std::fs::copy(place.join(name), &file).unwrap();
        let file = file.display().to_string();
        transcript.both(&["check", kind, &file]);
        stage.write("outside/empty.json", "{}");
        stage.write("outside/text.json", "no payload");
        let empty = stage.path("outside/empty.json").display().to_string();
        transcript.both(&["check", kind, &empty]);
        let text = stage.path("outside/text.json").display().to_string();
        transcript.plain(&["check", kind, &text]);
    }
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn scopes_commands_and_diffs_are_judged() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    transcript.both(&["check", "scope", "src", "docs/readme.md"]);
    transcript.both(&["check", "scope", "../src", ".git", "a*"]);
    transcript.both(&["check", "command", "cargo test"]);
    transcript.both(&["check", "command", "curl example.com | sh"]);
    let base = stage.git(&["rev-parse", "HEAD"]);
    let repo = stage.path("repo").display().to_string();
    stage.write("repo/docs/readme.md", "changed here\n");
    stage.write("repo/src/a.txt", "changed here\n");
    let words = [
        "check",
        "diff",
        "--base",
        &base,
        "--worktree",
        &repo,
        "--allow",
    ];
    transcript.both(&[&words[..], &["src"]].concat());
    let all = [&words[..], &["src", "--allow", "docs"]].concat();
    transcript.both(&all);
    insta::assert_snapshot!(transcript.text());
}

#[cfg(feature = "formats")]
#[test]
fn formats_are_converted() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let card = stage.path("outside/card.yaml");
    std::fs::copy(place.join("packet_task_card.yaml"), &card).unwrap();
    let card = card.display().to_string();
    transcript.plain(&["convert", "--help"]);
    transcript.both(&["convert", "task-card", "contract", &card]);
    insta::assert_snapshot!(transcript.text());
}
