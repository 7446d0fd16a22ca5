//! What an active run is doing now.

use provost_core::agent::Budget;
use provost_core::run::spent::Spent;
use provost_core::run::{State, Step};
use serde::Serialize;

use super::archive::{RunArchive, RunFiles};
use super::{spent, transcript};

/// The present of a run that a process drives.
#[derive(Debug, Clone, Serialize)]
pub struct LiveView {
    /// The step that has begun and not ended.
    pub step: Option<Step>,
    /// Milliseconds since the last event, which began the step.
    pub step_ms: Option<u64>,
    /// Milliseconds since the run began.
    pub took_ms: Option<u64>,
    pub attempt: u32,
    /// The last tool that the worker used, with its arguments.
    pub last_tool: Option<String>,
    /// The last words of the worker.
    pub says: Option<String>,
    /// The paths that may be written.
    pub scope: Vec<String>,
    /// What the agents of all attempts spent so far.
    pub usage: Option<Spent>,
    /// What the agent of one attempt may spend.
    pub limit: Budget,
}

impl LiveView {
    pub fn of(state: &State, archive: &dyn RunArchive, files: &dyn RunFiles, now: i64) -> Self {
        let live = archive.live(&state.names.run_id, state.attempt);
        let latest = transcript::latest(state, files);
        let adapted = state.opened.adapted.as_ref();
        Self {
            step: state.pending,
            step_ms: spent::since(&state.latest, now),
            took_ms: spent::since(&state.began, now),
            attempt: state.attempt,
            last_tool: latest.tool,
            says: latest.words,
            scope: state.opened.contract.allowed_paths.clone(),
            usage: state.spent(live.as_ref()),
            limit: adapted.map(|it| it.budget).unwrap_or_default(),
        }
    }
}
