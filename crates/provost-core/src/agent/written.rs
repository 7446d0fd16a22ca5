//! Parses the agents of a policy.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::adapter::Start;
use super::adapter::mcp::{self, Server};
use super::provider::{BaseUrl, Login, Provider};
use super::{Adapted, Adapter, Agent, Budget, ModelGrants, Plane, SpendLimits, is_model};
use crate::contract::document::Shell;
use crate::contract::role::RunnerKind;
use crate::gate::command;
use crate::net::credential::LoginFile;

/// The largest budget in dollars; a larger one is taken for a typing error.
const MOST_DOLLARS: f64 = 100_000.0;

/// An agent, as a policy writes it.
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
    models: Option<Vec<String>>,
    model_tools: Option<Vec<String>>,
    outward: Option<Vec<String>>,
    tool: Option<String>,
    reply_tool: Option<String>,
    plane: Option<Plane>,
}

impl Written {
    /// The agent, or the invalid field and the reason.
    pub fn resolve(self) -> Result<Agent, (&'static str, String)> {
        let adapter = self.adapter.unwrap_or_default();
        match (adapter.start(), &self.command) {
            (Start::Command, Some(text)) => return self.command_agent(text),
            (Start::Command, None) => {
                let problem = "is missing; an agent is a `command`, or has an `adapter`";
                return Err(("command", problem.to_owned()));
            }
            (Start::Server, None) => {
                let problem = "is missing; it starts the server";
                return Err(("command", problem.to_owned()));
            }
            (Start::Program { .. }, Some(_)) => {
                let problem = format!("cannot be chosen: the adapter `{adapter}` has its own");
                return Err(("command", problem));
            }
            (Start::Server, Some(_)) | (Start::Program { .. }, None) => {}
        }
        if let Some(model) = self.model.as_deref().filter(|model| !is_model(model)) {
            return Err(("model", format!("`{model}` cannot be the name of a model")));
        }
        if self.plane.is_some() && adapter.runner() != Some(RunnerKind::Codex) {
            return Err(("plane", "is for the adapter `codex` alone".to_owned()));
        }
        let server = self.server(adapter)?;
        let base_url = match &self.base_url {
            // A server may have a model anywhere, or none.
            None if server.is_some() => None,
            None => adapter.default_url(self.login.unwrap_or_default()),
            Some(text) => Some(
                BaseUrl::parse(text).map_err(|error| ("base_url", format!("`{text}` {error}")))?,
            ),
        };
        if base_url.is_none() && self.login.is_some() {
            return Err(("login", "needs a `base_url`".to_owned()));
        }
        self.check_login(adapter)?;
        let provider = base_url.map(|base_url| Provider {
            base_url,
            login: self.login.unwrap_or_default(),
        });
        self.check_is_read(provider.as_ref())?;
        Ok(Agent::Adapted(Adapted {
            adapter,
            budget: Budget {
                tokens: tokens(self.max_tokens)?,
                micro_usd: self.max_cost_usd.map(micro).transpose()?,
            },
            grants: Box::new(ModelGrants {
                models: self.models,
                tools: self.model_tools,
                outward: self.outward.unwrap_or_default(),
                // The policy as a whole says them.
                record: false,
                limits: SpendLimits::default(),
            }),
            model: self.model,
            provider,
            server: server.map(Box::new),
            // A contract names them.
            tools: BTreeMap::new(),
            broker: Vec::new(),
            // A contract says it.
            shell: Shell::Never,
            plane: self.plane.unwrap_or_default(),
        }))
    }

    /// Refuses a kind of login that the program does not have.
    fn check_login(&self, adapter: Adapter) -> Result<(), (&'static str, String)> {
        let own = adapter.vendor().and_then(|vendor| vendor.subscription);
        let is_known = match self.login.unwrap_or_default() {
            Login::Brokered | Login::Key | Login::None => true,
            Login::Token => own.is_some_and(|own| own.token_variable.is_some()),
            Login::File => own.is_some(),
            Login::FileKey => own.is_some_and(|own| own.file == LoginFile::Codex),
        };
        if is_known {
            return Ok(());
        }
        let problem = format!("is none that the adapter `{adapter}` has; leave it out");
        Err(("login", problem))
    }

    /// Refuses what can only be kept where requests are read: a limit that nothing enforces would
    /// mislead.
    fn check_is_read(&self, provider: Option<&Provider>) -> Result<(), (&'static str, String)> {
        let fields = [
            ("max_tokens", self.max_tokens.is_some()),
            ("models", self.models.is_some()),
            ("model_tools", self.model_tools.is_some()),
            ("outward", self.outward.is_some()),
        ];
        let Some((field, _)) = fields.iter().find(|(_, there)| *there) else {
            return Ok(());
        };
        let problem = match provider {
            Some(provider) if provider.is_readable() => return Ok(()),
            None => "needs a `base_url`: tokens of a model at no known place are not counted",
            Some(_) => {
                "cannot be kept with `login = \"none\"` and an encrypted `base_url`: nothing \
                 that passes can be counted; let Provost add the key (`login = \"brokered\"`)"
            }
        };
        Err((field, problem.to_owned()))
    }

    /// The MCP server that is the agent, if the adapter is one.
    fn server(&self, adapter: Adapter) -> Result<Option<Server>, (&'static str, String)> {
        let names = [("tool", &self.tool), ("reply_tool", &self.reply_tool)];
        for (field, name) in names {
            let Some(name) = name else { continue };
            if adapter.start() != Start::Server {
                return Err((field, "is for the adapter `mcp` alone".to_owned()));
            }
            if !mcp::is_tool(name) {
                return Err((field, format!("`{name}` cannot be the name of a tool")));
            }
        }
        let is_server = adapter.start() == Start::Server;
        let Some(text) = self.command.as_ref().filter(|_| is_server) else {
            return Ok(None);
        };
        let name = |name: &Option<String>, usual: &str| name.clone().unwrap_or(usual.to_owned());
        Ok(Some(Server {
            tool: name(&self.tool, mcp::TOOL),
            reply_tool: name(&self.reply_tool, mcp::REPLY_TOOL),
            command: words(text)?,
        }))
    }

    fn command_agent(&self, text: &str) -> Result<Agent, (&'static str, String)> {
        let others = [
            ("model", self.model.is_some()),
            ("base_url", self.base_url.is_some()),
            ("login", self.login.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
            ("max_cost_usd", self.max_cost_usd.is_some()),
            ("models", self.models.is_some()),
            ("model_tools", self.model_tools.is_some()),
            ("outward", self.outward.is_some()),
            ("tool", self.tool.is_some()),
            ("reply_tool", self.reply_tool.is_some()),
            ("plane", self.plane.is_some()),
        ];
        if let Some((field, _)) = others.into_iter().find(|(_, there)| *there) {
            // Nothing would enforce it.
            let problem = "needs an adapter; a command is started as it is".to_owned();
            return Err((field, problem));
        }
        words(text).map(Agent::Command)
    }
}

fn words(text: &str) -> Result<Vec<String>, (&'static str, String)> {
    let argv = command::split(text).map_err(|flaw| ("command", format!("`{text}`: {flaw}")))?;
    if argv.is_empty() {
        return Err(("command", "is empty".to_owned()));
    }
    Ok(argv)
}

/// `[budget]`, of a policy or of a user.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenBudget {
    run_tokens: Option<u64>,
    run_usd: Option<f64>,
    day_tokens: Option<u64>,
    day_usd: Option<f64>,
}

impl WrittenBudget {
    /// The limits, or the invalid field and the reason.
    pub fn resolve(self) -> Result<SpendLimits, (&'static str, String)> {
        let budget = |tokens: (&'static str, Option<u64>), usd: (&'static str, Option<f64>)| {
            if tokens.1 == Some(0) {
                return Err((tokens.0, "is 0".to_owned()));
            }
            let micro_usd = usd.1.map(micro).transpose();
            Ok(Budget {
                tokens: tokens.1,
                micro_usd: micro_usd.map_err(|(_, problem)| (usd.0, problem))?,
            })
        };
        Ok(SpendLimits {
            run: budget(("run_tokens", self.run_tokens), ("run_usd", self.run_usd))?,
            day: budget(("day_tokens", self.day_tokens), ("day_usd", self.day_usd))?,
        })
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
