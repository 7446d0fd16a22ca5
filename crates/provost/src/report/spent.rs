//! Reports how long a run took and what its agents spent, also while it is active.

use provost_core::agent::dollars;
use provost_core::run::State;
use provost_core::wording::counted;
use serde_json::{Value, json};

use crate::history::{Beside, Stage};
use crate::times;

/// Milliseconds since the run began: up to its last event, or up to now if it is active.
pub(super) fn took(state: &State, beside: &Beside) -> Option<u64> {
    let running = beside
        .closer
        .as_ref()
        .filter(|_| beside.stage == Stage::Running);
    match running {
        Some(closer) => times::since(&state.began, closer.now),
        None => times::between(&state.began, &state.latest),
    }
}

/// Milliseconds that the agents of all attempts worked.
pub(super) fn agent_ms(state: &State) -> Option<u64> {
    let lengths: Vec<u64> = state.attempts().map(|agent| agent.wall_ms).collect();
    (!lengths.is_empty()).then(|| lengths.into_iter().fold(0, u64::saturating_add))
}

/// What the agents of all attempts spent, for programs.
pub(super) fn facts(state: &State, beside: &Beside) -> Value {
    json!(state.spent(beside.live.as_ref()))
}

/// The same for people.
pub(super) fn text(state: &State, beside: &Beside) -> String {
    let mut text = String::new();
    if let Some(millis) = took(state, beside) {
        let so_far = if beside.stage == Stage::Running {
            " so far"
        } else {
            ""
        };
        text += &format!("  took     {}{so_far}", times::length(millis));
        let agent = agent_ms(state).map(times::length);
        text += &agent.map_or("\n".to_owned(), |length| format!(", the agent {length}\n"));
    }
    if let Some(spent) = state.spent(beside.live.as_ref()) {
        let money = spent.usage.micro_usd;
        let money = (money > 0).then(|| format!(", {} as the agent reports", dollars(money)));
        let tokens = spent.usage.tokens();
        let how = match (spent.counted, spent.estimated) {
            (false, _) => "not counted, as the agent reports".to_owned(),
            (true, 0) => format!("in {}", requests(spent.requests)),
            (true, some) => format!("in {}, {some} of them estimated", requests(spent.requests)),
        };
        text += &format!(
            "  spent    {tokens} tokens {how}{}\n",
            money.unwrap_or_default()
        );
    }
    text
}

fn requests(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "request")
}
