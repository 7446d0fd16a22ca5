//! The ticket of the fleet that a run is made under.

use serde::{Deserialize, Serialize};

/// Which ticket, and which attempt of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketUse {
    /// SHA-256 of the signed ticket.
    pub sha256: String,
    /// The number of the lease and of the attempt, as `N.A`.
    pub fence: String,
}
