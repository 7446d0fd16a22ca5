//! Writes the reports, the manifest and the statement of a finished run.
//!
//! Everything here is computed from the ledger's state and the digests of the files, so writing a
//! bundle twice gives the same bytes. A stage that a run did not reach is reported as absent, never
//! filled in.

mod binding;
mod commands;
mod facts;
mod fixes;
mod manifest;
mod review;
mod search;

pub(crate) use binding::summary as role_binding;
pub(in crate::bundle) use review::Said;

use std::collections::BTreeMap;

use serde::Serialize;

use facts::{AgentMetrics, ContractLinks, EarlierFacts, TestFacts, WorkMetrics, open};

use super::attempts::result_file;
use super::granted::PersonGrant;
use super::statement::{
    Acceptance, LedgerHead, RunPredicate, RunStatement, SandboxFacts, SealedVerdict,
};
use super::verify::presence::{REQUIRED, expected_of};
use provost_core::bundle::layout::{
    CONTRACT, EVIDENCE_BUNDLE, EVIDENCE_REPORT, MANIFEST, PACK, PATCH, REVIEW_REPORT, TASK_RESULT,
    TEST_REPORT, WORK_REPORT,
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
use provost_core::run::fact::{AgentRun, Capture, CommandRun, Ending, Side};
use provost_core::run::{Gate, State};
use provost_core::verdict::{FoundAt, Verdict};
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
    #[error("the facts of a report are no object")]
    NotAnObject,
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

    /// A run that has not ended: `verdict` says so.
    pub(crate) fn unfinished(state: &'a State, verdict: &'a Verdict, files: &'a Files) -> Self {
        Self {
            state,
            verdict,
            files,
        }
    }

    /// The reports, by name; the files they refer to exist already.
    pub fn reports(&self) -> Result<Vec<(String, Vec<u8>)>, ComposeError> {
        let task = &self.state.names.task_id;
        let result = render(&self.task_result()?)?;
        let mut reports = self.judges()?;
        reports.extend([
            (WORK_REPORT.into(), render(&self.work_report()?)?),
            (result_file(task), result.clone()),
            (TASK_RESULT.into(), result),
        ]);
        reports.extend(self.fix_results()?);
        let search = self.evidence_bundle()?;
        reports.extend(search.map(|bytes| (EVIDENCE_BUNDLE.into(), bytes)));
        Ok(reports)
    }

    /// The reports that every run has from its start.
    pub(crate) fn judges(&self) -> Result<Vec<(String, Vec<u8>)>, ComposeError> {
        Ok(vec![
            (REVIEW_REPORT.into(), render(&self.review_report()?)?),
            (TEST_REPORT.into(), render(&self.test_report()?)?),
        ])
    }

    /// The evidence report: which files exist and which are missing. Written after all other files.
    pub fn evidence_report(&self) -> Result<Vec<u8>, ComposeError> {
        // Written after this report, or this report itself.
        let later = [MANIFEST, EVIDENCE_REPORT];
        let absent = |name: &&str| !self.files.contains_key(*name) && !later.contains(name);
        let expected = REQUIRED
            .into_iter()
            .chain(expected_of(Some(&self.state.opened)));
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

    /// The gate that decided about the contract: a special one if it refused.
    fn policy_gate(&self) -> Gate {
        let refused = |gate: &Gate| self.state.gates.get(gate).is_some_and(|it| !it.allow);
        let special = [Gate::Integrated, Gate::Sampling].into_iter().find(refused);
        special.unwrap_or(Gate::Policy)
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
                codex_thread_id: self.codex_thread(&self.state.names.task_id),
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
                policy_gate: self.gate(self.policy_gate()),
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
        let metrics = WorkMetrics {
            changed_files: changes,
            agent: self.state.agent.as_ref().map(AgentMetrics::of),
            earlier_attempts: EarlierFacts::all(self.state, self.files),
        };
        Ok(WorkReport {
            task_id: self.state.names.task_id.clone(),
            status: if self.verdict.allow {
                WorkStatus::Success
            } else {
                WorkStatus::Fail
            },
            patch_ref: PATCH.into(),
            diff_summary: format!("{} changed", counted(changes, "file")),
            evidence_refs: open(&ContractLinks::of(&self.state.opened.contract))?,
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
            metrics: Some(open(&metrics)?),
            notes: self.granted_words(),
        })
    }

    /// What persons gave the agents beyond the contract, as text.
    fn granted_words(&self) -> Option<String> {
        let granted = PersonGrant::all(self.state);
        let words: Vec<String> = granted.iter().map(PersonGrant::words).collect();
        (!words.is_empty()).then(|| format!("given by persons: {}", words.join("; ")))
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
        let base = self.state.tests.get(&Side::Base);
        let facts = TestFacts::of(self.state, run, base, self.tests());
        let (began, ended) = run.map(commands::span).unwrap_or_default();
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
                facts: open(&facts)?,
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
        let cache = ran.and_then(|run| run.cache.as_ref());
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
                start: cache.map(|cache| cache.start),
            },
            work: state.opened.work.clone(),
            granted: PersonGrant::all(state),
            finished_at: time(&state.latest)?,
        };
        Ok(predicate.state())
    }
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
    let line = |row| {
        let FoundAt { path, problem } = FoundAt::read(row);
        format!("{path}: {problem}")
    };
    match verdict.findings() {
        [] => vec![verdict.reason.clone()],
        rows => rows.iter().map(line).collect(),
    }
}

fn green(command: &CommandRun) -> bool {
    command.ending == Ending::Exited(0)
}

fn exited(command: &CommandRun) -> bool {
    matches!(command.ending, Ending::Exited(_))
}
