//! Turns the flags of `provost run` into what a person typed.

use provost_core::contract::document::Permissions;
use provost_core::contract::typed::Typed;
use provost_engine::opening::Agent;

use super::Run;

/// What the flags say about the contract.
pub(super) fn typed(run: &Run) -> Typed {
    Typed {
        objective: run.objective.clone().unwrap_or_default(),
        allow: run.allow.clone(),
        forbid: run.forbid.clone(),
        accept: run.accept.clone(),
        base: run.base.clone(),
        target: run.target.clone(),
        timeout_sec: run.timeout,
        max_retries: run.retries,
        limits: run.limits.asked(),
        tier: run.tier,
        net: run.net.places(),
        permit: Permissions {
            oracle: run.permit_oracle.clone(),
            governing: run.permit_governing.clone(),
            binary: run.allow_binary.clone(),
            symlink: run.permit_symlink.clone(),
            fewer_tests: run.permit_fewer_tests,
        },
    }
}

/// Who is to work.
pub(super) fn agent(run: &Run) -> Agent {
    match (&run.agent_cmd, &run.agent) {
        (Some(command), _) => Agent::Typed(command.clone()),
        (None, Some(name)) => Agent::Named(name.clone()),
        (None, None) => Agent::Named("default".to_owned()),
    }
}

/// Who is to review, if the flags say so.
pub(super) fn review(run: &Run) -> Option<Agent> {
    let command = run.review_cmd.clone().map(Agent::Typed);
    command.or(run.review.clone().map(Agent::Named))
}
