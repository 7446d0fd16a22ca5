//! Writes the manifest: the facts of a run, and the digest of every file it left.

use std::collections::BTreeMap;

use super::facts::{ManifestFacts, open};
use super::{ComposeError, Composer, binding, render, time};
use crate::bundle::attempts::result_file;
use crate::seal::thread;
use provost_core::agent::Adapter;
use provost_core::agent::adapter::Start;
use provost_core::bundle::layout::{CONTRACT, REVIEW_REPORT, TASK_RESULT, TEST_REPORT};
use provost_core::bundle::report::{
    BadShape, Integrity, ManifestExtra, Model, Repo, RunManifest, RunStatus, Runner, Sha256,
    TaskEntry, TaskState, Trace, Versions,
};
use provost_core::contract::role::RunnerKind;

/// The note of a manifest from the start of a run.
const BEGUN: &str = "written when the run began; `events.jsonl` has grown since";

/// The request text; the format cannot express an empty one.
fn request(spec: &str) -> String {
    match spec {
        "" => "(the contract does not say what is to be done)".to_owned(),
        spec => spec.to_owned(),
    }
}

impl Composer<'_> {
    /// The manifest, once all files that it names exist.
    pub fn manifest(&self) -> Result<Vec<u8>, ComposeError> {
        let state = self.state;
        let ended = state.finished.is_some();
        let status = match (ended, self.verdict.allow) {
            (false, _) => RunStatus::Running,
            (true, true) => RunStatus::Success,
            (true, false) => RunStatus::Failure,
        };
        let known = state.opened.adapted.as_ref();
        let adapter = known.map_or(Adapter::COMMAND, |known| known.adapter);
        render(&RunManifest {
            run_id: state.names.run_id.clone(),
            created_at: time(&state.began)?,
            finished_at: ended.then(|| time(&state.latest)).transpose()?,
            status,
            task_id: Some(state.names.task_id.clone()),
            failure_reason: self.failure_reason().filter(|_| ended),
            notes: (!ended).then(|| BEGUN.to_owned()),
            user_request: request(&state.opened.contract.inputs.spec),
            trace_id: state.names.trace_id.clone(),
            diagnostic: None,
            // No program ran that the work would have to be attributed to.
            runner: state.opened.work.is_none().then(|| Runner {
                name: Some(adapter.name().to_owned()),
                mcp_only: Some(adapter.start() == Start::Server),
                profile: None,
            }),
            policy_pack: state.opened.contract.policy_pack,
            repo: self.repo(),
            versions: self.versions(),
            model: self.model(),
            role_binding_summary: Some(binding::summary(state)),
            tasks: self.tasks()?,
            artifacts: Vec::new(),
            evidence_hashes: self.hashes()?,
            integrity: Some(self.integrity()?),
            trace: Some(Trace {
                trace_id: Some(state.names.trace_id.clone()),
                trace_url: None,
            }),
            workflow: None,
            observability: None,
            x_provost: Some(self.extra()?),
        })
    }

    /// The model that the agent was started with, if it was named.
    fn model(&self) -> Option<Model> {
        let id = self.state.opened.adapted.as_ref()?.model.clone()?;
        Some(Model {
            id: Some(id),
            temperature: None,
            top_p: None,
            seed: None,
            notes: None,
        })
    }

    fn codex_version(&self) -> Option<String> {
        let known = self.state.opened.adapted.as_ref()?;
        let program = self.state.tested.as_ref()?.program.as_ref()?;
        let version = program.version.clone()?;
        (known.adapter.runner() == Some(RunnerKind::Codex)).then_some(version)
    }

    /// The thread of Codex on the task `task_id`.
    pub(super) fn codex_thread(&self, task_id: &str) -> Option<String> {
        let known = self.state.opened.adapted.as_ref()?;
        let thread = thread(self.state, task_id)?;
        (known.adapter.runner() == Some(RunnerKind::Codex)).then(|| thread.to_owned())
    }

    fn hashes(&self) -> Result<BTreeMap<String, Sha256>, BadShape> {
        let hash = |(name, (_, sha256)): (&String, &(u64, String))| {
            Ok((name.clone(), sha256.clone().try_into()?))
        };
        self.files.iter().map(hash).collect()
    }

    fn repo(&self) -> Repo {
        let published = self.state.published.as_ref();
        Repo {
            root: ".".into(),
            baseline_ref: self.state.opened.base_commit.to_string(),
            final_ref: published.map(|published| published.commit.to_string()),
            remote_url: None,
            branch: published.map(|published| published.branch.clone()),
        }
    }

    fn versions(&self) -> Versions {
        Versions {
            contracts_schema: "v1".into(),
            orchestrator: self.state.opened.version.clone(),
            codex_cli: self.codex_version(),
            agents_sdk: None,
            python: None,
            node: None,
        }
    }

    /// The task of the run, and the tasks of its fix attempts.
    fn tasks(&self) -> Result<Vec<TaskEntry>, ComposeError> {
        let state = self.state;
        let whole = self.task()?;
        let refused = state.past.iter().skip(1);
        let refused = refused.map(|past| (past.task_id.as_str(), TaskState::Failed));
        // The last task has the status of the run.
        let last = (!state.past.is_empty()).then(|| (state.task_id(), whole.status));
        let mut tasks = vec![whole];
        for (task_id, status) in refused.chain(last) {
            tasks.push(TaskEntry {
                task_id: task_id.to_owned(),
                contract: self.file(&format!("tasks/{task_id}/contract.json"))?,
                status,
                thread_id: thread(state, task_id).map(str::to_owned),
                result: self.file(&result_file(task_id)).ok(),
                review_report: None,
                test_report: None,
                ..tasks[0].clone()
            });
        }
        Ok(tasks)
    }

    fn task(&self) -> Result<TaskEntry, ComposeError> {
        let assigned = &self.state.opened.contract.assigned_agent;
        let ended = self.state.finished.is_some();
        let status = match (ended, self.verdict.allow) {
            (false, _) => TaskState::Running,
            (true, true) => TaskState::Success,
            (true, false) => TaskState::Failed,
        };
        let result = ended.then(|| self.file(TASK_RESULT)).transpose()?;
        Ok(TaskEntry {
            task_id: self.state.names.task_id.clone(),
            role: assigned.role,
            contract: self.file(CONTRACT)?,
            status,
            assigned_agent_id: Some(assigned.agent_id.clone()),
            thread_id: thread(self.state, &self.state.names.task_id).map(str::to_owned),
            result,
            review_report: Some(self.file(REVIEW_REPORT)?),
            test_report: Some(self.file(TEST_REPORT)?),
        })
    }

    fn integrity(&self) -> Result<Integrity, BadShape> {
        Ok(Integrity {
            contract_sha256: Some(self.state.opened.contract_sha256.clone().try_into()?),
            contract_signature_path: None,
            contract_signature_sha256: None,
            events_hashchain_path: Some("events.jsonl".into()),
            manifest_sha256: None,
        })
    }

    fn extra(&self) -> Result<ManifestExtra, ComposeError> {
        let opened = &self.state.opened;
        let facts = ManifestFacts::of(self.state, self.files, binding::schemas());
        Ok(ManifestExtra {
            object_format: opened.object_format,
            base_commit: opened.base_commit.clone(),
            base_tree: opened.base_tree.clone(),
            tree: self.candidate(),
            directories: BTreeMap::from([("codex".into(), "agent".into())]),
            facts: open(&facts)?,
        })
    }
}
