//! Whether an agent used up what it was given.

use crate::agent::{Adapted, dollars};
use crate::run::fact::AgentRun;

/// In what the agent went beyond its budget.
pub(super) fn overspent(agent: &AgentRun, adapted: &Adapted) -> Option<String> {
    let what = adapted.budget.exceeded(&agent.spent()?);
    let refused = agent.model.as_ref().is_some_and(|model| model.refused > 0);
    let what = what.or_else(|| refused.then(|| spent_all(agent, adapted)));
    // What was not counted cannot be shown to be within the limit.
    let uncounted = agent
        .model
        .as_ref()
        .is_some_and(|model| model.uncounted > 0);
    let unknown =
        || "got a reply without a token count, so its token limit cannot be checked".to_owned();
    let what = what.or_else(|| uncounted.then(unknown))?;
    Some(format!("the agent {what}"))
}

/// The reason for an agent that asked for more when nothing was left of its budget.
pub(super) fn spent_all(agent: &AgentRun, adapted: &Adapted) -> String {
    let usage = agent.spent().unwrap_or_default();
    if let (None, Some(most)) = (adapted.budget.tokens, adapted.budget.micro_usd) {
        let [spent, most] = [usage.micro_usd, most].map(dollars);
        return format!("spent {spent} of {most} and asked for more");
    }
    let spent = usage.tokens();
    let most = adapted.budget.tokens.unwrap_or(spent);
    let explained = agent.model.as_ref().map_or("", |model| model.explain());
    format!("spent {spent} tokens of {most}{explained} and asked for more")
}
