//! Agents: what a policy says of one, its instruction, and what it prints.
//!
//! # Invariants
//!
//! - An adapter turns the program's own sandbox and prompts off, because Provost's sandbox contains
//!   it. Every tool that would act outside the sandbox is off: the provider's web search, agents of
//!   its own.
//! - What an agent prints is data, read within limits. Lines that cannot be parsed are counted.
//! - A key never enters the sandbox: the agent speaks plain HTTP to the proxy, which adds the key
//!   outside.

pub mod adapter;
pub mod event;
pub mod instruction;
pub mod launch;
pub mod provider;
pub mod sum;
#[cfg(test)]
mod tests;
pub mod written;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::contract::document::Shell;
use crate::net::credential::Credential;

pub use adapter::Adapter;

use adapter::{Start, StreamForm, mcp};
use event::Usage;
use provider::{FoundLogins, Login, Provider};

/// How an agent is started and what it may spend, as a policy says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// A command, as an argument vector.
    Command(Vec<String>),
    /// A program with an adapter.
    Adapted(Adapted),
}

/// An agent with an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapted {
    pub adapter: Adapter,
    /// The model, if not the program's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the model is; only an MCP server may leave it unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<mcp::Server>>,
    /// The MCP servers that it gets, by name, each an argument vector; it has no others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<String>>,
    /// The tools of the broker of children that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broker: Vec<String>,
    #[serde(default, skip_serializing_if = "Budget::is_open")]
    pub budget: Budget,
    #[serde(default, skip_serializing_if = "is_open")]
    pub grants: Box<ModelGrants>,
    /// How its commands are permitted, as the contract says.
    #[serde(default = "unasked", skip_serializing_if = "is_unasked")]
    pub shell: Shell,
    /// How Codex is driven where its contract does not decide it.
    #[serde(default, skip_serializing_if = "Plane::is_exec")]
    pub plane: Plane,
}

/// How Codex is driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plane {
    /// By `codex exec`, which prints what it does and cannot ask.
    #[default]
    Exec,
    /// By `codex app-server`, a conversation in which it can ask.
    AppServer,
}

impl Plane {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_exec(&self) -> bool {
        *self == Self::Exec
    }
}

/// The sandbox decides, and no person is asked.
fn unasked() -> Shell {
    Shell::Never
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_unasked(shell: &Shell) -> bool {
    *shell == Shell::Never
}

impl Adapted {
    /// The program to look up in PATH; a command is looked up inside the sandbox.
    pub fn program(&self) -> Option<&'static str> {
        match self.adapter.start() {
            Start::Program { name, .. } => Some(name),
            Start::Command | Start::Server => None,
        }
    }

    /// The address of the model, as configured in the program.
    fn model_url(&self) -> String {
        let provider = self.provider.as_ref();
        let inside = provider.map(|it| it.base_url.inside(it.login));
        inside.unwrap_or_default()
    }

    /// The same agent with the login that its user has: one that was typed, or one of `found`.
    #[must_use]
    pub fn with_login(self, typed: &[Credential], found: &FoundLogins) -> Self {
        let provider = self.provider;
        Self {
            provider: provider.map(|it| it.with_login(self.adapter, typed, found)),
            ..self
        }
    }

    /// How it authenticates at its model.
    pub fn login(&self) -> Login {
        self.provider.as_ref().map_or(Login::None, |it| it.login)
    }

    /// The arguments that choose the model.
    fn model_words(&self) -> Vec<String> {
        let model = self.model.iter();
        model
            .flat_map(|model| ["--model".to_owned(), model.clone()])
            .collect()
    }

    /// Whether it works in a conversation, so that no message of it may be lost.
    pub fn converses(&self) -> bool {
        match self.adapter.prints(self) {
            StreamForm::CodexAppServer | StreamForm::Mcp => true,
            StreamForm::Claude => self.shell.asks(),
            StreamForm::Any | StreamForm::CodexExec | StreamForm::Gemini => false,
        }
    }

    /// The command that starts an MCP server.
    pub fn own_command(&self) -> Option<&[String]> {
        self.server.as_ref().map(|server| server.command.as_slice())
    }
}

/// What the requests of an agent may ask of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelGrants {
    /// The names of models; all if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// The tools that may be offered, `known` for those of the program; only those if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Fields, and tools of the provider, that reach outside of the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outward: Vec<String>,
    /// Whether the bodies of requests and answers are kept beside the bundle.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// What the policy permits a run and a day, beside the budget of an attempt.
    #[serde(skip_serializing_if = "SpendLimits::is_open")]
    pub limits: SpendLimits,
}

#[expect(clippy::borrowed_box, reason = "serde hands it over so")]
fn is_open(grants: &Box<ModelGrants>) -> bool {
    **grants == ModelGrants::default()
}

/// What an agent may spend in one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens that are new to the model, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar, if the program reports a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

/// What all attempts of a run, and all agents of a user on one day, may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendLimits {
    #[serde(skip_serializing_if = "Budget::is_open")]
    pub run: Budget,
    #[serde(skip_serializing_if = "Budget::is_open")]
    pub day: Budget,
}

impl SpendLimits {
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The smaller of each limit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            run: self.run.and(other.run),
            day: self.day.and(other.day),
        }
    }
}

impl Budget {
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            tokens: least(self.tokens, other.tokens),
            micro_usd: least(self.micro_usd, other.micro_usd),
        }
    }

    /// The part of the budget that `usage` exceeds, as text for the user.
    pub fn exceeded(&self, usage: &Usage) -> Option<String> {
        if let Some(most) = self.tokens
            && usage.tokens() > most
        {
            let spent = usage.tokens();
            return Some(format!("spent {spent} tokens of {most}"));
        }
        if let Some(most) = self.micro_usd
            && usage.micro_usd > most
        {
            let [spent, most] = [usage.micro_usd, most].map(dollars);
            return Some(format!("spent {spent} of {most}"));
        }
        None
    }
}

/// Formats an amount for people.
pub fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let (whole, parts) = text.split_at(text.len() - 4);
    format!("${whole}{}", parts.trim_end_matches('0'))
}

/// Whether `text` is a valid model name; it becomes an argument of a program.
pub fn is_model(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-[]".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}
