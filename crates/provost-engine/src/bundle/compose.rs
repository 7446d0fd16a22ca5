//! Writes the reports, the manifest and the statement of a finished run.
//!
//! Everything here is computed from the ledger's state and the digests of the files, so writing a
//! bundle twice gives the same bytes. A stage that a run did not reach is reported as absent, never
//! filled in.

mod binding;
mod commands;
mod manifest;
mod review;

pub(in crate::bundle) use review::Said;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::attempts::{self, PATCHES};
use super::statement::{
    Acceptance, LedgerHead, RunPredicate, RunStatement, SandboxFacts, SealedVerdict,
};
use super::verify::presence::{REQUIRED, expected_of};
use provost_core::bundle::layout::{
    CONTRACT, EVIDENCE_REPORT, MANIFEST, PACK, PATCH, REVIEW_REPORT, TASK_RESULT, TEST_REPORT,
    WORK_REPORT,
};
use provost_core::bundle::report::{
    ArtifactRef, BadShape, EvidenceFiles, EvidenceReport, EvidenceStatus, Failure, GateResult,
    Gates, GitState, Judged, NextSteps, Producer, ProducerRole, Sha256, TaskResult, TaskStatus,
    TestReport, TestRunner, TestRunnerRole, TestStatus, TestSummary, Time, Timestamps, WorkReport,
    WorkStatus,
};
use provost_core::contract::Test;
use provost_core::object::Oid;
use provost_core::record::Head;
use provost_core::run::fact::{AgentRun, Capture, CommandRun, Ending, ResultFile, Side};
use provost_core::run::fix::EarlierAttempt;
use provost_core::run::judge::{compare, optional_red};
use provost_core::run::{Gate, State};
use provost_core::verdict::Verdict;
use provost_core::wording::counted;

#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    #[error("the run has not ended")]
    Unfinished,
    /// A time or digest of the ledger is invalid.
    #[error(transparent)]
    Shape(#[from] BadShape),
    #[error("the bundle has no `{0}`")]
    Missing(String),
    #[error("a report cannot be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

/// The files of a bundle so far, by name, with length and SHA-256.
pub type Files = BTreeMap<String, (u64, String)>;

/// A finished run, with its files.
#[derive(Debug)]
pub struct Composer<'a> {
    state: &'a State,
    verdict: &'a Verdict,
    files: &'a Files,
}

impl<'a> Composer<'a> {
    pub fn new(state: &'a State, files: &'a Files) -> Result<Self, ComposeError> {
        let verdict = state.finished.as_ref().ok_or(ComposeError::Unfinished)?;
        Ok(Self {
            state,
            verdict,
            files,
        })
    }

    /// The reports, by name; the files they refer to exist already.
    pub fn reports(&self) -> Result<Vec<(String, Vec<u8>)>, ComposeError> {
        let task = &self.state.names.task_id;
        let result = render(&self.task_result()?)?;
        Ok(vec![
            (REVIEW_REPORT.into(), render(&self.review_report()?)?),
            (TEST_REPORT.into(), render(&self.test_report()?)?),
            (WORK_REPORT.into(), render(&self.work_report()?)?),
            (format!("results/{task}/result.json"), result.clone()),
            (TASK_RESULT.into(), result),
        ])
    }

    /// The evidence report: which files exist and which are missing. Written after all other files.
    pub fn evidence_report(&self) -> Result<Vec<u8>, ComposeError> {
        // Written after this report, or this report itself.
        let later = [MANIFEST, EVIDENCE_REPORT];
        let absent = |name: &&str| !self.files.contains_key(*name) && !later.contains(name);
        let expected = REQUIRED
            .into_iter()
            .chain(expected_of(self.state.opened.format));
        let withheld = |captured: &Capture| captured.withheld.names;
        let expected = expected.chain(
            self.state
                .captured
                .as_ref()
                .filter(|it| withheld(it))
                .map(|_| PACK),
        );
        let missing: Vec<String> = expected.filter(absent).map(str::to_owned).collect();
        let status = if missing.is_empty() {
            EvidenceStatus::Ok
        } else {
            EvidenceStatus::Fail
        };
        render(&EvidenceReport { status, missing })
    }

    fn file(&self, name: &str) -> Result<ArtifactRef, ComposeError> {
        let (bytes, sha256) = self
            .files
            .get(name)
            .ok_or_else(|| ComposeError::Missing(name.to_owned()))?;
        Ok(ArtifactRef {
            name: name.rsplit('/').next().unwrap_or(name).to_owned(),
            path: name.to_owned(),
            sha256: sha256.clone().try_into()?,
            media_type: None,
            size_bytes: Some(*bytes),
        })
    }

    fn head_ref(&self) -> String {
        let published = self
            .state
            .published
            .as_ref()
            .map(|published| published.commit.to_string());
        published.unwrap_or_else(|| self.state.opened.base_commit.to_string())
    }

    fn gate(&self, gate: Gate) -> GateResult {
        match self.state.gates.get(&gate) {
            None => GateResult::unasked("not reached"),
            Some(verdict) => GateResult {
                passed: Some(verdict.allow),
                violations: violations(verdict),
                note: None,
            },
        }
    }

    fn failure_reason(&self) -> Option<String> {
        (!self.verdict.allow).then(|| self.verdict.reason.clone())
    }

    fn failure(&self) -> Option<Failure> {
        (!self.verdict.allow).then(|| Failure {
            message: Some(self.verdict.reason.clone()),
            hint: Some(format!("provost explain {}", self.verdict.code)),
        })
    }

    fn tests(&self) -> &[Test] {
        self.state.contract.as_ref().map_or(&[], |it| &it.tests)
    }

    /// The result of the run in one text; the tests come first.
    fn summary(&self) -> String {
        let words = self.state.changed_tests_words();
        let words = words.iter().filter(|_| self.verdict.allow).cloned();
        let words: Vec<String> = words.chain([self.verdict.reason.clone()]).collect();
        words.join("; ")
    }

    fn task_result(&self) -> Result<TaskResult, ComposeError> {
        let status = if self.verdict.allow {
            TaskStatus::Success
        } else {
            TaskStatus::Failed
        };
        let (suggested, about) = if self.verdict.allow {
            ("land", self.state.names.run_id.clone())
        } else {
            ("explain", self.verdict.code.to_string())
        };
        Ok(TaskResult {
            run_id: self.state.names.run_id.clone(),
            task_id: self.state.names.task_id.clone(),
            producer: Producer {
                role: ProducerRole::Orchestrator,
                agent_id: "provost".into(),
                codex_thread_id: None,
            },
            status,
            started_at: time(&self.state.began)?,
            finished_at: time(&self.state.latest)?,
            summary: self.summary(),
            artifacts: self.made()?,
            git: GitState {
                baseline_ref: self.state.opened.base_commit.to_string(),
                head_ref: self.head_ref(),
                changed_files: self.file("diff_name_only.txt")?,
                patch: self.file(PATCH)?,
            },
            gates: Gates {
                diff_gate: self.gate(Gate::Diff),
                policy_gate: self.gate(Gate::Policy),
                review_gate: self.review_gate(),
                tests_gate: self.gate(Gate::Acceptance),
            },
            next_steps: NextSteps {
                suggested_action: suggested.into(),
                notes: format!("provost {suggested} {about}"),
            },
            attempt: Some(self.state.attempt),
            failure: self.failure(),
        })
    }

    /// The contract, the agent's output, and the output of each acceptance command.
    fn made(&self) -> Result<Vec<ArtifactRef>, ComposeError> {
        let agent = self.state.agent.iter().flat_map(AgentRun::streams);
        let run = self.state.tests.get(&Side::Candidate);
        let commands = run.into_iter().flat_map(|run| &run.commands);
        let commands = commands.flat_map(|ran| [&ran.stdout, &ran.stderr]);
        let streams = agent.chain(commands).map(|stream| stream.file.as_str());
        let names = std::iter::once(CONTRACT).chain(streams);
        names.map(|name| self.file(name)).collect()
    }

    fn work_report(&self) -> Result<WorkReport, ComposeError> {
        let changes = self
            .state
            .captured
            .as_ref()
            .map_or(0, |captured| captured.changes.len());
        let mut metrics = Map::new();
        metrics.insert("changed_files".into(), json!(changes));
        if let Some(agent) = &self.state.agent {
            metrics.insert("agent_wall_ms".into(), json!(agent.wall_ms));
            metrics.insert("agent_ending".into(), json!(agent.ending));
            if let Some(spent) = agent.spent() {
                metrics.insert("agent_usage".into(), json!(spent));
            }
            // In addition to the measured tokens; without those it is the same number.
            if let Some(claimed) = agent.claimed().filter(|_| agent.model.is_some()) {
                metrics.insert("agent_usage_claimed".into(), json!(claimed));
            }
            if let ResultFile::Text(text) = &agent.result {
                // The agent's own claim, as data beside the measurements.
                metrics.insert("agent_claims".into(), json!(text));
            }
        }
        let before = earlier(self.state, self.files);
        if !before.is_empty() {
            metrics.insert("earlier_attempts".into(), json!(before));
        }
        Ok(WorkReport {
            task_id: self.state.names.task_id.clone(),
            status: if self.verdict.allow {
                WorkStatus::Success
            } else {
                WorkStatus::Fail
            },
            patch_ref: PATCH.into(),
            diff_summary: format!("{} changed", counted(changes, "file")),
            evidence_refs: Map::new(),
            failure_reason: self.failure_reason().unwrap_or_default(),
            run_id: Some(self.state.names.run_id.clone()),
            attempt: Some(self.state.attempt),
            role: None,
            baseline_ref: Some(self.state.opened.base_commit.to_string()),
            head_ref: Some(self.head_ref()),
            patch: None,
            changed_files: None,
            gates: None,
            evidence: None::<EvidenceFiles>,
            next_actions: None,
            timestamps: Some(Timestamps {
                started_at: Some(time(&self.state.began)?),
                finished_at: Some(time(&self.state.latest)?),
            }),
            metrics: Some(metrics),
            notes: None,
        })
    }

    fn test_report(&self) -> Result<TestReport, ComposeError> {
        let run = self.state.tests.get(&Side::Candidate);
        let commands = match (run, &self.state.contract) {
            (Some(run), Ok(contract)) => commands::results(run, contract)?,
            _ => Vec::new(),
        };
        let passed = commands
            .iter()
            .filter(|command| command.exit_code == 0)
            .count();
        let mut facts = Map::new();
        if let Some(run) = run {
            facts.insert("tests".into(), commands::tallies(run));
            facts.insert("times".into(), commands::times(run));
            let red = optional_red(run, self.tests());
            let red: Vec<&str> = red.iter().map(|ran| ran.name.as_str()).collect();
            if !red.is_empty() {
                facts.insert("optional_red".into(), json!(red));
            }
        }
        if let Some(changed) = self.state.changed_tests() {
            facts.insert("tests_changed".into(), json!(changed));
        }
        let (began, ended) = run.map(commands::span).unwrap_or_default();
        if let (Some(base), Some(run)) = (self.state.tests.get(&Side::Base), run) {
            let compared = compare(base, run, self.tests());
            facts.insert("compared_with_base".into(), json!(compared));
            facts.insert("base".into(), commands::base(base));
        }
        if let Some(rounds) = self.state.cross_tests() {
            facts.insert("two_sided".into(), json!(rounds));
        }
        let failure = match run {
            None => Some(Failure {
                message: Some(format!(
                    "the acceptance commands did not run: {}",
                    self.verdict.reason
                )),
                hint: None,
            }),
            Some(_) => self.failure(),
        };
        Ok(TestReport {
            run_id: self.state.names.run_id.clone(),
            task_id: self.state.names.task_id.clone(),
            runner: TestRunner {
                role: TestRunnerRole::Orchestrator,
                agent_id: "provost".into(),
            },
            started_at: time(began.as_deref().unwrap_or(&self.state.began))?,
            finished_at: time(ended.as_deref().unwrap_or(&self.state.latest))?,
            status: self.test_status(),
            summary: Some(TestSummary {
                passed: Some(passed as u64),
                failed: Some((commands.len() - passed) as u64),
                skipped: None,
            }),
            commands,
            artifacts: Vec::new(),
            attempt: Some(self.state.attempt),
            failure,
            x_provost: Some(Judged {
                tree: run.map(|run| run.tree.clone()),
                facts,
            }),
        })
    }

    fn test_status(&self) -> TestStatus {
        match (
            self.state.tests.get(&Side::Candidate),
            self.state.gates.get(&Gate::Acceptance),
        ) {
            (None, _) => TestStatus::Skipped,
            (Some(_), Some(verdict)) if verdict.allow => TestStatus::Pass,
            (Some(run), _) if run.commands.iter().any(|command| !exited(command)) => {
                TestStatus::Error
            }
            (Some(_), _) => TestStatus::Fail,
        }
    }

    fn candidate(&self) -> Option<Oid> {
        self.state
            .captured
            .as_ref()
            .map(|captured| captured.tree.clone())
    }

    /// The statement to sign: the result of the run.
    pub fn statement(&self, manifest: &[u8], head: &Head) -> Result<RunStatement, ComposeError> {
        let state = self.state;
        let ran = state.tests.get(&Side::Candidate);
        let passed = ran.map_or(0, |run| {
            run.commands.iter().filter(|ran| green(ran)).count()
        });
        let sandbox = match &state.tested {
            None => None,
            Some(test) => Some(SandboxFacts {
                tier: test.tier.clone(),
                holes: test.holes.clone(),
                kernel: test.kernel.clone(),
                launcher_sha256: test.launcher.clone().try_into()?,
                profile_sha256: test.profile.clone().try_into()?,
                selftest_held: test.held,
            }),
        };
        let predicate = RunPredicate {
            run_id: state.names.run_id.clone(),
            contract_sha256: state.opened.contract_sha256.clone().try_into()?,
            object_format: state.opened.object_format,
            base_commit: state.opened.base_commit.clone(),
            base_tree: state.opened.base_tree.clone(),
            candidate_tree: self.candidate(),
            verdict: SealedVerdict {
                allow: self.verdict.allow,
                code: self.verdict.code,
            },
            ledger_head: LedgerHead::of(head).ok_or(ComposeError::Unfinished)?,
            manifest_sha256: Sha256::of(manifest),
            sandbox,
            acceptance: Acceptance {
                status: self.test_status(),
                commands: count(state.opened.contract.acceptance_tests.len()),
                passed: count(passed),
            },
            finished_at: time(&state.latest)?,
        };
        Ok(predicate.state())
    }
}

/// The refused attempts before the last one, with the files that hold their patches.
fn earlier(state: &State, files: &Files) -> Vec<Value> {
    let holds_attempts = files.keys().any(|name| name.starts_with(PATCHES));
    let row = |past: &EarlierAttempt| {
        let patch = attempts::patch(&past.task_id, past.attempt);
        let mut row = bare(past);
        if files.contains_key(&patch) {
            row["patch"] = json!(patch);
        } else if holds_attempts && past.captured.is_some() {
            row["left_out"] = json!("the attempts are larger together than a bundle holds");
        }
        row
    };
    state.past.iter().map(row).collect()
}

fn bare(past: &EarlierAttempt) -> Value {
    let agent = past.agent.as_ref();
    json!({
        "attempt": past.attempt,
        "task_id": past.task_id,
        "code": past.refusal.code,
        "reason": past.refusal.reason,
        "tree": past.captured.as_ref().map(|captured| &captured.tree),
        "kept_by": past.captured.as_ref().map(|captured| &captured.kept_by),
        "agent_wall_ms": agent.map(|agent| agent.wall_ms),
        "agent_usage": agent.and_then(AgentRun::spent),
    })
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn time(text: &str) -> Result<Time, BadShape> {
    text.to_owned().try_into()
}

fn render(value: &impl Serialize) -> Result<Vec<u8>, ComposeError> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn violations(verdict: &Verdict) -> Vec<String> {
    if verdict.allow {
        return Vec::new();
    }
    let rows = verdict
        .details
        .as_ref()
        .and_then(|details| details.get("findings"));
    let rows = rows
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if rows.is_empty() {
        return vec![verdict.reason.clone()];
    }
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| format!("{}: {}", text(row, "path"), text(row, "problem")))
        .collect()
}

fn green(command: &CommandRun) -> bool {
    command.ending == Ending::Exited(0)
}

fn exited(command: &CommandRun) -> bool {
    matches!(command.ending, Ending::Exited(_))
}
