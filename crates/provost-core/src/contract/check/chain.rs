//! The roles that a task passes through, in the only permitted order.

use super::{Findings, spelled};
use crate::code::Code;
use crate::contract::document::{Document, Role};

/// The order in which work is passed on.
const ORDER: [Role; 15] = [
    Role::Pm,
    Role::TechLead,
    Role::Searcher,
    Role::Researcher,
    Role::UiUx,
    Role::Frontend,
    Role::Backend,
    Role::Ai,
    Role::Security,
    Role::Infra,
    Role::Ops,
    Role::Worker,
    Role::Reviewer,
    Role::Test,
    Role::TestRunner,
];

/// Roles that a chain does not skip.
const PRIMARY: [Role; 5] = [
    Role::Pm,
    Role::TechLead,
    Role::Worker,
    Role::Reviewer,
    Role::TestRunner,
];

fn rank(role: Role) -> usize {
    let found = ORDER.iter().position(|one| *one == role);
    found.unwrap_or(ORDER.len())
}

/// A chain goes forward from the owner to the assigned agent, and skips no primary role.
pub(super) fn judge(document: &Document, findings: &mut Findings) {
    let Some(chain) = &document.handoff_chain else {
        return;
    };
    let roles = chain.roles.as_deref().unwrap_or_default();
    let place = |at: usize| format!("/handoff_chain/roles/{at}");
    let mut add = |path: String, problem: String| {
        findings.add(Code::ContractInvalid, path, problem);
    };
    let (Some(first), Some(last)) = (roles.first(), roles.last()) else {
        if chain.enabled == Some(true) {
            add(
                "/handoff_chain/roles".to_owned(),
                "names no role".to_owned(),
            );
        }
        return;
    };
    if let Some(most) = chain.max_handoffs
        && roles.len() - 1 > most as usize
    {
        let problem = format!(
            "is {most}, and the roles pass work on {} times",
            roles.len() - 1
        );
        add("/handoff_chain/max_handoffs".to_owned(), problem);
    }
    let owner = document.owner_agent.role;
    if *first != owner {
        add(place(0), format!("is not {}, the owner", spelled(owner)));
    }
    let assigned = document.assigned_agent.role;
    if *last != assigned {
        let problem = format!("is not {}, who is assigned", spelled(assigned));
        add(place(roles.len() - 1), problem);
    }
    for (at, pair) in roles.windows(2).enumerate() {
        let (from, to) = (rank(pair[0]), rank(pair[1]));
        if to <= from {
            let problem = format!("does not come after {}", spelled(pair[0]));
            add(place(at + 1), problem);
            continue;
        }
        for skipped in PRIMARY {
            if (from + 1..to).contains(&rank(skipped)) {
                add(place(at + 1), format!("skips {}", spelled(skipped)));
            }
        }
    }
}
