//! The facts about a review: the reviewer, and the result.

use serde::{Deserialize, Serialize};

use super::{AgentRun, Probed};
use crate::agent::Adapted;
use crate::net::credential::Credential;
use crate::object::Oid;
use crate::path::RawPath;

/// The agent that is to review a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    /// The requested name, or `exec` for a command that was typed.
    pub name: String,
    pub argv: Vec<String>,
    /// Whether the user typed that command.
    pub typed: bool,
    /// Its adapter, if it is a known program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// Secrets that the proxy adds for it, by the names of the variables that hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
}

/// One review of exactly one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRun {
    pub tree: Oid,
    pub ended_at: String,
    /// Paths of the tree that the reviewer changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub altered: Vec<RawPath>,
    /// The probes of its sandbox; empty in records from before they were recorded.
    #[serde(default)]
    pub probed: Probed,
    /// How it ended; its result is its report.
    pub run: AgentRun,
}
