//! The ground that runs share: held paths, and trees that cannot be merged with each other.

use provost_core::lease::Lease;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::run::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::archive::RunArchive;

/// How many open trees are compared with each other.
const MOST_TREES: usize = 12;

/// Work of a run that has not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTree {
    pub run_id: String,
    pub base: Oid,
    pub tree: Oid,
}

impl OpenTree {
    /// The tree that the run captured last, if there is one.
    pub fn of(state: &State) -> Option<Self> {
        Some(Self {
            run_id: state.names.run_id.clone(),
            base: state.opened.base_tree.clone(),
            tree: state.captured.as_ref()?.tree.clone(),
        })
    }
}

/// Two runs whose work git cannot merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeConflict {
    pub runs: [String; 2],
    pub paths: Vec<RawPath>,
}

/// A write to a shared checkout that the hook of an agent denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeniedWrite {
    /// As RFC 3339.
    pub at: String,
    /// What the agent calls itself, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session of its program.
    pub session: String,
    /// What the call would have written, as far as it names it.
    pub paths: Vec<String>,
    pub reason: String,
}

/// What runs of one repository share, and what holds for all of them. `I` is an intent of a shared
/// checkout.
#[derive(Debug, Serialize)]
pub struct GroundView<I> {
    pub leases: Vec<Lease>,
    /// Declared changes of shared checkouts, active ones and those in the queue; absent if they
    /// cannot be read.
    pub changes: Option<Vec<I>>,
    pub conflicts: Vec<TreeConflict>,
    /// How many open trees were compared, and how many were not because there are too many.
    pub compared: usize,
    pub left_out: usize,
    /// Writes that the hooks of agents denied, the newest first; absent if they cannot be read.
    pub denied: Option<Vec<DeniedWrite>>,
    /// The policy at the commit that is checked out; absent if there is none.
    pub policy: Option<String>,
}

/// The pairs among the newest of `open` (newest first) that cannot be merged, how many trees were
/// compared, and how many were left out.
pub fn conflicts(archive: &dyn RunArchive, open: &[OpenTree]) -> (Vec<TreeConflict>, usize, usize) {
    let compared = &open[..open.len().min(MOST_TREES)];
    let mut found = Vec::new();
    for (index, one) in compared.iter().enumerate() {
        for other in &compared[index + 1..] {
            // The base of the older one is in the history of the newer one's, as a rule.
            let paths = archive.merge_conflicts(&other.base, &one.tree, &other.tree);
            let paths = paths.unwrap_or_default();
            if !paths.is_empty() {
                found.push(TreeConflict {
                    runs: [one.run_id.clone(), other.run_id.clone()],
                    paths,
                });
            }
        }
    }
    (found, compared.len(), open.len() - compared.len())
}
