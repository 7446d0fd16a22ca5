//! The facts about a review: who was to do it, and what came of it.

use serde::{Deserialize, Serialize};

use super::{AgentRun, Probed};
use crate::agent::Adapted;
use crate::net::credential::Credential;
use crate::object::Oid;
use crate::path::RawPath;

/// Who is to look at a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    /// The name that was asked for, or `exec` for a command that was typed.
    pub name: String,
    /// The command.
    pub argv: Vec<String>,
    /// Whether that command was typed by the person who started the run.
    pub typed: bool,
    /// How its program is spoken to, if it is one that is known.
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
    /// When the reviewer ended.
    pub ended_at: String,
    /// Paths of the tree that are not what they were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub altered: Vec<RawPath>,
    /// What was tried in its sandbox before. Records from before it was told hold nothing here.
    #[serde(default)]
    pub probed: Probed,
    /// How it ended; its result is its report.
    pub run: AgentRun,
}
