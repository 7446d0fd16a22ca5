//! The facts about prepared layers.

use serde::{Deserialize, Serialize};

use super::CommandRun;
use crate::net::traffic_log::Traffic;
use crate::object::Oid;

/// A prepared layer that sandboxes of a run had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layered {
    /// The step that makes it.
    pub name: String,
    /// What it follows from; see [`crate::prepare::key`].
    pub key: String,
    pub sha256: String,
    /// What it holds.
    pub bytes: u64,
    /// How it was made, if it was not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

/// How a layer was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub tree: Oid,
    /// Whether it had been made before, and somebody changed what was there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// By these commands.
    pub commands: Vec<CommandRun>,
    /// What they asked of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Traffic>,
}
