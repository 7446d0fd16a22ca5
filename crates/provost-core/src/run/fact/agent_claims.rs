//! What an agent with an adapter reported about itself.

use serde::{Deserialize, Serialize};

use super::Stream;
use crate::agent::sum::Sum;

/// What an agent reported while it worked; unverified, and used only for limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClaims {
    /// The events, one per line, in the form that all programs share.
    pub events: Stream,
    pub sum: Sum,
}
