//! Adds up what the agents of a run spent, in all attempts.

use super::State;
use super::fact::AgentRun;
use crate::agent::Adapter;
use crate::agent::adapter::ClaimedAgain;
use crate::agent::event::Usage;
use crate::net::model_traffic::ModelTraffic;
use serde::Serialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Tokens and money as the proxy counted them where it could, or else as the program claims.
    #[serde(flatten)]
    pub usage: Usage,
    /// Whether the proxy counted all tokens.
    pub counted: bool,
    /// Whether the proxy knew the prices of all models.
    pub priced: bool,
    /// How many requests it counted.
    pub requests: u64,
    /// How many of them ended without a count, and are estimated by their bytes.
    pub estimated: u64,
    /// The usage as the program claims it.
    pub claimed: Usage,
}

impl Spent {
    fn add(&mut self, passed: Option<&ModelTraffic>, claimed: Usage) {
        let passed = passed.filter(|passed| !passed.unread);
        let counted = passed.map_or(claimed, |passed| Usage {
            micro_usd: passed.price(claimed.micro_usd),
            ..passed.usage
        });
        self.usage = self.usage.plus(counted);
        self.claimed = self.claimed.plus(claimed);
        self.counted &= passed.is_some();
        self.priced &= passed.is_some_and(ModelTraffic::is_priced);
        self.requests += passed.map_or(0, |passed| passed.requests);
        self.estimated += passed.map_or(0, |passed| passed.estimated);
    }
}

impl State {
    /// What the agents of all attempts spent, with the traffic since the last of them started;
    /// `None` if there is neither a count nor a claim.
    pub fn spent(&self, live: Option<&ModelTraffic>) -> Option<Spent> {
        let adapter = self.opened.adapted.as_ref()?.adapter;
        let mut spent = Spent {
            counted: true,
            priced: true,
            ..Spent::default()
        };
        let mut before: Option<&AgentRun> = None;
        let mut attempts = 0;
        for run in self.attempts() {
            let claimed = claimed(adapter, before, run);
            spent.add(run.model.as_deref(), claimed);
            before = Some(run);
            attempts += 1;
        }
        if let Some(live) = live.filter(|_| self.agent.is_none()) {
            spent.add(Some(live), Usage::default());
            attempts += 1;
        }
        (attempts > 0).then_some(spent)
    }

    /// The agents of all attempts that ended, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &AgentRun> {
        let past = self.past.iter().filter_map(|past| past.agent.as_ref());
        past.chain(&self.agent)
    }
}

/// What `run` claims for itself. A program that continues a conversation may claim its tokens or its
/// price again.
fn claimed(adapter: Adapter, before: Option<&AgentRun>, run: &AgentRun) -> Usage {
    let Some(now) = run.claimed().copied() else {
        return Usage::default();
    };
    let thread = |run: &AgentRun| {
        run.claims
            .as_ref()
            .and_then(|claims| claims.sum.thread.clone())
    };
    let continues = |before: &&AgentRun| thread(before).is_some() && thread(before) == thread(run);
    let Some(then) = before.filter(continues).and_then(AgentRun::claimed) else {
        return now;
    };
    match adapter.claims_again() {
        ClaimedAgain::Tokens => Usage {
            input_tokens: now.input_tokens.saturating_sub(then.input_tokens),
            cached_tokens: now.cached_tokens.saturating_sub(then.cached_tokens),
            output_tokens: now.output_tokens.saturating_sub(then.output_tokens),
            ..now
        },
        ClaimedAgain::Price => Usage {
            micro_usd: now.micro_usd.saturating_sub(then.micro_usd),
            ..now
        },
        ClaimedAgain::Nothing => now,
    }
}
