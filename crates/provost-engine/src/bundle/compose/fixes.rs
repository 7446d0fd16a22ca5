//! Writes the results of the tasks that fixed a refused attempt.
//!
//! The first attempt has the task of the run, whose result is the result of the whole run.

use std::collections::BTreeMap;

use super::{ComposeError, Composer, render, violations};
use crate::bundle::attempts::{result_file, result_patch};
use provost_core::bundle::layout::CHANGED;
use provost_core::bundle::report::{
    ArtifactRef, Failure, GateResult, Gates, GitState, NextSteps, TaskResult, TaskStatus,
};
use provost_core::run::Gate;
use provost_core::run::fact::AgentRun;
use provost_core::verdict::Verdict;

/// A task that fixed a refused attempt, with its outcome.
struct FixTask<'a> {
    task_id: &'a str,
    attempt: u32,
    verdict: &'a Verdict,
    gates: &'a BTreeMap<Gate, Verdict>,
    agent: Option<&'a AgentRun>,
}

impl Composer<'_> {
    fn fixes(&self) -> Vec<FixTask<'_>> {
        let state = self.state;
        let refused = state.past.iter().skip(1).map(|past| FixTask {
            task_id: &past.task_id,
            attempt: past.attempt,
            verdict: &past.refusal,
            gates: &past.gates,
            agent: past.agent.as_ref(),
        });
        let last = (!state.past.is_empty()).then(|| FixTask {
            task_id: state.task_id(),
            attempt: state.attempt,
            verdict: self.verdict,
            gates: &state.gates,
            agent: state.agent.as_ref(),
        });
        refused.chain(last).collect()
    }

    /// The result of every fix whose patch is in the bundle, by name.
    pub(super) fn fix_results(&self) -> Result<Vec<(String, Vec<u8>)>, ComposeError> {
        let mut files = Vec::new();
        for fix in self.fixes() {
            let patch = result_patch(fix.task_id);
            if self.files.contains_key(&patch) {
                let result = self.fix_result(&fix, self.file(&patch)?)?;
                files.push((result_file(fix.task_id), render(&result)?));
            }
        }
        Ok(files)
    }

    fn fix_result(
        &self,
        fix: &FixTask<'_>,
        patch: ArtifactRef,
    ) -> Result<TaskResult, ComposeError> {
        let gate = |gate: Gate| match fix.gates.get(&gate) {
            None => GateResult::unasked("not reached"),
            Some(verdict) => GateResult {
                passed: Some(verdict.allow),
                violations: violations(verdict),
                note: None,
            },
        };
        let whole = self.task_result()?;
        let streams = fix.agent.into_iter().flat_map(AgentRun::streams);
        let artifacts = streams.map(|stream| self.file(&stream.file));
        let allow = fix.verdict.allow;
        Ok(TaskResult {
            task_id: fix.task_id.to_owned(),
            status: if allow {
                TaskStatus::Success
            } else {
                TaskStatus::Failed
            },
            summary: fix.verdict.reason.clone(),
            artifacts: artifacts.collect::<Result<_, _>>()?,
            git: GitState {
                // The paths of the candidate; those of an earlier attempt are in its patch.
                changed_files: self.file(CHANGED)?,
                patch,
                ..whole.git
            },
            gates: Gates {
                diff_gate: gate(Gate::Diff),
                policy_gate: gate(Gate::Policy),
                review_gate: gate(Gate::Review),
                tests_gate: gate(Gate::Acceptance),
            },
            next_steps: NextSteps {
                notes: format!("attempt {} of the run", fix.attempt),
                ..whole.next_steps
            },
            attempt: Some(fix.attempt),
            failure: (!allow).then(|| Failure {
                message: Some(fix.verdict.reason.clone()),
                hint: Some(format!("provost explain {}", fix.verdict.code)),
            }),
            ..whole
        })
    }
}
