//! What an agent with an adapter told.

use serde::{Deserialize, Serialize};

use super::Stream;
use crate::agent::reader::Sum;

/// What an agent told while it worked; its own words, from which only limits follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClaims {
    /// The events, one a line, in the form that all programs share.
    pub events: Stream,
    /// What they come to.
    pub sum: Sum,
}
