//! Turns the flags of `provost run` into a request.

use provost_core::contract::document::Permissions;
use provost_core::contract::typed::Typed;
use provost_engine::opening::RequestedAgent;
use provost_engine::opening::defaults::Completed;

use super::Run;

/// The contract that the flags describe, with the defaults of what they leave out.
pub(super) fn typed(run: &Run, completed: &Completed) -> Typed {
    Typed {
        objective: run.objective.clone().unwrap_or_default(),
        allow: completed.allow.value.clone(),
        forbid: run.forbid.clone(),
        accept: completed.accept.value.clone(),
        base: run.base.clone(),
        target: run.target.clone(),
        timeout_sec: completed.timeout_sec.value,
        max_retries: completed.retries.value,
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
        accept_mode: completed.accept_mode.as_ref().map(|it| it.value),
        may_ask: run.may_ask,
        full_access: run.danger_full_access.clone(),
    }
}

/// The agent, if the flags name one.
pub(super) fn agent(run: &Run) -> Option<RequestedAgent> {
    // Work that exists already needs no agent.
    let none = run.work.as_ref().map(|_| String::new());
    let command = run.agent_cmd.clone().or(none).map(RequestedAgent::Typed);
    command.or(run.agent.clone().map(RequestedAgent::Named))
}

/// The reviewer, if the flags name one.
pub(super) fn review(run: &Run) -> Option<RequestedAgent> {
    let command = run.review_cmd.clone().map(RequestedAgent::Typed);
    command.or(run.review.clone().map(RequestedAgent::Named))
}
