//! Resolves the agent of a run, and decides how it reaches its model.

use provost_core::agent::launch::{self, Answer};
use provost_core::agent::provider::{FoundLogins, Login, Provider};
use provost_core::agent::{self, Adapted, Adapter};
use provost_core::children;
use provost_core::code::Code;
use provost_core::contract::document::{Document, Shell};
use provost_core::gate::command;
use provost_core::net::credential::Credential;
use provost_core::net::endpoint::Endpoint;
use provost_core::policy::Policy;
use provost_core::review;
use provost_core::run::fact::Reviewer;

use super::RequestedAgent;
use crate::ports::PortError;

const PLACE: &str = "provost.toml may name any place, so a person, or the contract, says which";

#[derive(Debug)]
pub(super) struct ResolvedAgent {
    /// The command line that is executed.
    pub(super) argv: Vec<String>,
    /// The adapter, if the program is a known one.
    pub(super) adapted: Option<Adapted>,
}

/// The logins that a user has: those typed in this very command, and those that the host found.
#[derive(Debug, Clone, Copy)]
pub struct OwnLogins<'a> {
    pub typed: &'a [Credential],
    pub found: &'a FoundLogins,
}

/// Resolves the agent that the user names: a command, one of the policy, or an adapter by its name.
pub(super) fn resolve(
    agent: &RequestedAgent,
    (policy, own): (&Policy, OwnLogins<'_>),
    answer: Answer,
    tools: &[String],
) -> Result<ResolvedAgent, PortError> {
    let name = match agent {
        RequestedAgent::Typed(text) => return typed(text).map(ResolvedAgent::command),
        RequestedAgent::Named(name) => name,
    };
    let adapted = match policy.agents.get(name) {
        Some(agent::Agent::Command(argv)) => return Ok(ResolvedAgent::command(argv.clone())),
        Some(agent::Agent::Adapted(adapted)) => Some(adapted.clone()),
        None => {
            let known = Adapter::programs().find(|adapter| adapter.name() == name);
            known.and_then(Adapter::plain)
        }
    };
    let adapted = adapted.ok_or_else(|| unknown(name, policy))?;
    let mut adapted = adapted.with_login(own.typed, own.found);
    // The gate refuses a tool that the policy does not know; it is missing here.
    let known = tools
        .iter()
        .filter_map(|name| policy.servers.get_key_value(name));
    adapted.tools = known
        .map(|(name, argv)| (name.clone(), argv.clone()))
        .collect();
    adapted.grants.limits = policy.budget;
    let readable = adapted.provider.as_ref().is_some_and(Provider::is_readable);
    if !policy.budget.is_open() && !readable {
        let reason = format!(
            "`[budget]` of provost.toml cannot be held for the agent `{name}`: nothing that passes \
             between it and its model can be read"
        );
        let hint = "let Provost add the key: `login = \"brokered\"` of the agent";
        return Err(PortError::new(Code::InputInvalid, reason).hint(hint));
    }
    Ok(ResolvedAgent {
        argv: launch::argv(&adapted, answer),
        adapted: Some(adapted),
    })
}

/// Resolves the agent that works under `document`.
pub(super) fn resolve_for(
    agent: &RequestedAgent,
    means: (&Policy, OwnLogins<'_>),
    document: &Document,
) -> Result<ResolvedAgent, PortError> {
    let answer = Answer::of(document);
    let mut resolved = resolve(agent, means, answer, &document.mcp_tool_set)?;
    if let Some(adapted) = &mut resolved.adapted {
        let tools = children::broker_tools(document, false);
        adapted.broker = tools.into_iter().map(str::to_owned).collect();
        adapted.grants.record = means.0.record_bodies;
    }
    Ok(resolved.under(document.tool_permissions.shell, answer))
}

/// Resolves the reviewer like an agent, except that a known program gets no credential for another
/// endpoint than that of its model.
pub(super) fn reviewer(
    agent: &RequestedAgent,
    policy: &Policy,
    own: OwnLogins<'_>,
    document: &Document,
) -> Result<Reviewer, PortError> {
    let answer = Answer::ReadOnly(review::schema());
    let mut reviewer = reading_agent(agent, policy, own, granted(document), answer)?;
    if let Some(adapted) = &mut reviewer.adapted {
        adapted.grants.record = policy.record_bodies;
    }
    Ok(reviewer)
}

/// Resolves an agent that reads a tree, a reviewer or planner; `places` are the granted endpoints.
pub fn reading_agent(
    agent: &RequestedAgent,
    policy: &Policy,
    own: OwnLogins<'_>,
    places: &[String],
    answer: Answer,
) -> Result<Reviewer, PortError> {
    let resolved = resolve(agent, (policy, own), answer, &[])?;
    let known = resolved.adapted.as_ref();
    let model = known.and_then(|adapted| adapted.provider.as_ref());
    let needed = |it: &&Credential| {
        known.is_none() || model.is_some_and(|model| it.endpoint == model.base_url.endpoint)
    };
    let typed: Vec<Credential> = own.typed.iter().filter(needed).cloned().collect();
    Ok(Reviewer {
        name: match agent {
            RequestedAgent::Typed(_) => Adapter::COMMAND.name().to_owned(),
            RequestedAgent::Named(name) => name.clone(),
        },
        typed: matches!(agent, RequestedAgent::Typed(_)),
        credentials: resolved.credentials(typed, places)?,
        argv: resolved.argv,
        adapted: resolved.adapted,
    })
}

impl ResolvedAgent {
    /// The same agent, whose commands are permitted as `shell` says.
    pub(super) fn under(mut self, shell: Shell, answer: Answer) -> Self {
        if let Some(adapted) = &mut self.adapted {
            adapted.shell = shell;
            self.argv = launch::argv(adapted, answer);
        }
        self
    }

    /// No agent, for work that exists already.
    pub(super) fn none() -> Self {
        Self::command(Vec::new())
    }

    fn command(argv: Vec<String>) -> Self {
        Self {
            argv,
            adapted: None,
        }
    }

    /// The credentials that the proxy adds: those that the user typed, and the key of the agent's
    /// model.
    ///
    /// A policy may name any endpoint. Choosing the agent implies the endpoint of its vendor only;
    /// the user or the contract has to name any other.
    pub(super) fn credentials(
        &self,
        typed: Vec<Credential>,
        places: &[String],
    ) -> Result<Vec<Credential>, PortError> {
        let Some(Adapted {
            adapter,
            provider: Some(provider),
            ..
        }) = &self.adapted
        else {
            return Ok(typed);
        };
        let place = &provider.base_url.endpoint;
        let key = provider.credential(*adapter);
        let own = provider.is_makers_own(*adapter);
        let has_key = typed.iter().any(|it| it.endpoint == *place);
        let missing = key.filter(|_| !has_key);
        if provider.login == Login::None && has_key {
            let reason = format!("a credential is for `{place}`, where the agent has no login");
            let hint = "leave `login = \"none\"` out of the agent in provost.toml";
            return Err(PortError::new(Code::UsageError, reason).hint(hint));
        }
        if let Some(key) = missing {
            if !own {
                let reason = format!(
                    "the agent's model is at `{place}` and gets no key; \
                     if you trust that place, give it the credential '{key}'"
                );
                return Err(PortError::new(Code::UsageError, reason).hint(PLACE));
            }
            return Ok(typed.into_iter().chain([key]).collect());
        }
        if !own && !is_granted(place, places) {
            let reason = format!(
                "the agent's model is at `{place}`, which is not granted; \
                 if you trust that place, grant it"
            );
            return Err(PortError::new(Code::UsageError, reason).hint(PLACE));
        }
        Ok(typed)
    }
}

/// The endpoints that the contract grants.
pub(super) fn granted(document: &Document) -> &[String] {
    let extra = document.x_provost.as_ref();
    extra.map_or(&[][..], |extra| extra.net.as_slice())
}

pub fn is_granted(place: &Endpoint, places: &[String]) -> bool {
    places.iter().any(|it| it.parse().as_ref() == Ok(place))
}

fn unknown(name: &str, policy: &Policy) -> PortError {
    let names: Vec<&str> = policy.agents.keys().map(String::as_str).collect();
    let known = match names.as_slice() {
        [] => "it names none".to_owned(),
        names => format!("it names {}", names.join(", ")),
    };
    let reason = format!("provost.toml of the base commit has no agent `{name}`; {known}");
    PortError::new(Code::NotFound, reason).hint(
        "give a command with --agent-cmd (--review-cmd for a reviewer), or add [agents.NAME] to \
             provost.toml and commit it",
    )
}

fn typed(text: &str) -> Result<Vec<String>, PortError> {
    let argv = command::split(text).map_err(|flaw| {
        PortError::new(
            Code::UsageError,
            format!("the agent's command `{text}`: {flaw}"),
        )
        .hint("for a shell, quote it: \"sh -c '…'\"")
    })?;
    if argv.is_empty() {
        return Err(PortError::new(
            Code::UsageError,
            "the agent's command is empty",
        ));
    }
    Ok(argv)
}
