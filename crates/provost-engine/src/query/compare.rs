//! Several agents on one contract, side by side.

use provost_core::exit::Exit;
use provost_core::run::spent::Spent;
use serde::Serialize;

use super::archive::{self, RunArchive};
use super::summary::{RunStatus, RunSummary};

/// The runs of one contract, in the order of their agents.
#[derive(Debug, Serialize)]
pub struct ComparisonView {
    pub runs: Vec<ComparedRun>,
}

#[derive(Debug, Serialize)]
pub struct ComparedRun {
    /// As it was typed.
    pub agent: String,
    #[serde(flatten)]
    pub summary: RunSummary,
    pub changed_files: usize,
    /// The lines of all text files that were added.
    pub added: u64,
    pub removed: u64,
    pub usage: Option<Spent>,
    /// Milliseconds that the agents of all attempts worked.
    pub agent_ms: Option<u64>,
}

impl ComparedRun {
    /// The run of `agent`, as far as it came.
    pub fn of(archive: &dyn RunArchive, agent: &str, run_id: &str) -> Self {
        let mut rows = super::summaries(archive, &[run_id.to_owned()]);
        let never = || {
            let reason = "the run did not begin".to_owned();
            RunSummary::without_facts(run_id, RunStatus::NotBegun, None, reason)
        };
        let summary = rows.pop().unwrap_or_else(never);
        let state = archive::state(archive, run_id).ok();
        let captured = state.as_ref().and_then(|it| it.captured.as_ref());
        let (mut added, mut removed) = (0, 0);
        if let (Some(state), Some(captured)) = (&state, captured) {
            let lines = archive.line_counts(&state.opened.base_tree, &captured.tree);
            for count in lines.values().flatten() {
                added += count.added;
                removed += count.removed;
            }
        }
        Self {
            agent: agent.to_owned(),
            changed_files: captured.map_or(0, |it| it.changes.len()),
            added,
            removed,
            usage: state.as_ref().and_then(|it| it.spent(None)),
            agent_ms: state.as_ref().and_then(super::spent::agent_ms),
            summary,
        }
    }
}

impl ComparisonView {
    /// Those that were accepted.
    pub fn accepted(&self) -> impl Iterator<Item = &ComparedRun> {
        let is_accepted = |run: &&ComparedRun| run.summary.status == RunStatus::Success;
        self.runs.iter().filter(is_accepted)
    }

    /// Yes if one of them can land.
    pub fn exit(&self) -> Exit {
        match self.accepted().next() {
            Some(_) => Exit::Yes,
            None => Exit::No,
        }
    }
}
