//! How long a run took and what its agents spent, also while it is active.

use provost_core::run::State;
use provost_core::run::fact::Ending;
use provost_core::time;

/// The milliseconds from `began` to `ended`; none if either is no time.
fn between(began: &str, ended: &str) -> Option<u64> {
    since(began, time::parse(ended).ok()?)
}

/// The milliseconds from `began` to `now`; none if that is no time.
pub(super) fn since(began: &str, now: i64) -> Option<u64> {
    let began = time::parse(began).ok()?;
    u64::try_from(now.saturating_sub(began)).ok()
}

/// Milliseconds since the run began: up to its last event, or up to `now` if it is active.
pub(super) fn took(state: &State, active_at: Option<i64>) -> Option<u64> {
    match active_at {
        Some(now) => since(&state.began, now),
        None => between(&state.began, &state.latest),
    }
}

/// Milliseconds that the agents of all attempts worked; `None` if no agent started.
pub(super) fn agent_ms(state: &State) -> Option<u64> {
    let started = state
        .attempts()
        .filter(|agent| agent.ending != Ending::NotStarted);
    let lengths: Vec<u64> = started.map(|agent| agent.wall_ms).collect();
    (!lengths.is_empty()).then(|| lengths.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_known_between_two_times_in_their_order() {
        let then = "2026-01-31T12:00:00.000Z";
        assert_eq!(between(then, "2026-01-31T12:00:01.500Z"), Some(1500));
        assert_eq!(between(then, "2026-01-31T11:00:00Z"), None);
        assert_eq!(between("yesterday", then), None);
    }
}
