//! Writes the files of a packet from the task, the measurements and the checks.

use std::collections::BTreeSet;

use provost_core::path::{RepoPath, is_portable_name};
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use super::card::{self, Policy};
use super::evidence::{self, Bench};
use super::finding::Findings;
use super::rule::Effort;
use super::seal::{AFTER, BEFORE, LOG};
use super::validator::CHECKS;
use super::{Document, Packet, Profile, Source, describe, executor, gate, refuse};
use provost_core::document::yaml;

/// The task that a planner publishes.
#[derive(Debug, Clone)]
pub struct Task {
    pub phase_id: String,
    pub goals: Vec<String>,
    /// The paths that may be changed.
    pub allowed: Vec<String>,
    /// Paths that change by themselves.
    pub noise: Vec<String>,
    pub commands: Vec<String>,
    /// The time of publication.
    pub published_at: String,
    /// The packet's directory, from the root of the repository; `None` if it may be anywhere.
    pub directory: Option<RepoPath>,
}

/// The result of an acceptance command.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The command, as the card has it.
    pub command: String,
    /// The exit code; the negative number of the signal that ended it.
    pub exit_code: i32,
    pub started_at: String,
    pub ended_at: String,
    /// The end of its standard output.
    pub stdout_tail: String,
    /// The end of its standard error.
    pub stderr_tail: String,
}

/// The task card of a hardened packet; refused if its own reader would refuse it.
pub fn task_card(task: &Task) -> Result<String, Verdict> {
    let phase_id = task.phase_id.trim();
    let place = |name: &str| match &task.directory {
        Some(directory) => format!("{directory}/{name}"),
        None => name.to_owned(),
    };
    let mut card = json!({
        "schema_version": "subagent_task_card_v1",
        "phase_id": phase_id,
        "goal_ids": task.goals,
        "published_at": task.published_at,
        "published_by": "provost",
        "executor_required": "codex_cli_subagent",
        "allowed_paths": task.allowed,
        "acceptance_commands": task.commands,
        "evidence_policy": Policy::Hardened.name(),
        "evidence_files": {
            "workspace_before": place(BEFORE),
            "workspace_after": place(AFTER),
            "acceptance_log": place(LOG),
        },
        "x_provost": { "sealed": true },
    });
    if !task.noise.is_empty() {
        card["external_noise_paths"] = json!(task.noise);
    }
    let text = yaml::render(&card);
    let mut findings = Findings::default();
    if !is_portable_name(phase_id) {
        let problem = "names no plain file on every system; write letters, digits, `.`, `_` and \
                       `-`, such as `phase-1`";
        findings.add(
            "--phase-id",
            "",
            format!("`{}` {problem}", phase_id.escape_debug()),
        );
    }
    card::read(
        &Source::Bytes(text.clone().into_bytes()),
        phase_id,
        &mut findings,
    );
    if findings.holds(Profile::Strict) {
        Ok(text)
    } else {
        Err(refuse(
            &findings,
            Profile::Strict,
            Value::Object(Map::new()),
        ))
    }
}

pub fn commands(task_card: &Source, phase_id: &str) -> Result<Vec<String>, Verdict> {
    let mut findings = Findings::default();
    match card::read(task_card, phase_id.trim(), &mut findings) {
        Some(card) if findings.holds(Profile::Literal) => Ok(card.commands),
        _ => Err(refuse(
            &findings,
            Profile::Literal,
            Value::Object(Map::new()),
        )),
    }
}

pub fn log(rows: &[Ran]) -> String {
    let line = |row: &Ran| {
        let row = json!({
            "command": row.command,
            "exit_code": row.exit_code,
            "started_at": row.started_at,
            "ended_at": row.ended_at,
            "stdout_tail": row.stdout_tail,
            "stderr_tail": row.stderr_tail,
        });
        format!("{row}\n")
    };
    rows.iter().map(line).collect()
}

/// The files that changed and count, by the snapshots of the packet.
pub fn changed_files(packet: &Packet<'_>) -> Result<BTreeSet<String>, Verdict> {
    let mut findings = Findings::default();
    let card = card::read(&packet.task_card, packet.phase_id.trim(), &mut findings);
    let card = card.unwrap_or_default();
    let mut bench = Bench {
        packet,
        card: &card,
        findings: &mut findings,
        effort: &mut Effort::default(),
        ephemeral: &evidence::ephemeral(),
        measured: true,
    };
    match bench.snapshots() {
        Some(changes) if findings.holds(Profile::Literal) => Ok(changes.counted),
        _ => Err(refuse(
            &findings,
            Profile::Literal,
            Value::Object(Map::new()),
        )),
    }
}

/// Those of the `changed` files that the task card does not allow.
pub fn out_of_scope(task_card: &Source, phase_id: &str, changed: &BTreeSet<String>) -> Vec<String> {
    let mut nothing = Findings::default();
    let card = card::read(task_card, phase_id.trim(), &mut nothing).unwrap_or_default();
    let mut effort = Effort::default();
    let mut covers = |path: &String| card.allowed.iter().any(|it| it.covers(path, &mut effort));
    changed
        .iter()
        .filter(|path| !covers(path))
        .cloned()
        .collect()
}

/// The executor report: what changed by the snapshots, and which commands were run.
pub fn executor_report(
    phase_id: &str,
    task_card: &Source,
    changed: &BTreeSet<String>,
    rows: &[Ran],
    reported_at: &str,
) -> String {
    let commands: Vec<&str> = rows.iter().map(|row| row.command.as_str()).collect();
    let passed = rows.iter().all(|row| row.exit_code == 0);
    let evidence = super::wanted(task_card).into_iter();
    let summary: Map<String, Value> = evidence
        .map(|(evidence, path)| (evidence.key().to_owned(), json!(path.as_str())))
        .collect();
    yaml::render(&json!({
        "schema_version": "subagent_executor_report_v1",
        "phase_id": phase_id.trim(),
        "executor": { "role": "codex_cli_subagent", "runtime": "codex_cli" },
        "status": if passed { "completed" } else { "failed" },
        "changed_files": changed,
        "commands_run": commands,
        "evidence_summary": summary,
        "reported_at": reported_at,
        "notes": "changed_files and commands_run were measured by provost, not reported",
    }))
}

/// Whether the report is readable and names the executor; a failed command says nothing about that.
fn identity(executor: &Findings) -> Result<(), String> {
    let rows = executor.rows(Profile::Strict);
    let of_identity = rows.iter().find(|row| row["field"] != "status");
    of_identity.map_or(Ok(()), |row| Err(describe(row)))
}

/// The validator report: each check with its result.
pub fn validator_report(packet: &Packet<'_>, docs: &[Document], reported_at: &str) -> String {
    let phase_id = packet.phase_id.trim();
    let mut all = Findings::default();
    let card = card::read(&packet.task_card, phase_id, &mut all).unwrap_or_default();
    let mut executor = Findings::default();
    let report = executor::read(&packet.executor_report, phase_id, &mut executor);
    let mut effort = Effort::default();
    let (mut scope, mut log) = (Findings::default(), Findings::default());
    let ephemeral = evidence::ephemeral();
    let reported = report.as_ref().map(|report| &report.changed);
    let mut bench = Bench {
        packet,
        card: &card,
        findings: &mut log,
        effort: &mut effort,
        ephemeral: &ephemeral,
        measured: true,
    };
    bench.log();
    bench.findings = &mut scope;
    let changes = bench.snapshots();
    if let Some(changes) = &changes {
        bench.compare(changes, reported);
    }
    let updated = docs.iter().map(|document| {
        let result = gate::updated(document, &card, changes.as_ref(), reported);
        result.map_err(|problem| format!("{}: {problem}", document.path))
    });
    let updated: Result<Vec<()>, String> = updated.collect();
    let ssot = match updated {
        Ok(docs) if docs.is_empty() => Err("no document was named".to_owned()),
        Ok(_) => Ok(()),
        Err(problem) => Err(problem),
    };
    let held = |findings: &Findings| match findings.rows(Profile::Strict).first() {
        None => Ok(()),
        Some(row) => Err(describe(row)),
    };
    let identity = identity(&executor);
    let results = [held(&all), identity, held(&scope), held(&log), ssot];
    let passed = results.iter().all(Result::is_ok) && executor.holds(Profile::Strict);
    let check = |(name, result): (&&str, &Result<(), String>)| {
        let seen = match *name {
            // Provost did not observe the work, and the report must not claim that it did.
            "executor_is_codex_cli" => "the report says so; provost did not watch the executor",
            _ => "checked by provost",
        };
        let detail = result.as_ref().err().map_or(seen, String::as_str);
        json!({ "name": name, "pass": result.is_ok(), "detail": detail })
    };
    let checks: Vec<Value> = CHECKS.iter().zip(&results).map(check).collect();
    yaml::render(&json!({
        "schema_version": "subagent_validator_report_v1",
        "phase_id": phase_id,
        "validator": { "role": "orchestrator_codex" },
        "status": if passed { "pass" } else { "fail" },
        "checks": checks,
        "reported_at": reported_at,
    }))
}
