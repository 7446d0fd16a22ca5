//! Knows who may be given a task: the shipped agent registry.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::contract::document::Role;
use crate::json;

const TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../policies/agent_registry.json"
));

/// The agent that works for a run from flags.
pub const WORKER: &str = "agent-worker";

/// The agent that stands for the person who asked.
pub const OWNER: &str = "agent-pm";

#[derive(Deserialize)]
struct Registry {
    agents: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    agent_id: String,
    role: Role,
}

/// Whether the registry has this agent in this role.
pub fn knows(agent_id: &str, role: Role) -> bool {
    static AGENTS: OnceLock<Vec<Entry>> = OnceLock::new();
    // A registry that does not parse knows nobody; a test keeps it parsing.
    let read =
        || json::parse_as::<Registry>(TEXT.as_bytes()).map_or_else(|_| Vec::new(), |r| r.agents);
    AGENTS
        .get_or_init(read)
        .iter()
        .any(|agent| agent.agent_id == agent_id && agent.role == role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_an_agent() {
        let registry: Registry = json::parse_as(TEXT.as_bytes()).unwrap();
        let mut roles: Vec<Role> = registry.agents.iter().map(|agent| agent.role).collect();
        roles.sort();
        roles.dedup();
        assert_eq!(roles.len(), 15);
        assert!(knows(WORKER, Role::Worker) && knows(OWNER, Role::Pm));
        assert!(!knows(WORKER, Role::Reviewer) && !knows("nobody", Role::Worker));
    }
}
