//! Reads what a policy says about an agent.

use serde::Deserialize;

use super::provider::{self, BaseUrl, Login, Provider};
use super::{Adapted, Adapter, Agent, Budget, is_model};
use crate::gate::command;

/// The most dollars a budget may name, so that a slip of the pen is noticed.
const MOST_DOLLARS: f64 = 100_000.0;

/// An agent, as somebody wrote it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    command: Option<String>,
    adapter: Option<Adapter>,
    model: Option<String>,
    base_url: Option<String>,
    login: Option<Login>,
    max_tokens: Option<u64>,
    max_cost_usd: Option<f64>,
}

impl Written {
    /// The agent, or the field that is wrong and why.
    pub fn resolve(self) -> Result<Agent, (&'static str, String)> {
        let adapter = match (self.adapter.unwrap_or_default(), &self.command) {
            (Adapter::Exec, Some(text)) => return self.command_agent(text),
            (Adapter::Exec, None) => {
                let problem = "is missing; an agent is a `command`, or has an `adapter`";
                return Err(("command", problem.to_owned()));
            }
            (adapter, Some(_)) => {
                let problem = format!("cannot be chosen: the adapter `{adapter}` has its own");
                return Err(("command", problem));
            }
            (adapter, None) => adapter,
        };
        if let Some(model) = self.model.as_deref().filter(|model| !is_model(model)) {
            return Err(("model", format!("`{model}` cannot be the name of a model")));
        }
        let base_url = match &self.base_url {
            None => provider::default(adapter),
            Some(text) => Some(
                BaseUrl::parse(text).map_err(|error| ("base_url", format!("`{text}` {error}")))?,
            ),
        };
        let Some(base_url) = base_url else {
            return Err(("base_url", "is missing".to_owned()));
        };
        Ok(Agent::Adapted(Adapted {
            adapter,
            budget: Budget {
                tokens: tokens(self.max_tokens)?,
                micro_usd: self.max_cost_usd.map(micro).transpose()?,
            },
            model: self.model,
            provider: Provider {
                base_url,
                login: self.login.unwrap_or_default(),
            },
        }))
    }

    fn command_agent(&self, text: &str) -> Result<Agent, (&'static str, String)> {
        let others = [
            ("model", self.model.is_some()),
            ("base_url", self.base_url.is_some()),
            ("login", self.login.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
            ("max_cost_usd", self.max_cost_usd.is_some()),
        ];
        if let Some((field, _)) = others.into_iter().find(|(_, there)| *there) {
            // Nobody would keep it.
            let problem = "needs an adapter; a command is started as it is".to_owned();
            return Err((field, problem));
        }
        let argv = command::split(text).map_err(|flaw| ("command", format!("`{text}`: {flaw}")))?;
        if argv.is_empty() {
            return Err(("command", "is empty".to_owned()));
        }
        Ok(Agent::Command(argv))
    }
}

fn tokens(most: Option<u64>) -> Result<Option<u64>, (&'static str, String)> {
    if most == Some(0) {
        return Err(("max_tokens", "is 0".to_owned()));
    }
    Ok(most)
}

fn micro(dollars: f64) -> Result<u64, (&'static str, String)> {
    if !(0.000_001..=MOST_DOLLARS).contains(&dollars) {
        return Err((
            "max_cost_usd",
            format!("is not above 0 and up to {MOST_DOLLARS}"),
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is above 0 and bounded"
    )]
    let micro = (dollars * 1e6).round() as u64;
    Ok(micro)
}
