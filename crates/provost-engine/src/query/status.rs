//! What has not ended, and the change that a run left.

use provost_core::question::AgentQuestion;
use provost_core::run::fact::Part;
use serde::Serialize;

use super::live::LiveView;
use super::summary::RunSummary;
use crate::chain::report::NodeStatus;
use crate::chain::{Standing, State};

/// Runs that have not ended, and the controlled changes `C` of this checkout.
#[derive(Debug, Serialize)]
pub struct StatusView<C> {
    /// Newest first.
    pub open: Vec<OpenRun>,
    /// The chains that a process drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainSummary>,
    /// `None` if they cannot be read.
    pub changes: Option<Vec<C>>,
    /// How many runs another user began.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A run that has not ended.
#[derive(Debug, Serialize)]
pub struct OpenRun {
    #[serde(flatten)]
    pub summary: RunSummary,
    /// What it is doing, if a process drives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveView>,
    /// The questions of its agent that wait for an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
    /// The chain and the node that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// How far a chain is.
#[derive(Debug, Serialize)]
pub struct ChainSummary {
    pub chain_id: String,
    pub nodes: Vec<NodeSummary>,
}

#[derive(Debug, Serialize)]
pub struct NodeSummary {
    pub id: String,
    pub status: NodeStatus,
}

impl ChainSummary {
    /// The chain `chain_id` of `nodes`, in the state that its events give.
    pub fn of(chain_id: &str, nodes: impl Iterator<Item = String>, state: &State) -> Self {
        let node = |id: String| {
            let status = match state.nodes.get(&id) {
                None => NodeStatus::Waiting,
                Some(Standing::Running { .. } | Standing::Left { .. }) => NodeStatus::Running,
                Some(Standing::NotRun(_)) => NodeStatus::NotRun,
                Some(Standing::Ended(end)) if end.accepted().is_some() => NodeStatus::Accepted,
                Some(Standing::Ended(_)) => NodeStatus::Refused,
            };
            NodeSummary { id, status }
        };
        Self {
            chain_id: chain_id.to_owned(),
            nodes: nodes.map(node).collect(),
        }
    }

    pub fn count(&self, status: NodeStatus) -> usize {
        self.nodes.iter().filter(|it| it.status == status).count()
    }
}

/// The patch from the base of a run to what it captured.
#[derive(Debug, Serialize)]
pub struct DiffView {
    pub run_id: String,
    pub patch: String,
}
