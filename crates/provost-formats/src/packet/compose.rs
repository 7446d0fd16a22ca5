//! Writes the files of a packet from the task, the measurements and the checks.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::path::{RepoPath, is_portable_name};
use provost_core::verdict::Verdict;
use serde_json::json;

use super::card::{self, CardVersion, EvidenceFiles, Policy, TaskCard};
use super::evidence::{self, Bench};
use super::executor::{self, Executor, ExecutorReport, ExecutorStatus, ReportVersion, Runtime};
use super::finding::Findings;
use super::log::{ExitCode, LogRow};
use super::rule::Effort;
use super::text::ExecutorRole;
use super::validator::{
    CHECKS, Check, CheckRow, Checks, ConclusionVersion, Validator, ValidatorReport, ValidatorRole,
    ValidatorStatus,
};
use super::{Document, Evidence, Packet, Source, Strictness, gate};
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
    let place = |evidence: Evidence| match &task.directory {
        Some(directory) => format!("{directory}/{}", evidence.file()),
        None => evidence.file().to_owned(),
    };
    let card = TaskCard {
        schema_version: Some(CardVersion::V1),
        phase_id: Some(phase_id.to_owned()),
        goal_ids: Some(task.goals.clone()),
        executor_required: Some(ExecutorRole::CodexCliSubagent),
        allowed_paths: Some(task.allowed.clone()),
        acceptance_commands: Some(task.commands.clone()),
        published_at: Some(task.published_at.as_str().into()),
        published_by: Some("provost"),
        evidence_policy: Some(Policy::Hardened.name().to_owned()),
        evidence_files: Some(json!(EvidenceFiles::all(place))),
        external_noise_paths: Some(task.noise.clone()).filter(|noise| !noise.is_empty()),
        x_provost: Some(json!({ "sealed": true })),
    };
    let text = yaml::render(&json!(card));
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
    findings.settle(Some(text), Strictness::Strict)
}

pub fn commands(task_card: &Source, phase_id: &str) -> Result<Vec<String>, Verdict> {
    let mut findings = Findings::default();
    let card = card::read(task_card, phase_id.trim(), &mut findings);
    let card = findings.settle(card, Strictness::Literal)?;
    Ok(card.commands)
}

pub fn log(rows: &[Ran]) -> String {
    let line = |row: &Ran| {
        let row = json!(LogRow {
            command: Some(row.command.clone()),
            exit_code: Some(ExitCode::Integer(row.exit_code.into())),
            started_at: Some(row.started_at.as_str().into()),
            ended_at: Some(row.ended_at.as_str().into()),
            stdout_tail: Some(json!(row.stdout_tail)),
            stderr_tail: Some(json!(row.stderr_tail)),
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
    let changes = bench.snapshots();
    let changes = findings.settle(changes, Strictness::Literal)?;
    Ok(changes.counted)
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
    let passed = rows.iter().all(|row| row.exit_code == 0);
    let evidence = super::wanted(task_card).into_iter();
    let summary: BTreeMap<&str, RepoPath> = evidence
        .map(|(evidence, path)| (evidence.key(), path))
        .collect();
    yaml::render(&json!(ExecutorReport {
        schema_version: Some(ReportVersion::V1),
        phase_id: Some(phase_id.trim().to_owned()),
        executor: Some(Executor {
            role: Some(ExecutorRole::CodexCliSubagent),
            runtime: Some(Runtime::CodexCli),
        }),
        status: Some(if passed {
            ExecutorStatus::Completed
        } else {
            ExecutorStatus::Failed
        }),
        changed_files: Some(changed.iter().cloned().collect()),
        commands_run: Some(rows.iter().map(|row| row.command.clone()).collect()),
        evidence_summary: Some(json!(summary)),
        reported_at: Some(reported_at.into()),
        notes: Some("changed_files and commands_run were measured by provost, not reported"),
    }))
}

/// Whether the report is readable and names the executor; a failed command says nothing about that.
fn identity(executor: &Findings) -> Result<(), String> {
    let rows = executor.rows(Strictness::Strict);
    let of_identity = rows.iter().find(|row| row.field != "status");
    of_identity.map_or(Ok(()), |row| Err(row.to_string()))
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
    let held = |findings: &Findings| match findings.rows(Strictness::Strict).first() {
        None => Ok(()),
        Some(row) => Err(row.to_string()),
    };
    let identity = identity(&executor);
    let results = [held(&all), identity, held(&scope), held(&log), ssot];
    let passed = results.iter().all(Result::is_ok) && executor.holds(Strictness::Strict);
    let check = |(name, result): (&&str, &Result<(), String>)| {
        let seen = match *name {
            // Provost did not observe the work, and the report must not claim that it did.
            "executor_is_codex_cli" => "the report says so; provost did not watch the executor",
            _ => "checked by provost",
        };
        let detail = result.as_ref().err().map_or(seen, String::as_str);
        Check {
            name: Some((*name).to_owned()),
            result: CheckRow {
                pass: Some(result.is_ok()),
                detail: Some(json!(detail)),
            },
        }
    };
    let checks = CHECKS.iter().zip(&results).map(check).collect();
    yaml::render(&json!(ValidatorReport {
        schema_version: Some(ConclusionVersion::V1),
        phase_id: Some(phase_id.to_owned()),
        validator: Some(Validator {
            role: Some(ValidatorRole::OrchestratorCodex),
        }),
        status: Some(if passed {
            ValidatorStatus::Pass
        } else {
            ValidatorStatus::Fail
        }),
        checks: Some(Checks::List(checks)),
        reported_at: Some(reported_at.into()),
    }))
}
