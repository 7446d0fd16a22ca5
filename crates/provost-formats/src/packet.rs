//! Judges control packets: the planner's permissions, the worker's report, the validator's
//! conclusion, and the evidence for it.
//!
//! A packet is a directory of three YAML files. A hardened one also has two snapshots of the
//! workspace and a log of the acceptance commands, and the files are compared with those. The
//! caller reads the files and passes them as [`Source`]s.
//!
//! # Invariants
//!
//! - Every violation is listed with its file and field; one does not hide another.
//! - A missing or unreadable field, or one of the wrong type, never counts as empty.
//! - A path with `..`, an absolute one, and two spellings of one path are refused.
//! - An acceptance command counts as run only if exactly that command was run.
//! - What the text of the format permits although it weakens the evidence is a finding in the
//!   strict profile and a warning otherwise.

pub mod alone;
pub mod card;
pub mod compose;
mod evidence;
pub mod executor;
mod finding;
mod gate;
pub mod log;
pub mod of_run;
mod rule;
pub mod seal;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod text;
pub mod validator;

use std::collections::BTreeSet;

use provost_core::code::Code;
use provost_core::path::RepoPath;
pub use provost_core::schema::Strictness;
use provost_core::verdict::Verdict;
use serde::Serialize;

use card::{Card, EVIDENCE_FILES, Policy};
use finding::{Findings, PacketFinding};
pub use gate::{Document, Gate};
use rule::Effort;
pub use snapshot::{Difference, Snapshot};

/// The task card; required.
pub const TASK_CARD: &str = "task_card.yaml";
/// The worker's report; required.
pub const EXECUTOR_REPORT: &str = "executor_report.yaml";
/// The validator's report; required.
pub const VALIDATOR_REPORT: &str = "validator_report.yaml";

/// The largest YAML file of a packet that is read, in bytes. Files of people and agents are small;
/// a longer one only costs time. Evidence may be as large as any JSON.
pub const LARGEST_YAML: usize = 4 * 1024 * 1024;

/// The content of a file, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Bytes(Vec<u8>),
    Missing,
    /// The file exists, but cannot be read, for this reason.
    Unreadable(String),
}

/// A piece of hardened evidence, by its key in the task card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// `workspace_before`
    Before,
    /// `workspace_after`
    After,
    /// `acceptance_log`
    Log,
}

impl Evidence {
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::Log];

    pub fn key(self) -> &'static str {
        match self {
            Self::Before => "workspace_before",
            Self::After => "workspace_after",
            Self::Log => "acceptance_log",
        }
    }

    /// Its file, in packets that Provost makes.
    fn file(self) -> &'static str {
        match self {
            Self::Before => seal::BEFORE,
            Self::After => seal::AFTER,
            Self::Log => seal::LOG,
        }
    }

    /// Its name in findings about the task card.
    fn field(self) -> String {
        format!("{EVIDENCE_FILES}.{}", self.key())
    }
}

/// A piece of evidence that the card names, with both places where it can be.
#[derive(Debug, Clone)]
pub struct Found {
    pub evidence: Evidence,
    /// Its path, as [`wanted`] gave it.
    pub path: RepoPath,
    /// The file relative to the root of the repository.
    pub in_repository: Source,
    /// The file relative to the directory of the packet.
    pub in_packet: Source,
}

#[derive(Debug)]
pub struct Packet<'a> {
    /// The phase that the caller asks for.
    pub phase_id: &'a str,
    /// The packet's directory, from the root of the repository; `None` if it is outside.
    pub directory: Option<RepoPath>,
    /// [`TASK_CARD`]
    pub task_card: Source,
    /// [`EXECUTOR_REPORT`]
    pub executor_report: Source,
    /// [`VALIDATOR_REPORT`]
    pub validator_report: Source,
    /// The evidence that [`wanted`] lists.
    pub evidence: Vec<Found>,
    /// The seal and the files it may cover; `None` if the caller did not look for one.
    pub seal: Option<seal::Sealed>,
}

impl Packet<'_> {
    /// Whether Provost made the evidence itself: a valid seal of any stage covers it.
    fn is_measured(&self, card: &Card) -> bool {
        let stages = [
            seal::Stage::Published,
            seal::Stage::Reported,
            seal::Stage::Sealed,
        ];
        let sealed = self.seal.as_ref().filter(|_| card.sealed);
        sealed.is_some_and(|sealed| seal::verify(sealed, self.phase_id, &stages).is_ok())
    }
}

/// The evidence that a task card names, as far as it can be read; the caller looks for it.
pub fn wanted(task_card: &Source) -> Vec<(Evidence, RepoPath)> {
    let mut nothing = Findings::default();
    match card::read(task_card, "", &mut nothing) {
        Some(card) if card.policy == Some(Policy::Hardened) => card.evidence,
        _ => Vec::new(),
    }
}

/// The directory of a phase's packet below the packet root, or the verdict about a phase id that
/// leads out of it.
pub fn directory(phase_id: &str) -> Result<RepoPath, Verdict> {
    RepoPath::try_from(phase_id.trim()).map_err(|why| {
        let mut findings = Findings::default();
        let problem = format!("{why}, so the packet would not lie in the packet root");
        findings.add("--phase-id", "phase_id", problem);
        refuse(&findings, Strictness::Literal, PacketDetails::default())
    })
}

/// Judges a packet, and with `gate` whether its phase is accepted.
pub fn judge(packet: &Packet<'_>, profile: Strictness, gate: Option<&Gate>) -> Verdict {
    let mut findings = Findings::default();
    let mut effort = Effort::default();
    let phase_id = packet.phase_id.trim();
    let card = card::read(&packet.task_card, phase_id, &mut findings);
    let report = executor::read(&packet.executor_report, phase_id, &mut findings);
    let conclusion = validator::read(&packet.validator_report, phase_id, &mut findings);
    let card = card.unwrap_or_default();
    is_sealed(packet, &card, &mut findings);
    if let Some(report) = &report {
        commands_are_reported(&card, &report.commands, &mut findings);
    }
    let mut actual = None;
    match card.policy {
        Some(Policy::Hardened) => {
            let reported = report.as_ref().map(|report| &report.changed);
            let mut bench = evidence::Bench {
                packet,
                card: &card,
                findings: &mut findings,
                effort: &mut effort,
                ephemeral: &evidence::ephemeral(),
                measured: packet.is_measured(&card),
            };
            actual = bench.judge(reported);
            if let Some(summary) = report.as_ref().and_then(|report| report.summary.as_ref()) {
                executor::summary_agrees(summary, &packet.evidence, &mut findings);
            }
        }
        Some(Policy::Legacy) => {
            if let Some(report) = &report {
                let field = "changed_files";
                for path in &report.changed {
                    in_scope(
                        &card,
                        path,
                        (EXECUTOR_REPORT, field),
                        &mut findings,
                        &mut effort,
                    );
                }
            }
        }
        None => {}
    }
    let statuses = (
        report.as_ref().and_then(|report| report.completed),
        conclusion.passed,
    );
    let accepted = gate.map(|gate| {
        let reported = report.as_ref().map(|report| &report.changed);
        gate.judge(phase_id, &card, actual.as_ref(), (statuses, reported))
    });
    let failed = failed(statuses);
    verdict(
        findings,
        profile,
        (&card, failed),
        actual.as_ref(),
        accepted,
    )
}

/// Why the phase failed, if the worker or the validator says so.
fn failed(statuses: gate::Statuses) -> Option<&'static str> {
    match statuses {
        (Some(false), Some(false)) => Some("the worker and the validator say that it failed"),
        (Some(false), _) => Some("the worker says that it failed"),
        (_, Some(false)) => Some("the validator says that it failed"),
        _ => None,
    }
}

/// Checks the seal of a packet that Provost made.
fn is_sealed(packet: &Packet<'_>, card: &Card, findings: &mut Findings) {
    let Some(sealed) = &packet.seal else {
        return;
    };
    if card.sealed || sealed.envelope != Source::Missing {
        sealed.check(packet.phase_id, &[seal::Stage::Sealed], findings);
    }
}

/// Checks that the worker's report lists every acceptance command.
fn commands_are_reported(card: &Card, run: &BTreeSet<String>, findings: &mut Findings) {
    for command in &card.commands {
        if !run.contains(command) {
            let problem = format!("the acceptance command `{command}` was not run");
            findings.add(EXECUTOR_REPORT, "commands_run", problem);
        }
    }
}

/// Checks that the card allows `path`.
fn in_scope(
    card: &Card,
    path: &str,
    (file, field): (&str, &str),
    findings: &mut Findings,
    effort: &mut Effort,
) {
    let covered = card.allowed.iter().any(|rule| rule.covers(path, effort));
    if effort.is_spent() {
        findings.add(TASK_CARD, "allowed_paths", Effort::PROBLEM);
    } else if !covered {
        findings.add(file, field, format!("`{path}` is outside allowed_paths"));
    }
}

/// The result of the gate beside the packet.
struct Accepted {
    findings: Findings,
    docs: &'static str,
    blackbox: &'static str,
}

fn verdict(
    mut findings: Findings,
    profile: Strictness,
    (card, failed): (&Card, Option<&str>),
    actual: Option<&evidence::Changes>,
    accepted: Option<Accepted>,
) -> Verdict {
    let held = |holds: bool| if holds { "holds" } else { "refused" };
    let packet = held(findings.holds(profile));
    let (docs, blackbox) = accepted
        .as_ref()
        .map_or(("not_checked", "not_checked"), |gate| {
            (gate.docs, gate.blackbox)
        });
    let mut details = PacketDetails {
        parts: Some(PartDetails {
            packet,
            docs,
            blackbox,
            evidence_policy: card.policy.map(Policy::name),
        }),
        changes: actual.map(|changes| ChangeDetails {
            changed_files: &changes.counted,
            ignored_files: &changes.ignored,
        }),
        ..PacketDetails::default()
    };
    if let Some(gate) = accepted {
        findings.append(gate.findings);
    }
    if findings.holds(profile) {
        let holds = "the packet holds; docs and black-box checks were not looked at";
        let reason = match (failed, docs) {
            (Some(why), _) => {
                details.phase = Some("failed");
                format!("the files are well formed, but the phase is not accepted: {why}")
            }
            (None, "not_checked") => holds.to_owned(),
            (None, _) => {
                "the packet holds, the docs were updated, the black-box checks pass".to_owned()
            }
        };
        let warnings = findings.warnings();
        if !warnings.is_empty() {
            let note = |row: &PacketFinding| format!("with --strict this is refused: {row}");
            details.notes = warnings.iter().map(note).collect();
            details.warnings = warnings;
        }
        return Verdict::allow(reason).with(details);
    }
    refuse(&findings, profile, details)
}

/// The facts behind a verdict about a packet.
#[derive(Default, Serialize)]
struct PacketDetails<'a> {
    #[serde(flatten)]
    parts: Option<PartDetails>,
    #[serde(flatten)]
    changes: Option<ChangeDetails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "<[PacketFinding]>::is_empty")]
    warnings: &'a [PacketFinding],
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<PacketFinding>>,
}

#[derive(Serialize)]
struct PartDetails {
    packet: &'static str,
    docs: &'static str,
    blackbox: &'static str,
    evidence_policy: Option<&'static str>,
}

#[derive(Serialize)]
struct ChangeDetails<'a> {
    changed_files: &'a BTreeSet<String>,
    ignored_files: &'a BTreeSet<String>,
}

fn refuse<'a>(
    findings: &'a Findings,
    profile: Strictness,
    mut details: PacketDetails<'a>,
) -> Verdict {
    let rows = findings.rows(profile);
    let first = rows.first().map(ToString::to_string).unwrap_or_default();
    let reason = match findings.count(profile) {
        0 | 1 => first,
        count => format!("{count} rules are broken; {first}"),
    };
    details.findings = Some(rows);
    if profile == Strictness::Literal {
        details.warnings = findings.warnings();
    }
    Verdict::deny(Code::PacketRefused, reason).with(details)
}
