//! Counts of the network requests of a sandbox, as they are recorded.
//!
//! Paths, queries, fields and bodies are never recorded: they hold secrets and private data.

use serde::{Deserialize, Serialize};

use crate::code::Code;

/// Requests of one kind to one endpoint, and their outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The endpoint as `host:port`; `-` if a request named none.
    pub target: String,
    pub method: String,
    /// Whether they were allowed.
    pub allow: bool,
    pub code: Code,
    /// Why the first of them got no answer from the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub count: u64,
    /// In bytes.
    pub sent: u64,
    /// In bytes.
    pub received: u64,
}
