//! The facts about prepared layers.

use serde::{Deserialize, Serialize};

use super::CommandRun;
use crate::net::traffic::Traffic;
use crate::object::Oid;

/// A prepared layer in the sandboxes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layered {
    /// The step that makes it.
    pub name: String,
    /// The hash of its inputs; see [`crate::prepare::key`].
    pub key: String,
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// How it was made, if it did not exist yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub tree: Oid,
    /// Whether it existed before and was changed on disk since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    pub commands: Vec<CommandRun>,
    /// Their network requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Traffic>,
}
