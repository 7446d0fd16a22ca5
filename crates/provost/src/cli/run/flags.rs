//! Turns the flags of `provost run` into a request.

use provost_core::contract::document::Permissions;
use provost_core::contract::typed::Typed;
use provost_engine::opening::RequestedAgent;

use super::Run;

/// The contract that the flags describe.
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
        accept_mode: run.accept_mode,
    }
}

pub(super) fn agent(run: &Run) -> RequestedAgent {
    match (&run.agent_cmd, &run.agent) {
        (Some(command), _) => RequestedAgent::Typed(command.clone()),
        (None, Some(name)) => RequestedAgent::Named(name.clone()),
        (None, None) => RequestedAgent::Named("default".to_owned()),
    }
}

/// The reviewer, if the flags name one.
pub(super) fn review(run: &Run) -> Option<RequestedAgent> {
    let command = run.review_cmd.clone().map(RequestedAgent::Typed);
    command.or(run.review.clone().map(RequestedAgent::Named))
}
