//! The report about a chain, for programs.

use provost_core::exit::Exit;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use super::state::End;
use super::{Chain, Standing, State};
use crate::bundle::formats::{OpenObject, VerdictFile};
use provost_core::bundle::report::Nullable;

const VERSION: u32 = 1;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainReport<'a> {
    pub schema_version: u32,
    pub chain_id: &'a str,
    pub chain_sha256: &'a str,
    pub base_commit: &'a Oid,
    pub began: &'a str,
    #[schemars(with = "Nullable<VerdictFile>")]
    pub verdict: Option<&'a Verdict>,
    #[schemars(with = "Vec<OpenObject>")]
    pub nodes: Vec<NodeReport<'a>>,
    /// The verdict on all results together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VerdictFile>")]
    pub together: Option<&'a Verdict>,
}

#[derive(Debug, Serialize)]
pub struct NodeReport<'a> {
    pub id: &'a str,
    pub needs: Vec<&'a str>,
    pub task_id: &'a str,
    pub status: NodeStatus,
    #[serde(flatten)]
    pub facts: NodeFacts<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    Waiting,
    Running,
    NotRun,
    Accepted,
    Refused,
}

/// What is known about a node in its state.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum NodeFacts<'a> {
    Waiting {},
    Running {
        run_id: &'a str,
    },
    NotRun {
        verdict: &'a Verdict,
    },
    Ended {
        run_id: &'a str,
        verdict: &'a Verdict,
        commit: Option<&'a Oid>,
        tree: Option<&'a Oid>,
        ledger_head: Option<&'a str>,
    },
}

impl<'a> ChainReport<'a> {
    pub fn of(id: &'a str, chain: &'a Chain, state: &'a State) -> Self {
        let name = |at: &usize| chain.nodes[*at].id.as_str();
        let row = |at: &usize| {
            let node = &chain.nodes[*at];
            let (status, facts) = standing(state.nodes.get(&node.id));
            NodeReport {
                id: &node.id,
                needs: node.needs.iter().map(name).collect(),
                task_id: &node.contract.document.task_id,
                status,
                facts,
            }
        };
        Self {
            schema_version: VERSION,
            chain_id: id,
            chain_sha256: &state.chain_sha256,
            base_commit: &state.base_commit,
            began: &state.began,
            verdict: state.finished.as_ref(),
            nodes: chain.order.iter().map(row).collect(),
            together: state.tested.as_ref(),
        }
    }
}

/// The result of a node or a chain, in one word.
pub fn word(verdict: &Verdict) -> String {
    match verdict.exit() {
        Exit::Yes => "accepted".to_owned(),
        Exit::NotNow => format!("not yet[{}]", verdict.code),
        _ => format!("refused[{}]", verdict.code),
    }
}

fn standing(standing: Option<&Standing>) -> (NodeStatus, NodeFacts<'_>) {
    match standing {
        None => (NodeStatus::Waiting, NodeFacts::Waiting {}),
        Some(Standing::Running { run_id } | Standing::Left { run_id }) => {
            (NodeStatus::Running, NodeFacts::Running { run_id })
        }
        Some(Standing::NotRun(verdict)) => (NodeStatus::NotRun, NodeFacts::NotRun { verdict }),
        Some(Standing::Ended(end)) => {
            let status = match end.accepted() {
                Some(_) => NodeStatus::Accepted,
                None if end.waits() => NodeStatus::Waiting,
                None => NodeStatus::Refused,
            };
            let End {
                run_id,
                verdict,
                commit,
                tree,
                head,
            } = end;
            let facts = NodeFacts::Ended {
                run_id,
                verdict,
                commit: commit.as_ref(),
                tree: tree.as_ref(),
                ledger_head: head.as_deref(),
            };
            (status, facts)
        }
    }
}
